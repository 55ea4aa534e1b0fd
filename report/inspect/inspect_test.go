package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"clifftop/internal/testenv"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/workload"
	"clifftop/workload/trace"
)

// inspectPublished inspects a public trace, if it is there.
func inspectPublished(t *testing.T, file string, load trace.Load) *Result {
	t.Helper()
	path := testenv.Traces(t, file)
	changed, err := trace.Transform(func() (*trace.File, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		return trace.Open(f, file, trace.Options{})
	}, load)
	if err != nil {
		t.Fatal(err)
	}
	x, err := Trace(changed, 0, changed.Classes)
	if err != nil {
		t.Fatal(err)
	}
	x.Account(changed.File())
	return x
}

// TestInspectPublished compares with figures of public traces that were worked out by other means.
func TestInspectPublished(t *testing.T) {
	for _, c := range []struct {
		file string
		want string
	}{
		{"AzureLLMInferenceTrace_conv.csv.gz",
			"19366 rows 3502 s; in 1155 1020 2735 4142 14050; out 211 129 424 601 1000; rank +0.07; 5.53/s CV 1.09 IDC 1.39 " +
				"3.9 16 lag 0.71"},
		{"AzureLLMInferenceTrace_code.csv.gz",
			"8819 rows 3436 s; in 2048 1469 5194 7436 7437; out 28 13 55 252 1899; rank -0.02; 2.57/s CV 13.2 IDC 13.2 72 " +
				"167 lag 0.47"},
		{"mooncake_fast25_conversation_trace.jsonl.gz",
			"12031 rows 3537 s; in 12035 6909 27367 85401 126195; out 343 350 597 1120 2000; rank +0.07; 3.40/s CV 3.03 IDC " +
				"7.90 2.1 2.9 lag 0.04"},
		{"mooncake_fast25_synthetic_trace.jsonl.gz",
			"3993 rows 1022 s; in 15325 11587 38611 66456 191378; out 149 69 389 769 893; rank -0.52; 3.91/s CV 1.01 IDC " +
				"1.09 1.2 1.3 lag -0.07"},
	} {
		x := inspectPublished(t, c.file, trace.Load{Dequantise: trace.Off})
		in, out, a := x.InputTokens, x.OutputTokens, x.Arrivals
		got := fmt.Sprintf("%d rows %.0f s; in %.0f %.0f %.0f %.0f %.0f; out %.0f %.0f %.0f %.0f %.0f; rank %+.2f; %.2f/s CV %.2f IDC %.2f %.1f %.1f lag %.2f", x.Requests, x.SpanS,
			*in.Mean, *in.P50, *in.P90, *in.P99, *in.Max, *out.Mean, *out.P50, *out.P90, *out.P99, *out.Max,
			*x.Spearman,
			*x.RequestsPerS, *a.GapCV, *a.Dispersion[0].Index, *a.Dispersion[1].Index, *a.Dispersion[2].Index,
			*a.Correlation)
		var g, w float64
		gots, wants := strings.Fields(got), strings.Fields(c.want)
		for i := range wants {
			if _, err := fmt.Sscan(strings.Trim(wants[i], ";/s"), &w); err != nil {
				continue
			}
			if _, err := fmt.Sscan(strings.Trim(gots[i], ";/s"), &g); err != nil {
				t.Fatal(got)
			}
			// Percentiles far out depend on how one interpolates; indices are given with two digits.
			if math.Abs(g-w) > 0.005*math.Abs(w)+0.006 && (math.Abs(w) > 200 || math.Abs(g-w) > 0.06*math.Abs(w)) {
				t.Errorf("%s: %s, want %s\n got %s\nwant %s", c.file, gots[i], wants[i], got, c.want)
			}
		}
	}
	x := inspectPublished(t, "mooncake_fast25_conversation_trace.jsonl.gz", trace.Load{Seed: 1})
	if a := x.Arrivals; math.Abs(*a.GapCV-1.01) > 0.02 || math.Abs(*a.Dispersion[0].Index-1.02) > 0.06 ||
		math.Abs(*a.Dispersion[1].Index-1.5) > 0.15 || a.TogetherS != nil {
		t.Errorf("de-quantised: CV %v, dispersion %v and %v", *a.GapCV, *a.Dispersion[0].Index, *a.Dispersion[1].Index)
	}
}

