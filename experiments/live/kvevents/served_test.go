package kvevents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"clifftop/experiments/live"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// TestServed: a subscriber of a live server knows what its caches hold.
func TestServed(t *testing.T) {
	scenario := fmt.Sprintf(evicting, "vllm", ", enable_prefix_caching: true")
	var server *live.Server
	p, port := publisher(t, scenario, 2, func(o *Options) {
		o.Wall = func(at clock.Time) time.Time { return server.Wall(at) }
	})
	subscribers := subscribe(t, p, port)
	o := &caches{held: make(map[int]map[uint64]bool)}
	var err error
	server, err = live.New(setup(t, scenario), live.Options{Speed: 100, Observers: []event.Observer{p, o}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	// The server numbers requests in the order in which they arrive, and outputs depend on the numbers: the requests are
	// sent one after the other, the next one while those before are being served.
	x := conversations(3, 24, 1, 0)
	var all sync.WaitGroup
	for i, r := range x.requests {
		p.Note(r.Content, x.prompts[i])
		stream := server.Submit(r)
		all.Go(func() {
			for {
				if _, err := stream.Next(context.Background()); err != nil {
					if !errors.Is(err, io.EOF) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	all.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if s := p.Stats(); s.Unknown > 0 {
		t.Errorf("%+v: want no unknown blocks", s)
	}
	for i, sub := range subscribers {
		known := index{blocks: make(map[uint64]block)}
		for known.next < p.states[i].number {
			m, err := sub.Recv()
			if err != nil {
				t.Fatal(err)
			}
			known.apply(t, m.Frames[1], m.Frames[2])
		}
		known.check(t, o.keys(i), x)
	}
}
