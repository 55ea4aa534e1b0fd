package kvevents

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"pgregory.net/rapid"

	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

const small = "model: llama-3.1-8b\ngpu: h100\nengine: {enable_prefix_caching: true}\n"

// stores reports one block of a request as stored, and as evicted afterwards, some times.
func stores(p *Publisher, times int) {
	r := workload.Request{InputTokens: 16, OutputTokens: 1, Content: &workload.Content{
		Segments: []workload.Segment{{ID: 1, Tokens: 16}}}}
	p.Note(r.Content, make([]uint32, 16))
	p.Arrived(0, &r)
	walk := workload.NewBlockKeys(&r, 16)
	key, _ := walk.Next()
	for k := range times {
		p.CacheChanged(&event.CacheChange{At: clock.Time(k), BlockSize: 16,
			Blocks: []event.CacheBlock{{Key: key, Stored: k%2 == 0}}})
	}
}

// dial opens a plain connection to a port.
func dial(t *testing.T, port int) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// greeting is that of a socket of a type, with the command READY.
func greeting(kind string) []byte {
	b := make([]byte, greetingBytes)
	b[0], b[9], b[10] = 0xff, 0x7f, 3
	copy(b[12:], "NULL")
	ready := "\x05READY\x0bSocket-Type\x00\x00\x00" + string(rune(len(kind))) + kind
	return append(append(b, 4, byte(len(ready))), ready...)
}