// TestInspectPublishedPrefixes compares hit ratios and the LRU curve of Mooncake's traces.
func TestInspectPublishedPrefixes(t *testing.T) {
	for _, c := range []struct {
		file                string
		accesses            int64
		blocks, tokens, war float64
		lru                 [5]float64 // at 1k, 3k, 10k, 30k, 100k blocks
		distance, far       float64
		reuse, late         float64
	}{
		{"mooncake_fast25_conversation_trace.jsonl.gz", 288500, 36.6, 37.4, 40.9,
			[5]float64{4.5, 6.5, 21.1, 32.6, 36.4}, 8.4e3, 37.6e3, 114, 519},
		{"mooncake_fast25_synthetic_trace.jsonl.gz", 121877, 64.0, 65.1, 93.7, [5]float64{8.3, 18.8, 42.4, 62.4, 64.0},
			6.3e3, 25.5e3, 59, 282},
	} {
		p := inspectPublished(t, c.file, trace.Load{Dequantise: trace.Off}).Prefix
		near := func(what string, got, want, by float64) {
			if math.Abs(got-want) > by {
				t.Errorf("%s: %s %.4g, want %.4g", c.file, what, got, want)
			}
		}
		// A last, partial block counts as shared there where a prompt is repeated whole: 0.2 % of the blocks.
		near("accesses", float64(p.Accesses), float64(c.accesses), 0)
		near("hit blocks", 100**p.HitBlocks, c.blocks, 0.25)
		near("hit tokens", 100**p.HitTokens, c.tokens, 0.1)
		near("warm hits", 100**p.WarmHitBlocks, c.war, 0.7)
		for i, l := range p.LRU[2:] {
			if i < len(c.lru) {
				near(fmt.Sprintf("hits of %d blocks", l.Blocks), 100**l.Hit, c.lru[i], 0.25)
			}
		}
		near("p50 distance", *p.StackDistance.P50, c.distance, 0.02*c.distance)
		near("p95 distance", *p.StackDistance.P95, c.far, 0.02*c.far)
		near("p50 reuse", *p.Reuse.P50, c.reuse, 0.01*c.reuse)
		near("p90 reuse", *p.Reuse.P90, c.late, 0.01*c.late)
	}
}

// rows is a trace in memory.
type rows []trace.Row

func (r *rows) Next() (trace.Row, error) {
	if len(*r) == 0 {
		return trace.Row{}, io.EOF
	}
	first := (*r)[0]
	*r = (*r)[1:]
	return first, nil
}

func noClasses() []string { return nil }

// TestInspectByHand works everything out for a few rows.
func TestInspectByHand(t *testing.T) {
	shared := &workload.Content{Segments: []workload.Segment{{ID: 1, Tokens: 20}}}
	row := func(second float64, input, output, session int32, class uint16, c *workload.Content) trace.Row {
		r := trace.Row{}
		r.Arrival, r.InputTokens, r.OutputTokens, r.Session, r.Class, r.Content = clock.Time(clock.FromSeconds(second)),
			input, output, session, class, c
		return r
	}
	list := rows{
		row(10, 25, 1, 1, 1, shared), row(10, 10, 5, 0, 2, nil), row(12, 40, 2, 1, 1, shared),
		row(16, 20, 4, 2, 1, shared),
	}
	list[3].Then = []trace.Turn{{Wait: clock.Second, InputTokens: 30, OutputTokens: 3, Content: shared}}
	x, err := Trace(&list, 10, func() []string { return []string{"", "a", "b"} })
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%d in %v s, %v/s, in %v %v %v %v, mode %v, rank %.3f of %d, gap CV %.4f max %v zeros %d",
		x.Requests, x.SpanS, *x.RequestsPerS,
		x.InputTokens.Total, *x.InputTokens.Mean, *x.InputTokens.P50, *x.InputTokens.P90, *x.InputTokens.Mode,
		*x.Spearman, x.SpearmanN, *x.Arrivals.GapCV, *x.Arrivals.MaxGapS, x.Arrivals.ZeroGaps)
	// Gaps 0, 2, 4; inputs 10 20 25 30 40; ranks of the answers 4 3 0 2 1 in that order.
	if want := "5 in 6 s, 0.5/s, in 125 25 25 36, mode 10, rank -0.700 of 5, gap CV 0.8165 max 4 zeros 1"; got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
	s := x.Sessions
	if s.Sessions != 2 || s.Requests != 4 || *s.MeanTurns != 2 || s.Waiting != 1 || *s.Gaps.Mean != 2 {
		t.Errorf("sessions %+v", s)
	}
	// Blocks of 10: 3 + 1 + 4 + 2 + 3 used; the two shared ones are used again three times.
	p := x.Prefix
	if p.Accesses != 13 || p.Unique != 7 || math.Abs(*p.HitTokens-60./125) > 1e-12 || p.LRU[0].Blocks != 100 ||
		*p.LRU[0].Hit != 6./13 {
		t.Errorf("prefixes %+v", p)
	}
	if len(x.Classes) != 2 || x.Classes[0].Name != "a" || x.Classes[0].Requests != 4 ||
		*x.Classes[1].MeanInputTokens != 10 {
		t.Errorf("classes %+v", x.Classes)
	}
	if n := len(x.Series); x.Series[0].Requests != 2 || x.Series[0].InputTokens != 35 || x.Series[n-1].Requests != 2 {
		t.Errorf("series %+v", x.Series)
	}
	b, err := json.Marshal(x)
	if err != nil || !strings.Contains(string(b), `"schema":"clifftop.inspect/1"`) ||
		!strings.Contains(string(b), `"index":null`) {
		t.Errorf("%v: %s", err, b)
	}
}

