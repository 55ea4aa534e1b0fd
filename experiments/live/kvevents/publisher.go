package kvevents

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"clifftop/experiments/scenario"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// Options says what is published, and where.
type Options struct {
	Config
	// Host is the address that * in an endpoint stands for; empty is 127.0.0.1.
	Host string
	// Model is {model} in a topic.
	Model string
	// Addresses are {address} in a topic, by replica: where its API is served.
	Addresses []string
	// Output returns token k of the output of a request. It must be safe for concurrent use.
	Output func(request int64, k int) uint32
	// Adapter returns the name of a LoRA adapter; nil is "adapter-1" and so on. It must be safe for concurrent use.
	Adapter func(number int32) string
	// Wall returns the instant of the wall clock that corresponds to a simulated one; nil sends all at once. It is
	// first called when the simulation runs, so that it may use a server that is made with the publisher.
	Wall func(clock.Time) time.Time
}

// Publisher publishes the KV events of the replicas of a scenario. It is an observer of the simulation.
type Publisher struct {
	book     book
	replicas []*replica // nil for one without prefix cache
	states   []state    // by replica
	wall     func(clock.Time) time.Time
	closing  chan struct{}
	dropped  atomic.Int64
	unknown  atomic.Int64
}

var (
	_ event.CacheObserver = (*Publisher)(nil)
	_ event.SpanObserver  = (*Publisher)(nil)
)

// state is the state of a replica in the simulation's goroutine.
type state struct {
	number uint64              // of the next batch
	ends   []clock.Time        // of the iterations in flight
	hidden map[uint64]struct{} // blocks that were not published, because their tokens are not known
}

// Stats counts what was published. Blocks whose tokens are not known are left out and counted as unknown.
type Stats struct {
	Batches, Events int64 // sent
	Dropped         int64 // batches that found a queue full
	Lost            int64 // messages that a subscriber did not get because it did not read
	Unknown         int64 // blocks
	Waiting         int   // batches that wait to be sent
	Subscribers     int64 // connections
}

