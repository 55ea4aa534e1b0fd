package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

type plan struct {
	send func(context.Context, *client) []*call
	loop bool // it is a closed loop
}

// random returns the generator of the k-th stream, user or request.
func random(k int) *rand.Rand { return rand.New(rand.NewPCG(1, uint64(k))) }

// promptOf returns a random prompt.
func promptOf(r *rand.Rand, tokens int) []uint32 {
	p := make([]uint32, tokens)
	for i := range p {
		p[i] = 1000 + r.Uint32N(20_000)
	}
	return p
}

// pause sleeps unless the context is done.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// planStreams sends streams that begin within a time and then run side by side.
func (o *options) planStreams() plan {
	return plan{send: func(ctx context.Context, c *client) []*call {
		calls := make([]*call, o.streams)
		var all sync.WaitGroup
		for k := range calls {
			all.Go(func() {
				r := random(k)
				pause(ctx, time.Duration(r.Int64N(int64(o.over)+1)))
				calls[k] = c.do(ctx, promptOf(r, o.prompt), o.tokens, true)
			})
		}
		all.Wait()
		return calls
	}}
}

// planRate sends requests that do not stream, at a constant rate.
func (o *options) planRate() plan { return o.constant(false) }

// planStreamedRate sends requests that stream, at a constant rate.
func (o *options) planStreamedRate() plan { return o.constant(true) }

// constant sends requests at a constant rate.
func (o *options) constant(stream bool) plan {
	return plan{send: func(ctx context.Context, c *client) []*call {
		calls := make([]*call, int(o.rate*o.span.Seconds()))
		var all sync.WaitGroup
		for k := range calls {
			pause(ctx, time.Until(c.begun.Add(time.Duration(float64(k)/o.rate*float64(time.Second)))))
			all.Go(func() { calls[k] = c.do(ctx, promptOf(random(k), o.prompt), o.tokens, stream) })
		}
		all.Wait()
		return calls
	}}
}

// planLoop lets users send one request after the other, of random lengths around those of the flags. Their connections
// are opened before: the simulated clients have them. They begin within a second, because a client that sends all first
// requests at one instant is late itself.
func (o *options) planLoop() plan {
	return plan{loop: true, send: func(ctx context.Context, c *client) []*call {
		calls := make([]*call, o.users*o.requests)
		var connected, all sync.WaitGroup
		connected.Add(o.users)
		for u := range o.users {
			all.Go(func() {
				healthy(ctx, c.http, c.url)
				connected.Done()
				connected.Wait()
				r := random(u)
				pause(ctx, time.Duration(r.Int64N(int64(time.Second))))
				for k := range o.requests {
					prompt := promptOf(r, 1+o.prompt/2+r.IntN(o.prompt))
					calls[u*o.requests+k] = c.do(ctx, prompt, 1+o.tokens/2+r.IntN(o.tokens), true)
				}
			})
		}
		all.Wait()
		return calls
	}}
}