// TestInspectLittle: nothing, one row, and rows at one instant have null where there is nothing to tell.
func TestInspectLittle(t *testing.T) {
	for n := range 4 {
		var list rows
		for range n {
			r := trace.Row{}
			r.InputTokens, r.OutputTokens = 7, 3
			list = append(list, r)
		}
		x, err := Trace(&list, 0, noClasses)
		if err != nil || x.RequestsPerS != nil || x.Arrivals.GapCV != nil || x.Spearman != nil || x.Prefix != nil ||
			x.Sessions != nil || (x.InputTokens.P50 == nil) != (n == 0) {
			t.Errorf("%d rows: %v, %+v", n, err, x)
		}
		for _, write := range []func(io.Writer) error{x.WriteTable, x.WriteMarkdown} {
			var b strings.Builder
			if err := write(&b); err != nil || strings.Contains(b.String(), "NaN") ||
				strings.Contains(b.String(), "Inf") {
				t.Errorf("%v:\n%s", err, b.String())
			}
		}
	}
}

// TestLengthQuantiles compares with sorting and interpolating.
func TestLengthQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 300; n += 1 + n/7 {
		var l lengthCounts
		var sorted []float64
		for range n {
			v := int32(math.Exp(rng.NormFloat64()*2+3)) + 1
			l.add(v)
			sorted = append(sorted, float64(v))
		}
		slices.Sort(sorted)
		p := []float64{0, 0.001, 0.25, 0.5, 0.77, 0.9, 0.99, 1}
		for i, got := range l.quantiles(p) {
			at := p[i] * float64(n-1)
			k := int(at)
			want := sorted[k]
			if k+1 < n {
				want += (at - float64(k)) * (sorted[k+1] - sorted[k])
			}
			if math.Abs(got-want) > 1e-6*want {
				t.Fatalf("quantile %v of %d: %v, want %v", p[i], n, got, want)
			}
		}
	}
}

