package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"clifftop/internal/pq"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// Chunk is output that the client gets at once.
type Chunk struct {
	// Tokens is the number of output tokens in the chunk.
	Tokens int32
	// At is when the client gets it, Due the same on the wall clock.
	At  clock.Time
	Due time.Time
}

// ended is the error of a request that did not complete: it was rejected, its replica failed, or its client left.
type ended struct{ Record event.Record }

func (e *ended) Error() string {
	if r := &e.Record; r.Outcome == event.Rejected {
		return fmt.Sprintf("the request was rejected: %v", r.Refusal)
	}
	return fmt.Sprintf("the request has ended: %v", e.Record.Outcome)
}

// Stream is the output of a request. Next and Record may be called by one goroutine at a time.
type Stream struct {
	id     int64
	server *Server
	wake   chan struct{}

	mu     sync.Mutex
	ready  []Chunk // due and not taken
	err    error   // how the stream ends, after the chunks that are ready
	record event.Record
	closed bool

	// Of the server's goroutine.
	queued []event.Chunk // reported and not due
	sent   int32         // tokens of chunks that were due
	end    *event.Record // its record, if the end is known
}

// ID returns the request's number, from 0 in order of arrival.
func (t *Stream) ID() int64 { return t.id }

// Next waits until the client gets the next chunk. It returns io.EOF after the last one, an [*Ended] if the request did
// not complete, the error of the server if that has ended, and the error of ctx.
func (t *Stream) Next(ctx context.Context) (Chunk, error) {
	for {
		t.mu.Lock()
		if len(t.ready) > 0 {
			c := t.ready[0]
			t.ready = append(t.ready[:0], t.ready[1:]...)
			t.mu.Unlock()
			return c, nil
		}
		err := t.err
		t.mu.Unlock()
		if err != nil {
			return Chunk{}, err
		}
		select {
		case <-t.wake:
		case <-ctx.Done():
			return Chunk{}, ctx.Err()
		}
	}
}

// Buffered returns the number of chunks that Next returns without a wait.
func (t *Stream) Buffered() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ready)
}

// Record returns the result of the request after Next has returned io.EOF or an [*Ended].
func (t *Stream) Record() event.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.record
}

// Close ends the stream of a client that has gone. It aborts the request if it has not ended.
func (t *Stream) Close() {
	t.mu.Lock()
	over := t.closed || t.err != nil
	t.closed = true
	t.mu.Unlock()
	if !over {
		t.server.order(command{stream: t, leave: true})
	}
}

func (t *Stream) fail(err error) {
	t.mu.Lock()
	if t.err == nil {
		t.err = err
	}
	t.mu.Unlock()
	t.signal()
}

// signal wakes Next.
func (t *Stream) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// chunks gives the output of the simulation to the streams.
type chunks struct {
	event.Ignore
	s *Server
}

var _ event.ChunkObserver = (*chunks)(nil)

// Chunk implements [event.ChunkObserver].
func (o *chunks) Chunk(c event.Chunk) {
	t := o.s.streams[c.Request]
	if t == nil {
		return
	}
	if n := len(t.queued); n > 0 && t.queued[n-1].At == c.At {
		t.queued[n-1] = c
		return
	}
	t.queued = append(t.queued, c)
	o.s.push(c.At, t)
}

// Finished implements [event.Observer].
func (o *chunks) Finished(rec *event.Record) {
	s := o.s
	s.journal.ended(rec)
	t := s.streams[rec.Request.ID]
	if t == nil {
		return
	}
	end := *rec
	t.end = &end
	at := rec.ClientLast
	if rec.Outcome != event.Completed {
		at = s.sim.Now().Add(s.setup.Pools[0].Config.NetworkOut)
		t.queued = slices.DeleteFunc(t.queued, func(c event.Chunk) bool { return c.At > at })
	}
	s.push(at, t)
}

// push notes that a stream has a chunk or its end at an instant.
func (s *Server) push(at clock.Time, t *Stream) {
	s.pushed++
	s.due.Push(pq.Item[*Stream]{Key: int64(at), Tie: s.pushed, Value: t})
}

// deliver gives the streams what is due by now.
func (s *Server) deliver(now clock.Time) {
	for s.due.Len() > 0 && clock.Time(s.due.Top().Key) <= now {
		x := s.due.Pop()
		s.give(x.Value, clock.Time(x.Key))
	}
}

// give gives a stream its chunks and its end, as far as they are due at an instant.
func (s *Server) give(t *Stream, at clock.Time) {
	if s.streams[t.id] != t {
		return
	}
	t.mu.Lock()
	for len(t.queued) > 0 && t.queued[0].At <= at {
		c := t.queued[0]
		t.queued = append(t.queued[:0], t.queued[1:]...)
		if t.end != nil {
			c.Tokens = min(c.Tokens, t.end.Tokens) // the others have been lost with the replica
		}
		if c.Tokens > t.sent && !t.closed {
			t.ready = append(t.ready, Chunk{Tokens: c.Tokens - t.sent, At: c.At, Due: s.Wall(c.At)})
			t.sent = c.Tokens
		}
	}
	if t.end != nil && len(t.queued) == 0 {
		t.record, t.err = *t.end, io.EOF
		if t.end.Outcome != event.Completed {
			t.err = &ended{*t.end}
		}
		delete(s.streams, t.id)
	}
	t.mu.Unlock()
	t.signal()
}

// IsEnded returns the record if err is the error of a request that did not complete.
func IsEnded(err error) (*event.Record, bool) {
	if e := (*ended)(nil); errors.As(err, &e) {
		return &e.Record, true
	}
	return nil, false
}
