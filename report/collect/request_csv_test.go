package collect

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"testing"

	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

func TestRequestsCSV(t *testing.T) {
	var b bytes.Buffer
	w := NewRequestWriter(&b)
	c := New(Options{Requests: w})
	late := served(1, 2, 3, 3, 1)
	late.Outcome, late.Tokens = event.TimedOut, 0
	late.FirstToken, late.LastToken, late.ClientFirst, late.ClientLast = clock.Never, clock.Never, clock.Never,
		clock.Never
	busy := *late
	busy.Request.ID, busy.Outcome, busy.Refusal = 2, event.Rejected, event.Busy
	play(c, served(0, 1.5, 1.75, 2.25, 11), late, &busy)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	cell := func(row int, name string) string { return rows[row][slices.Index(rows[0], name)] }
	for name, want := range map[string]string{
		"request": "0", "outcome": "completed", "arrival_s": "1.500000000", "client_last_s": "2.250000000",
		"ttft_ms": "250.000000", "tpot_ms": "50.000000", "e2e_ms": "750.000000", "output_tokens": "11", "asked_tokens": "11",
	} {
		if got := cell(1, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"first_token_s", "ttft_ms", "tpot_ms", "e2e_ms"} {
		if got := cell(2, name); got != "" {
			t.Errorf("%s of a request that left is %q", name, got)
		}
	}
	if cell(2, "outcome") != "timed_out" || cell(2, "reason") != "" || cell(3, "outcome") != "rejected" ||
		cell(3, "reason") != "busy" || len(rows) != 4 {
		t.Errorf("%q", rows)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestRequestsCSVKeepsErrors(t *testing.T) {
	w := NewRequestWriter(full{})
	for range 1000 {
		w.Finished(served(0, 0, 1, 2, 3))
	}
	if err := w.Flush(); err == nil || err.Error() != "full" {
		t.Error(err)
	}
}

func TestAppendThousandths(t *testing.T) {
	for want, v := range map[string]int64{"0.000000000": 0, "1.000000000": 1e12, "0.000000001": 1999,
		"12.345678901": 12345678901234, "9223372.036854775": math.MaxInt64} {
		if got := string(layout.AppendThousandths(nil, v, 9)); got != want {
			t.Errorf("%d is %q, want %q", v, got, want)
		}
	}
}

func TestSeries(t *testing.T) {
	c := New(Options{UsableBlocks: 100})
	queueRun(c, 500, 0, func(int) float64 { return .5 })
	c.Span(&event.Span{Progression: clock.Progression{Start: at(1), First: 1e15, N: 10}, Decodes: 3,
		BlockFemtos: clock.Mul64(50, 1e16), UsedBlocks: 50, MostBlocks: 50})
	points := c.Series()
	var arrivals, completions, tokens int64
	var busy, blocks float64
	for i, p := range points {
		arrivals += p.Arrivals
		completions += p.Completions
		tokens += p.OutputTokens
		busy += p.BusyFraction * (p.EndS - p.StartS)
		blocks += *p.KVUsageMean * (p.EndS - p.StartS)
		if i > 0 && p.StartS != points[i-1].EndS {
			t.Errorf("bucket %d starts at %v, the one before ends at %v", i, p.StartS, points[i-1].EndS)
		}
	}
	if arrivals != 500 || completions != 500 || tokens != 30 || math.Abs(busy-10) > 1e-9 || math.Abs(blocks-5) > 1e-9 ||
		len(points) > maxBuckets {
		t.Errorf("%d arrivals, %d completions, %d tokens, busy %v s, blocks %v s, %d buckets", arrivals, completions,
			tokens, busy, blocks, len(points))
	}
	var b bytes.Buffer
	if err := report.WriteSeries(&b, points); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != len(points)+1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if v, err := strconv.ParseFloat(rows[3][1], 64); err != nil || math.Abs(v-points[2].EndS) > 1e-9 {
		t.Errorf("%v, %v", rows[3], err)
	}
}

func TestVLLMBench(t *testing.T) {
	c := New(Options{SLO: limited("ttft", 99, 500*clock.Millisecond), Warmup: Warmup{Duration: clock.Second}})
	play(c, served(0, 0, .25, 1.25, 11), served(1, 2, 3, 4, 5))
	m := c.VLLMBench(BenchInfo{Date: "20260101-000000", Model: "m", RequestRate: math.Inf(1), Burstiness: 1})
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"completed": 2., "failed": 0., "duration": 4., "request_throughput": .5, "output_throughput": 4.,
		"total_token_throughput": 54.,
		"request_goodput":        .25, "request_rate": "inf", "max_concurrent_requests": 1., "mean_ttft_ms": 625.,
		"median_ttft_ms": 625.,
		"std_ttft_ms":    375., "mean_tpot_ms": 175., "p99.9_itl_ms": nil, "mean_e2el_ms": 1625.,
		"max_concurrency": nil,
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
}

func BenchmarkRequestWriter(b *testing.B) {
	w := NewRequestWriter(io.Discard)
	rec := served(12345, 123.456, 123.9, 140.1, 321)
	b.ReportAllocs()
	for b.Loop() {
		w.Finished(rec)
	}
}