// TestWindowCounts compares with counting all windows.
func TestWindowCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		w := windowCounts{width: clock.Second}
		var at clock.Duration
		counts := make([]float64, 400)
		last := at
		for at < 300*clock.Second {
			counts[at/clock.Second]++
			w.add(at)
			last = at
			at += clock.FromSeconds(rng.ExpFloat64() * math.Exp(rng.NormFloat64()-1))
		}
		counts = counts[:last/clock.Second]
		if len(counts) < 20 {
			continue
		}
		var mean, variance float64
		for _, c := range counts {
			mean += c / float64(len(counts))
		}
		for _, c := range counts {
			variance += (c - mean) * (c - mean) / float64(len(counts)-1)
		}
		if int(w.n) != len(counts) || math.Abs(*w.index()-variance/mean) > 1e-9 {
			t.Fatalf("%d windows, index %v, want %d, %v", w.n, *w.index(), len(counts), variance/mean)
		}
		var x, y, xy, xx, yy, n float64
		for i := range counts[1:] {
			a, b := counts[i], counts[i+1]
			x, y, xy, xx, yy, n = x+a, y+b, xy+a*b, xx+a*a, yy+b*b, n+1
		}
		want := (xy - x*y/n) / math.Sqrt((xx-x*x/n)*(yy-y*y/n))
		if math.Abs(*w.correlation()-want) > 1e-9 {
			t.Fatalf("correlation %v, want %v", *w.correlation(), want)
		}
	}
}

// TestStackDistances compares with a stack that is searched, over many renumberings.
func TestStackDistances(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	s := newStackDistances(1)
	s.tree = make([]int32, 1<<4)
	var stack []uint64
	var want, got stats.Histogram
	for i := range 20_000 {
		if rng.IntN(5) == 0 {
			s.fresh()
			stack = append(stack, uint64(1e9)+uint64(i))
			continue
		}
		key := uint64(rng.ExpFloat64() * 40)
		if k := slices.Index(stack, key); k >= 0 {
			want.Record(int64(len(stack)-k), 1)
			stack = slices.Delete(stack, k, k+1)
		}
		stack = append(stack, key)
		s.reused(key, 0)
	}
	got = s.distances
	if got.Count() != want.Count() || got.Sum() != want.Sum() || got.Quantile(0.9) != want.Quantile(0.9) ||
		s.live != len(stack) {
		t.Errorf("%d distances, mean %v, want %d, %v; %d live, want %d", got.Count(), got.Mean(), want.Count(),
			want.Mean(), s.live, len(stack))
	}
}

// TestTrafficSeries: points are merged, never lost.
func TestTrafficSeries(t *testing.T) {
	var s trafficSeries
	var at clock.Duration
	for i := range 10_000 {
		s.at(at).Requests++
		at += clock.Duration(i) * clock.Millisecond
	}
	last := at - 9999*clock.Millisecond
	points := s.points(last)
	var sum int64
	for i, p := range points {
		sum += p.Requests
		if i > 0 && p.StartS != points[i-1].EndS {
			t.Fatalf("point %d begins at %v after %v", i, p.StartS, points[i-1].EndS)
		}
	}
	if sum != 10_000 || len(points) > maxPoints || len(points) < maxPoints/2 ||
		points[len(points)-1].EndS != last.Seconds() {
		t.Errorf("%d points with %d requests to %v s", len(points), sum, points[len(points)-1].EndS)
	}
}

// TestLoadKeepsBursts: thinning rows pulls the dispersion of counts toward 1 as it must, 1 + f·(I − 1), and
// superposing copies leaves it as it was.
func TestLoadKeepsBursts(t *testing.T) {
	const file = "AzureLLMInferenceTrace_code.csv.gz"
	index := func(l trace.Load) (float64, float64) {
		x := inspectPublished(t, file, l)
		return *x.Arrivals.Dispersion[1].Index, *x.RequestsPerS
	}
	before, rate := index(trace.Load{})
	var thinned, copied float64
	const seeds = 8
	for seed := range uint64(seeds) {
		i, r := index(trace.Load{Scale: 0.3, Seed: seed})
		thinned += i / seeds
		if math.Abs(r/rate-0.3) > 0.02 {
			t.Errorf("thinned to %v of the rate, want 0.3", r/rate)
		}
	}
	if want := 1 + 0.3*(before-1); math.Abs(thinned-want) > 0.05*want {
		t.Errorf("thinned: dispersion %v of %v, want %v", thinned, before, want)
	}
	for _, copies := range []float64{2, 3, 5} { // of one hour, so that they are not quite independent
		i, r := index(trace.Load{Scale: copies})
		copied += i / 3
		if math.Abs(r/rate-copies) > 0.01*copies {
			t.Errorf("superposed: %v times the rate, want %v", r/rate, copies)
		}
	}
	if math.Abs(copied/before-1) > 0.4 {
		t.Errorf("superposed: dispersion %v of %v", copied, before)
	}
}
