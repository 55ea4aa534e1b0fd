package kvevents

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/transport"
)

// The library trusts its peers: it allocates a frame of any length that a peer announces, accepts one connection at a
// time, and lets a subscriber that does not read block all others. A transport of its own limits what peers can do.

// guarded is the name of the transport.
const guarded = "guarded"

// registerTransport makes the transport known to zmq4.
var registerTransport = sync.OnceFunc(func() {
	if err := zmq4.RegisterTransport(guarded, guardedTransport{transport.New("tcp")}); err != nil {
		panic(err) // the name is taken, which only this package does
	}
})

// Limits of a peer.
const (
	mostPeers     = 256
	mostMessage   = 64 << 10 // bytes of a message from a peer
	mostReceived  = 16 << 20 // bytes from a peer in all
	mostWaiting   = 64 << 20 // bytes that wait for a peer
	handshakeTime = 10 * time.Second
	replyTime     = 10 * time.Second // for a part of a reply
)

type peers struct {
	hwm     int // messages that wait for a peer; 0 lets a send wait instead
	dropped atomic.Int64
	here    atomic.Int64
}

type peersKey struct{}

// guardedTransport is TCP with limits for peers. The context has the peers of the socket.
type guardedTransport struct{ transport.Transport }

// Listen implements [transport.Transport].
func (g guardedTransport) Listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := g.Transport.Listen(ctx, addr)
	if err != nil {
		return nil, err
	}
	guard := &guardedListener{Listener: l, peers: ctx.Value(peersKey{}).(*peers), ready: make(chan net.Conn),
		ended: make(chan struct{})}
	go guard.greet()
	return guard, nil
}

// Dial implements [transport.Transport].
func (g guardedTransport) Dial(ctx context.Context, d transport.Dialer, addr string) (net.Conn, error) {
	c, err := g.Transport.Dial(ctx, d, addr)
	if err != nil {
		return nil, err
	}
	p := ctx.Value(peersKey{}).(*peers)
	p.here.Add(1)
	return newPeer(c, p, nil), nil
}

// guardedListener hands over connections that have begun to speak the protocol.
type guardedListener struct {
	net.Listener
	peers *peers
	ready chan net.Conn
	ended chan struct{}
	once  sync.Once
}

// signature is the length of the beginning of a greeting, which a peer sends before it has read anything.
const signature = 10

// greet accepts connections, and waits for their signatures side by side.
func (l *guardedListener) greet() {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			l.once.Do(func() { close(l.ended) })
			return
		}
		if l.peers.here.Add(1) > mostPeers {
			l.peers.here.Add(-1)
			c.Close()
			continue
		}
		go func() {
			_ = c.SetDeadline(time.Now().Add(handshakeTime))
			begin := make([]byte, signature)
			_, err := io.ReadFull(c, begin)
			x := newPeer(c, l.peers, begin)
			if err == nil && begin[0] == 0xff && begin[signature-1] == 0x7f {
				select {
				case l.ready <- x:
					return
				case <-l.ended:
				}
			}
			x.Close()
		}()
	}
}

// Accept implements [net.Listener].
func (l *guardedListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

type peer struct {
	net.Conn
	peers   *peers
	begin   []byte // was read before
	in, out frames
	total   int64
	shaken  bool        // the handshake is complete
	taken   atomic.Bool // and the library reads on
	message []byte      // that is being written
	waiting *queue[[]byte]
	once    sync.Once
}

func newPeer(c net.Conn, p *peers, begin []byte) *peer {
	x := &peer{Conn: c, peers: p, begin: begin}
	x.in.left, x.out.left = greetingBytes, greetingBytes
	_ = c.SetDeadline(time.Now().Add(handshakeTime))
	// The library does not close connections whose handshake it refuses.
	time.AfterFunc(handshakeTime, func() {
		if !x.taken.Load() {
			x.Close()
		}
	})
	if p.hwm > 0 {
		x.waiting = newQueue[[]byte](p.hwm, mostWaiting)
		go x.send()
	}
	return x
}

var errTooMuch = errors.New("the peer sends too much")

// Read implements [net.Conn].
func (x *peer) Read(b []byte) (n int, err error) {
	if x.shaken {
		x.taken.Store(true)
	}
	if len(x.begin) > 0 {
		n = copy(b, x.begin)
		x.begin = x.begin[n:]
	} else if n, err = x.Conn.Read(b); err != nil {
		return n, err
	}
	x.total += int64(n)
	for rest := b[:n]; len(rest) > 0; {
		rest = rest[x.in.take(rest):]
		if x.in.length > mostMessage || x.total > mostReceived {
			x.Close()
			return 0, errTooMuch
		}
		if x.in.ended > 1 && !x.shaken { // the greeting and the command READY
			x.shaken = true
			_ = x.SetDeadline(time.Time{})
		}
	}
	return n, nil
}

// Write implements [net.Conn]. A message to a subscriber waits in a queue, or is dropped.
func (x *peer) Write(b []byte) (int, error) {
	if x.waiting == nil {
		_ = x.SetWriteDeadline(time.Now().Add(replyTime))
		return x.Conn.Write(b)
	}
	for rest := b; len(rest) > 0; {
		ended := x.out.ended
		n := x.out.take(rest)
		x.message = append(x.message, rest[:n]...)
		rest = rest[n:]
		if ended == x.out.ended {
			continue
		}
		if !x.waiting.push(x.message, len(x.message)) {
			x.peers.dropped.Add(1)
		}
		x.message = nil
	}
	return len(b), nil
}

func (x *peer) send() {
	for {
		b, ok := x.waiting.pop(func(b []byte) int { return len(b) })
		if !ok {
			return
		}
		if _, err := x.Conn.Write(b); err != nil {
			x.Close()
			return
		}
	}
}

// Close implements [net.Conn].
func (x *peer) Close() error {
	x.once.Do(func() {
		x.peers.here.Add(-1)
		if x.waiting != nil {
			x.waiting.close()
		}
	})
	return x.Conn.Close()
}

// greetingBytes is the length of the greeting of ZMTP 3.
const greetingBytes = 64

// frames follows the frames of one direction of a connection, of ZMTP 3.0 (RFC 23): after the greeting, each has a byte
// of flags, its length in one byte or eight, and its body.
type frames struct {
	left   uint64 // bytes of the greeting, or of the body
	head   [9]byte
	heads  int    // bytes of the head that are known
	more   bool   // the message has another frame
	length uint64 // of the message so far, with some overhead for each frame
	ended  int    // messages, commands and the greeting
}

// take follows some of the bytes, up to the end of a message, and returns how many.
func (f *frames) take(b []byte) (n int) {
	if f.left == 0 {
		n = f.header(b)
		if f.left == 0 {
			return n
		}
	}
	some := min(f.left, uint64(len(b)-n))
	if f.left -= some; f.left == 0 {
		f.end()
	}
	return n + int(some)
}

// header follows the bytes of the head of a frame.
func (f *frames) header(b []byte) (n int) {
	const long, more = 2, 1
	for n < len(b) {
		f.head[f.heads] = b[n]
		f.heads++
		n++
		switch {
		case f.heads == 2 && f.head[0]&long == 0:
			f.left = uint64(f.head[1])
		case f.heads == 9:
			f.left = binary.BigEndian.Uint64(f.head[1:])
		default:
			continue
		}
		f.more, f.heads = f.head[0]&more != 0, 0
		f.length += min(f.left, 1<<62) + 64
		if f.left == 0 {
			f.end()
		}
		return n
	}
	return n
}

func (f *frames) end() {
	if !f.more {
		f.ended++
		f.length = 0
	}
}
