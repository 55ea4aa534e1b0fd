package live_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"clifftop/experiments/live"
	"clifftop/workload"
)

// TestExternalRouter: clients send each prompt to a prefill replica, and then the request to a decode replica, which
// loads the KV. The journal replays with the same chunks.
func TestExternalRouter(t *testing.T) {
	const scenario = "model: llama-3.1-8b\ngpu: h100\npools: [{name: p, role: prefill, replicas: 2}, " +
		"{name: d, role: decode, replicas: 2}]\ndisaggregation: {link_gb_per_s: 5}"
	o := drive(t, resolve(t, scenario), 10, func(s *live.Server, o *served, r *rand.Rand) {
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
	recorder := o.replay(t, resolve(t, scenario, "workload.trace.file="+o.journal))
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
