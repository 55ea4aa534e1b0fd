package live_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"clifftop/experiments"
	"clifftop/experiments/live"
	"clifftop/experiments/scenario"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// resolve resolves a scenario with settings.
func resolve(t *testing.T, text string, settings ...string) *scenario.Setup {
	t.Helper()
	var sets []scenario.Setting
	for _, text := range settings {
		set, err := scenario.ParseSetting(text)
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, set)
	}
	s, err := scenario.Parse("test.yaml", []byte(text), sets...)
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.ResolveServed()
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// served is what a server did: its journal, and the instants at which clients got chunks.
type served struct {
	journal  string
	mu       sync.Mutex
	chunks   map[int64][]clock.Time
	outcomes map[event.Outcome]int
}

// scenarios have what may differ between a live run and a replay.
var scenarios = map[string]string{
	"engine":      "model: llama-3.1-8b\ngpu: h100",
	"network":     "model: llama-3.1-8b\ngpu: h100\noverheads: {network_in: 7ms, network_out: 11ms}",
	"fleet":       "model: llama-3.1-8b\ngpu: h100\ndeployment: {replicas: 3, router: kv-aware}",
	"limit":       "model: llama-3.1-8b\ngpu: h100\nengine: {max_num_seqs: 8, max_num_queued_reqs: 8}",
	"interval":    "model: llama-3.1-8b\ngpu: h100\nengine: {stream_interval: 4}",
	"sglang":      "model: llama-3.1-8b\ngpu: h100\nengine: {policy: sglang}",
	"pipeline":    "model: llama-3.1-8b\ngpu: h100\ndeployment: {pipeline_parallel_size: 2}",
	"speculative": "model: llama-3.1-8b\ngpu: h100\nengine: {speculative: {method: eagle, num_speculative_tokens: 3, acceptance: 0.7}}",
	"disaggregated": "model: llama-3.1-8b\ngpu: h100\npools: [{name: p, role: prefill, replicas: 2}, " +
		"{name: d, role: decode, replicas: 2}]\ndisaggregation: {link_gb_per_s: 5}",
	"failures": "model: llama-3.1-8b\ngpu: h100\ndeployment: {replicas: 2, router: least-requests}\n" +
		"lifecycle: {failures: [{replica: 0, at: 8s, kind: crash, for: 20s}]}",
	"autoscaled": "model: llama-3.1-8b\ngpu: h100\ndeployment: {router: least-requests}\n" +
		"lifecycle: {cold_start: 2s, autoscale: {policy: keda, min: 1, max: 4, metric: concurrency, target: 3, " +
		"polling_interval: 1s}}",
}

// TestReplay serves random requests and clients that leave, and simulates the same requests afterwards: every chunk
// comes at the same picosecond.
func TestReplay(t *testing.T) {
	for name, text := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := serve(t, resolve(t, text), name == "fleet")
			got.replay(t, resolve(t, text, "workload.trace.file="+got.journal))
			t.Logf("%v", got.outcomes)
			if got.outcomes[event.Completed] < 50 || got.outcomes[event.Cancelled] == 0 {
				t.Errorf("%v: want completed and cancelled requests", got.outcomes)
			}
		})
	}
}

// serve serves 20 simulated clients for some time, which address replicas themselves or not.
func serve(t *testing.T, u *scenario.Setup, addressed bool) *served {
	t.Helper()
	return drive(t, u, 20, func(s *live.Server, o *served, r *rand.Rand) {
		for range 8 {
			time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
			q := request(r)
			if addressed {
				q.Replica = r.Int32N(4) // 0 is the router
			}
			o.client(s.Submit(q), r)
		}
	})
}

// drive runs a server with a number of clients, and ends it when they have ended.
func drive(t *testing.T, u *scenario.Setup, clients int, client func(*live.Server, *served, *rand.Rand)) *served {
	t.Helper()
	o := &served{chunks: make(map[int64][]clock.Time), outcomes: make(map[event.Outcome]int),
		journal: filepath.Join(t.TempDir(), "journal.csv")}
	f, err := os.Create(o.journal)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := live.New(u, live.Options{Speed: 50, Journal: f})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var all sync.WaitGroup
	for k := range clients {
		all.Go(func() { client(s, o, rand.New(rand.NewPCG(1, uint64(k)))) })
	}
	all.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return o
}

// replay simulates the journal. Every chunk that was served must come at the same picosecond.
func (o *served) replay(t *testing.T, u *scenario.Setup) *simtest.ChunkRecorder {
	t.Helper()
	recorder := new(simtest.ChunkRecorder)
	_, err := experiments.RunSetup(context.Background(), u,
		experiments.RunOptions{Check: true, Observers: []event.Observer{recorder}})
	if err != nil {
		t.Fatal(err)
	}
	for id, at := range o.chunks {
		if want := recorder.ChunksOf(id); !slices.Equal(at, want) {
			t.Errorf("request %d: chunks at %v, replayed at %v", id, at, want)
		}
	}
	return recorder
}

// request returns a random request. Some share their prompts' beginnings.
func request(r *rand.Rand) workload.Request {
	q := workload.Request{InputTokens: 1 + r.Int32N(3000), OutputTokens: 1 + r.Int32N(300)}
	if r.IntN(2) == 0 {
		q.InputTokens += 512
		q.Content = &workload.Content{Segments: []workload.Segment{{ID: r.Uint64N(3), Tokens: 512}}}
	}
	return q
}

// client reads the stream, and leaves in the middle now and then.
func (o *served) client(x *live.Stream, r *rand.Rand) {
	leave := -1
	if r.IntN(4) == 0 {
		leave = r.IntN(40)
	}
	var at []clock.Time
	for n := 0; ; n++ {
		if n == leave {
			x.Close()
			o.mu.Lock()
			o.outcomes[event.Cancelled]++
			o.mu.Unlock()
			return
		}
		c, err := x.Next(context.Background())
		if err == nil {
			at = append(at, c.At)
			continue
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if rec, ok := live.IsEnded(err); ok {
			o.outcomes[rec.Outcome]++
			return
		}
		if !errors.Is(err, io.EOF) {
			panic(err)
		}
		o.outcomes[event.Completed]++
		o.chunks[x.ID()] = at
		return
	}
}
