package live_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"clifftop/experiments"
	"clifftop/experiments/live"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// TestExternalRouter: clients send each prompt to a prefill replica, and then the request to a decode replica, which
// loads the KV. The journal replays with the same chunks.
func TestExternalRouter(t *testing.T) {
	const scenario = "model: llama-3.1-8b\ngpu: h100\npools: [{name: p, role: prefill, replicas: 2}, " +
		"{name: d, role: decode, replicas: 2}]\ndisaggregation: {link_gb_per_s: 5}"
	o := &served{chunks: make(map[int64][]clock.Time), outcomes: make(map[event.Outcome]int),
		journal: filepath.Join(t.TempDir(), "journal.csv")}
	f, err := os.Create(o.journal)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := live.New(resolve(t, scenario), live.Options{Speed: 50, Journal: f})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var all sync.WaitGroup
	for k := range 10 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(2, uint64(k)))
			for range 6 {
				time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
				q := request(r)
				prompt := q
				prompt.OutputTokens, prompt.Replica = 1, 1+r.Int32N(2)
				prompt.Transfer = &workload.Transfer{Keeps: true}
				x := s.Submit(prompt)
				o.client(x, rand.New(stay{}))
				q.Replica, q.Transfer = 3+r.Int32N(2), &workload.Transfer{From: prompt.Replica, Of: x.ID()}
				o.client(s.Submit(q), r)
			}
		})
	}
	all.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	recorder := new(simtest.ChunkRecorder)
	_, err = experiments.RunSetup(context.Background(), resolve(t, scenario, "workload.trace.file="+o.journal),
		experiments.RunOptions{Check: true, Observers: []event.Observer{recorder}})
	if err != nil {
		t.Fatal(err)
	}
	for id, at := range o.chunks {
		if want := recorder.ChunksOf(id); !slices.Equal(at, want) {
			t.Errorf("request %d: chunks at %v, replayed at %v", id, at, want)
		}
	}
	loaded := 0
	for i := range recorder.Records {
		if rec := &recorder.Records[i]; rec.PulledTokens > 0 {
			loaded++
		}
	}
	if t.Logf("%v, %d loaded", o.outcomes, loaded); loaded < 40 {
		t.Errorf("%d of 60 requests loaded their KV", loaded)
	}
}

// stay is a source of random numbers with which a client does not leave.
type stay struct{}

// Uint64 implements [rand.Source].
func (stay) Uint64() uint64 { return 1<<64 - 1 }
