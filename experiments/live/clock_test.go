package live

import (
	"context"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"clifftop/experiments/scenario"
	"clifftop/workload"
)

// TestClockGoesBack: the clocks of two processors differ, so that the wall clock seems to go back. Events that have
// been handled stay handled.
func TestClockGoesBack(t *testing.T) {
	s, err := scenario.Parse("scenario.yaml", []byte("model: llama-3.1-8b\ngpu: h100"))
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.ResolveServed()
	if err != nil {
		t.Fatal(err)
	}
	x, err := New(u, Options{Speed: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(1, 2))
	x.since = func(begun time.Time) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return max(0, time.Since(begun)-time.Duration(r.IntN(50))*time.Microsecond)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- x.Run(ctx) }()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				stream := x.Submit(workload.Request{InputTokens: 100, OutputTokens: 5})
				for {
					if _, err := stream.Next(ctx); err != nil {
						if err != io.EOF || stream.Record().Tokens != 5 {
							t.Error(err)
						}
						break
					}
				}
				stream.Close()
			}
		})
	}
	all.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
