package kvevents

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"
)

type replica struct {
	encoder
	topic   []byte
	waiting *queue[*batch]
	steps   int // batches that can be replayed
	pub     zmq4.Socket
	replay  zmq4.Socket // or nil
	peers   *peers
	ended   chan struct{}
	cancel  context.CancelFunc

	mu       sync.Mutex
	sent     []message // that can be replayed; the ring of the latest
	oldest   int
	messages int64
	events   int64
}

// batch has the changes by one event of the simulation.
type batch struct {
	number  uint64
	due     time.Time // when it is sent
	changes []change
}

// message is a batch that was sent.
type message struct {
	number  uint64
	payload []byte
}

func (r *replica) open(c *Config, number int, host string) error {
	ctx, cancel := context.WithCancel(context.Background())
	r.peers, r.cancel, r.ended = &peers{hwm: c.HWM}, cancel, make(chan struct{})
	r.steps = c.BufferSteps
	e, err := parseEndpoint("endpoint", c.Endpoint)
	if err != nil {
		return err
	}
	registerTransport()
	quiet := zmq4.WithLogger(log.New(io.Discard, "", 0))
	r.pub = zmq4.NewPub(context.WithValue(ctx, peersKey{}, r.peers), quiet, zmq4.WithDialerMaxRetries(-1),
		zmq4.WithDialerRetry(redial), zmq4.WithAutomaticReconnect(!e.listens()))
	if err := r.pub.SetOption(zmq4.OptionHWM, c.HWM); err != nil {
		return err
	}
	address, err := e.of(number, host)
	if err != nil {
		return err
	}
	if e.listens() {
		if err := r.pub.Listen(guarded + "://" + address); err != nil {
			return fmt.Errorf("KV events of replica %d: cannot listen on %s: %w", number, address, cause(err))
		}
	} else {
		go func() { _ = r.pub.Dial(guarded + "://" + address) }() // until it succeeds or the socket is closed
	}
	if c.ReplayEndpoint == "" {
		return nil
	}
	if e, err = parseEndpoint("replay_endpoint", c.ReplayEndpoint); err != nil {
		return err
	}
	if e.host != "*" { // a replay socket always listens
		host, e.host = e.host, "*"
	}
	if address, err = e.of(number, host); err != nil {
		return err
	}
	r.replay = zmq4.NewRouter(context.WithValue(ctx, peersKey{}, new(peers)), quiet)
	if err := r.replay.Listen(guarded + "://" + address); err != nil {
		return fmt.Errorf("KV events of replica %d: cannot listen on %s for replays: %w", number, address, cause(err))
	}
	go r.answer()
	return nil
}

// redial is the time between attempts to connect to a subscriber.
const redial = time.Second

// run sends batches until the queue is closed and empty.
func (r *replica) run(closing <-chan struct{}) {
	defer close(r.ended)
	for {
		b, ok := r.waiting.pop(func(*batch) int { return 0 })
		if !ok {
			return
		}
		if wait := time.Until(b.due); wait > 0 {
			select {
			case <-time.After(wait):
			case <-closing:
			}
		}
		r.publish(b)
	}
}

func (r *replica) publish(b *batch) {
	payload := r.batch(float64(time.Now().UnixMicro())/1e6, b.changes)
	r.mu.Lock()
	r.messages++
	r.events += int64(len(b.changes))
	if r.replay != nil {
		m := message{b.number, payload}
		if len(r.sent) < r.steps {
			r.sent = append(r.sent, m)
		} else {
			r.sent[r.oldest] = m
			r.oldest = (r.oldest + 1) % r.steps
		}
	}
	r.mu.Unlock()
	// A message is dropped if there are too many, and no call fails otherwise.
	_ = r.pub.SendMulti(zmq4.NewMsgFrom(r.topic, binary.BigEndian.AppendUint64(nil, b.number), payload))
}

// answer repeats batches to clients that ask for them.
func (r *replica) answer() {
	for {
		m, err := r.replay.Recv()
		if err != nil {
			return
		}
		if len(m.Frames) != 3 || len(m.Frames[2]) != 8 {
			continue // vLLM ignores other requests, too
		}
		client := m.Frames[0]
		for _, s := range r.since(binary.BigEndian.Uint64(m.Frames[2])) {
			if r.reply(client, s.number, s.payload) != nil {
				break
			}
		}
		_ = r.reply(client, math.MaxUint64, nil) // -1 ends the list
	}
}

// reply sends a batch to a client.
func (r *replica) reply(client []byte, number uint64, payload []byte) error {
	return r.replay.SendMulti(zmq4.NewMsgFrom(client, nil, binary.BigEndian.AppendUint64(nil, number), payload))
}

// since returns the messages from a number on that can be replayed.
func (r *replica) since(number uint64) (list []message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.sent {
		if m := r.sent[(r.oldest+k)%len(r.sent)]; m.number >= number {
			list = append(list, m)
		}
	}
	return list
}

func (r *replica) close() {
	r.cancel()
	if r.pub != nil {
		_ = r.pub.Close()
	}
	if r.replay != nil {
		_ = r.replay.Close()
	}
}

// cause is an error without what the library writes before it.
func cause(err error) error {
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		return op.Err
	}
	return err
}