// TestPeers: peers that say nothing, that speak another protocol, or that announce a huge frame are harmless, and a
// subscriber that does not read loses messages while another one gets them.
func TestPeers(t *testing.T) {
	p, port := publisher(t, small, 1, func(o *Options) { o.HWM, o.Topic = 100, "kv@"+strings.Repeat("x", 900) })
	defer p.Close()
	dial(t, port) // says nothing
	fmt.Fprint(dial(t, port), "GET / HTTP/1.1\r\n\r\n")
	for kind, end := range map[string]int{"SUB": port, "DEALER": port + 1} {
		huge := dial(t, end)
		if _, err := huge.Write(append(greeting(kind), "\x02\x7f"+strings.Repeat("\xff", 7)...)); err != nil {
			t.Fatal(err)
		}
		huge.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := io.ReadAll(huge); err != nil {
			if e, ok := err.(net.Error); ok && e.Timeout() {
				t.Fatal("a peer that announces a huge frame stays connected")
			}
		}
	}
	stuck := dial(t, port)
	if _, err := stuck.Write(append(greeting("SUB"), "\x00\x01\x01"...)); err != nil { // subscribes to all, and never reads
		t.Fatal(err)
	}
	s := subscribe(t, p, port)[0]
	await(t, "both subscriptions", func() bool { return len(p.replicas[0].pub.(zmq4.Topics).Topics()) == 2 })
	for range 300 { // 15 MB, more than the buffers of the system
		stores(p, 50)
		for range 50 {
			if _, err := s.Recv(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if lost := p.Stats().Lost; lost == 0 {
		t.Error("no messages were dropped for the subscriber that does not read")
	}
}

// TestBusyPort: the error says which replica cannot listen where.
func TestBusyPort(t *testing.T) {
	port := freePort(t, 1)
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o := Options{Config: defaultConfig(), Output: output}
	o.Enable, o.Endpoint = true, fmt.Sprintf("tcp://*:%d", port)
	want := fmt.Sprintf("replica 0: cannot listen on 127.0.0.1:%d: bind: address already in use", port)
	if _, err := New(setup(t, small), o); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}

// TestConnect: an endpoint with a host is that of a subscriber that listens, and may start later.
func TestConnect(t *testing.T) {
	p, port := publisher(t, small, 1, func(o *Options) {
		o.Endpoint, o.ReplayEndpoint = strings.Replace(o.Endpoint, "*", "127.0.0.1", 1), ""
	})
	defer p.Close()
	s := zmq4.NewSub(context.Background())
	defer s.Close()
	if err := s.Listen(fmt.Sprintf("tcp://127.0.0.1:%d", port)); err != nil {
		t.Fatal(err)
	}
	if err := s.SetOption(zmq4.OptionSubscribe, ""); err != nil {
		t.Fatal(err)
	}
	await(t, "connection", func() bool {
		return p.Stats().Subscribers == 1 && len(p.replicas[0].pub.(zmq4.Topics).Topics()) == 1
	})
	stores(p, 1)
	if m, err := s.Recv(); err != nil || len(m.Frames) != 3 {
		t.Errorf("%q, %v", m.Frames, err)
	}
}

// TestQueues: a batch that finds the queue full leaves a gap in the sequence numbers, and batches that are not due are
// sent when the publisher closes.
func TestQueues(t *testing.T) {
	p, port := publisher(t, small, 1, func(o *Options) {
		o.MaxQueueSize = 3
		o.Wall = func(at clock.Time) time.Time { return time.Now().Add(time.Hour) }
	})
	s := subscribe(t, p, port)[0]
	stores(p, 1)
	await(t, "the first batch waits for its instant", func() bool { return p.Stats().Waiting == 0 })
	stores(p, 5)
	if s := p.Stats(); s.Dropped != 2 || s.Waiting != 3 || s.Batches != 0 {
		t.Errorf("%+v, want 2 dropped batches and 3 that wait", s)
	}
	p.flush()
	for _, want := range []byte{0, 1, 2, 3} {
		if m, err := s.Recv(); err != nil || m.Frames[1][7] != want {
			t.Fatalf("%q, %v: want number %d", m.Frames, err, want)
		}
	}
	p.replicas[0].close()
}

// TestDue: a batch is sent when the first iteration in flight ends.
func TestDue(t *testing.T) {
	began := time.Now()
	p, port := publisher(t, small, 1, func(o *Options) {
		o.Wall = func(at clock.Time) time.Time { return began.Add(time.Duration(at / clock.Time(clock.Nanosecond))) }
	})
	defer p.Close()
	s := subscribe(t, p, port)[0]
	began = time.Now()
	at := clock.Time(0)
	for _, lasts := range []clock.Duration{300 * clock.Millisecond, 60 * clock.Second} {
		p.Span(&event.Span{Progression: clock.Progression{Start: at, N: 1, First: int64(lasts) * clock.FemtosPerPico}})
		at = at.Add(lasts)
	}
	stores(p, 1)
	if _, err := s.Recv(); err != nil {
		t.Fatal(err)
	}
	if late := time.Since(began); late < 300*time.Millisecond || late > 30*time.Second {
		t.Errorf("sent after %v, want 300 ms", late)
	}
}

// TestFrames: the ends of messages do not depend on how the bytes arrive.
func TestFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent, want := make([]byte, greetingBytes), 1
		for range rapid.IntRange(0, 6).Draw(t, "frames") {
			n := rapid.SampledFrom([]int{0, 1, 5, 255, 256, 3000}).Draw(t, "length")
			more := rapid.Byte().Draw(t, "more") % 2
			if n > 255 || rapid.Bool().Draw(t, "long") {
				sent = binary.BigEndian.AppendUint64(append(sent, more|2), uint64(n))
			} else {
				sent = append(sent, more, byte(n))
			}
			sent = append(sent, make([]byte, n)...)
			want += 1 - int(more)
		}
		f := frames{left: greetingBytes}
		for rest := sent; len(rest) > 0; {
			part := rest[:rapid.IntRange(1, min(len(rest), 300)).Draw(t, "part")]
			rest = rest[len(part):]
			for len(part) > 0 {
				part = part[f.take(part):]
			}
		}
		if f.ended != want {
			t.Fatalf("%d messages, want %d", f.ended, want)
		}
	})
}