// New opens the sockets of all replicas that have a prefix cache. The configuration must be enabled.
func New(u *scenario.Setup, o Options) (*Publisher, error) {
	if !o.Enabled() {
		return nil, errors.New("KV events: the configuration does not enable them: set enable_kv_cache_events")
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Output == nil {
		return nil, errors.New("KV events: Options.Output is missing")
	}
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.Adapter == nil {
		o.Adapter = func(number int32) string { return "adapter-" + strconv.Itoa(int(number)) }
	}
	p := &Publisher{wall: o.Wall, closing: make(chan struct{})}
	p.book.blocks, p.book.live = make(map[uint64]entry), make(map[int64]*text)
	if err := p.open(u, &o); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// open opens the sockets of the replicas.
func (p *Publisher) open(u *scenario.Setup, o *Options) error {
	replicas := u.StandingFleet(false).Replicas
	p.replicas, p.states = make([]*replica, len(replicas)), make([]state, len(replicas))
	i := 0
	for _, pool := range u.Pools {
		for k := range pool.Engines() {
			kind, ok := kindOf(&replicas[i])
			if !ok {
				i++
				continue
			}
			if !slices.Contains(p.book.kinds, kind) {
				p.book.kinds = append(p.book.kinds, kind)
			}
			r := &replica{
				encoder: encoder{asMap: o.Format == formatMap || o.Format == "" && !kind.radix,
					rank: k % max(1, pool.Ranks), output: o.Output, adapter: o.Adapter},
				topic:   []byte(o.topicOf(i)),
				waiting: newQueue[*batch](o.MaxQueueSize, math.MaxInt),
			}
			if err := r.open(&o.Config, i, o.Host); err != nil {
				r.close()
				return err
			}
			p.replicas[i] = r
			go r.run(p.closing)
			i++
		}
	}
	if len(p.book.kinds) == 0 {
		return errors.New("KV events: no replica has a prefix cache: remove enable_prefix_caching: false")
	}
	return nil
}

func (o *Options) topicOf(i int) string {
	address := ""
	if i < len(o.Addresses) {
		address = o.Addresses[i]
	}
	return strings.NewReplacer("{replica}", strconv.Itoa(i), "{address}", address, "{model}", o.Model).Replace(o.Topic)
}

// Note gives the tokens of a prompt to the request with this content that arrives next. It must be called before the
// request is submitted, once for each request; the slice must not change until the request has ended. It may be called
// by any goroutine.
func (p *Publisher) Note(c *workload.Content, prompt []uint32) {
	if c != nil {
		p.book.note(c, prompt)
	}
}

// Arrived implements [event.Observer].
func (p *Publisher) Arrived(at clock.Time, r *workload.Request) {
	p.book.forget(at)
	p.book.arrived(r)
}

// Finished implements [event.Observer].
func (p *Publisher) Finished(rec *event.Record) { p.book.finished(rec.Request.ID, rec.Released) }

// Span implements [event.SpanObserver].
func (p *Publisher) Span(s *event.Span) {
	x := &p.states[s.Replica]
	if len(x.ends) == mostInFlight {
		x.ends = append(x.ends[:0], x.ends[1:]...)
	}
	x.ends = append(x.ends, s.End(s.N))
}

// mostInFlight is more than the number of iterations that an engine has in flight.
const mostInFlight = 128

// past drops the ends of iterations up to an instant, and returns the others.
func (x *state) past(at clock.Time) []clock.Time {
	n := 0
	for n < len(x.ends) && x.ends[n] <= at {
		n++
	}
	x.ends = append(x.ends[:0], x.ends[n:]...)
	return x.ends
}

// CacheChanged implements [event.CacheObserver].
func (p *Publisher) CacheChanged(c *event.CacheChange) {
	p.book.forget(c.At)
	r, x := p.replicas[c.Replica], &p.states[c.Replica]
	if r == nil {
		return
	}
	b := &batch{number: x.number, changes: p.changes(x, c)}
	if len(b.changes) == 0 {
		return
	}
	if p.wall != nil {
		due := c.At
		if ends := x.past(c.At); len(ends) > 0 && !c.Reset {
			due = ends[0]
		}
		b.due = p.wall(due)
	}
	x.number++
	if !r.waiting.push(b, 0) {
		p.dropped.Add(1) // the number is missing then
	}
}

// changes returns the events of a change. Blocks that follow each other in a text are one event, as they are in vLLM.
func (p *Publisher) changes(x *state, c *event.CacheChange) (list []change) {
	if c.Reset {
		list = append(list, change{kind: clearedKind})
		x.hidden = nil
	}
	for i := range c.Blocks {
		b := &c.Blocks[i]
		if !b.Stored {
			if _, ok := x.hidden[b.Key]; ok {
				delete(x.hidden, b.Key)
				continue
			}
			list = append(list, change{kind: removedKind, keys: []uint64{b.Key}})
			continue
		}
		t := p.book.find(b.Key)
		if t == nil {
			p.unknown.Add(1)
			if x.hidden == nil {
				x.hidden = make(map[uint64]struct{})
			}
			x.hidden[b.Key] = struct{}{}
			continue
		}
		if n := len(list) - 1; n >= 0 && list[n].follows(b, t) {
			list[n].keys = append(list[n].keys, b.Key)
			continue
		}
		list = append(list, change{kind: storedKind, keys: []uint64{b.Key}, parent: b.Parent, place: b.Place,
			size: c.BlockSize, text: t})
	}
	return list
}

func (c *change) follows(b *event.CacheBlock, t *text) bool {
	return c.kind == storedKind && c.text == t && b.Place == c.place+int32(len(c.keys)) &&
		c.keys[len(c.keys)-1] == b.Parent
}

// Stats returns what was published so far. It may be called by any goroutine.
func (p *Publisher) Stats() (s Stats) {
	s.Dropped, s.Unknown = p.dropped.Load(), p.unknown.Load()
	for _, r := range p.replicas {
		if r == nil {
			continue
		}
		r.mu.Lock()
		s.Batches += r.messages
		s.Events += r.events
		r.mu.Unlock()
		s.Lost += r.peers.dropped.Load()
		s.Subscribers += r.peers.here.Load()
		s.Waiting += r.waiting.len()
	}
	return s
}

// closeTime is how long Close waits for batches to be sent.
const closeTime = time.Second

// Close sends the batches that wait, for a second at most, and closes the sockets. Like vLLM, it does not wait until
// subscribers have received them. No event may follow. It may be called once.
func (p *Publisher) Close() {
	p.flush()
	for _, r := range p.replicas {
		if r != nil {
			r.close()
		}
	}
}

// flush sends the batches that wait.
func (p *Publisher) flush() {
	close(p.closing)
	for _, r := range p.replicas {
		if r != nil {
			r.waiting.close()
		}
	}
	late, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	for _, r := range p.replicas {
		if r == nil {
			continue
		}
		select {
		case <-r.ended:
		case <-late.Done():
		}
	}
}
