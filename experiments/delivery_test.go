package experiments_test

import (
	"bytes"
	"math"
	"testing"

	"clifftop/experiments"
)

// TestDeliveriesInOrder: 256 sequences of 48 µs each take longer than a step of 4 ms. No request gets its last token
// before its first one, and no column of requests.csv has a
// negative or wrapped time.
func TestDeliveriesInOrder(t *testing.T) {
	var b bytes.Buffer
	sum := mustRun(t, mustParse(t, `
step_time: {linear: {a_ms: 4, b_us: 0}}
engine: {max_num_seqs: 256}
overheads: {stream_per_sequence: 48us}
workload:
  arrivals: {process: all-at-once}
  input: {distribution: fixed, value: 20}
  output: {distribution: uniform, min: 1, max: 4}
run: {requests: 1000, warmup: none}
`), experiments.RunOptions{Check: true, Requests: &b}).Summary
	for _, r := range rows(t, b.String()) {
		if r["tpot_ms"] == "" { // one token
			continue
		}
		tpot := float(t, r["tpot_ms"])
		if tpot < 0 || tpot > 100 || float(t, r["client_last_s"]) < float(t, r["client_first_s"]) {
			t.Errorf("request %s: TPOT %s ms, first token at %s s, last at %s s", r["id"], r["tpot_ms"],
				r["client_first_s"], r["client_last_s"])
		}
	}
	if itl := sum.Latency.ITL; *itl.Mean < 10 || *itl.Max > 2*256*.048 {
		t.Errorf("gaps between chunks: mean %v ms, at most %v ms; want about 256 times 48 µs", *itl.Mean, *itl.Max)
	}
}

// TestTPOTOfTwoTokens: of answers with two tokens the gap is the time per output token.
func TestTPOTOfTwoTokens(t *testing.T) {
	sum := mustRun(t, mustParse(t, `
gpu: h100-sxm
workload:
  arrivals: {process: poisson, rate: 1000}
  input: {distribution: fixed, value: 20}
  output: {distribution: fixed, value: 2}
run: {requests: 20000, warmup: none}
`), experiments.RunOptions{Check: true}).Summary
	tpot, itl := sum.Latency.TPOT, sum.Latency.ITL
	// Some requests get their last token after the last arrival, when the window has ended.
	if tpot.N-itl.N > 100 || math.Abs(*tpot.Mean/(*itl.Mean)-1) > 1e-3 {
		t.Errorf("TPOT %v ms of %d requests, ITL %v ms of %d gaps", *tpot.Mean, tpot.N, *itl.Mean, itl.N)
	}
}
