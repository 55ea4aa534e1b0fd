package plot

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"clifftop/report"
	"clifftop/report/chart"
	"clifftop/report/curve"
	"clifftop/report/stats"
	"clifftop/report/verdict"
	"clifftop/sim/clock"
)

// looked is a run with a detail.
func looked(name string, p50, p99 float64) NamedRun {
	s := &report.Summary{}
	s.Latency.TTFT, s.Latency.ITL = dist(2000, p50, p99, p99), dist(9000, p50, p99, p99)
	s.Latency.ITL.P99 = of(p99)
	shape := stats.Shape{N: 100, Bins: []stats.Bin{{Low: p50 * 0.9, High: p50, N: 60},
		{Low: p50, High: p50 * 1.02, N: 30}, {Low: p99, High: p99 * 1.03, N: 10}}}
	s.Detail = &report.Detail{TTFT: shape, TPOT: shape, E2E: shape, ITL: shape}
	return NamedRun{name, s}
}

// What is divided anew is still all there.
func TestInStepsKeepsAll(t *testing.T) {
	s := looked("", 8, 90).Detail.ITL
	sum := 0.0
	points := inSteps(&s)
	for i, q := range points {
		sum += q.Y
		if i > 0 && math.Abs(q.X/points[i-1].X-gapStep) > 1e-9 {
			t.Errorf("a step from %g to %g", points[i-1].X, q.X)
		}
	}
	if math.Abs(sum-1) > 1e-9 || points[len(points)-1].Y != 0 {
		t.Errorf("the parts add up to %g", sum)
	}
	if inSteps(&stats.Shape{}) != nil {
		t.Error("nothing has steps")
	}
}

func TestCumulativeEndsAtOne(t *testing.T) {
	s := looked("", 8, 90).Detail.TTFT
	points := cumulative(&s)
	if points[0].Y != 0 || points[len(points)-1] != (chart.Point{X: 90 * 1.03, Y: 1}) {
		t.Errorf("%v", points)
	}
}

func TestCloseupFindings(t *testing.T) {
	light, knee := looked("light, 1 req/s", 8, 9), looked("knee, 9 req/s", 8, 90)
	for got, want := range map[string]string{
		Gaps([]NamedRun{light, knee}).Title: "Knee, 9 req/s: half of the gaps between tokens are within 8 ms; one " +
			"in a hundred is longer than 90 ms, 11 times that",
		Gaps([]NamedRun{looked("", 8, 9)}).Title: "Tokens arrive evenly: half of the gaps between tokens are within 8 " +
			"ms, 99 % within 9 ms",
		Latencies([]NamedRun{light}).Title: "Half of the requests, and 95 %, see a first token within light, 1 " +
			"req/s: 8 ms and 9 ms",
		Latencies([]NamedRun{{"", nilRun()}}).Title: "No request completed in the window",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func nilRun() *report.Summary { return &report.Summary{Detail: &report.Detail{}} }

// A sweep is looked at closely where nothing binds, at the knee, and beyond.
func TestCloseupsOfASweep(t *testing.T) {
	c := openCurve()
	c.Knee = &curve.Knee{Value: 22}
	var names []string
	for _, r := range SelectedRuns(c) {
		names = append(names, r.Name)
	}
	if got := strings.Join(names, "; "); got != "light, 1 req/s; knee, 22 req/s; overload, 28 req/s" {
		t.Error(got)
	}
	if len(SelectedRuns(nil)) != 0 {
		t.Error("nothing has closeups")
	}
}

func TestWaste(t *testing.T) {
	r := looked("", 8, 90)
	if TokenWaste([]NamedRun{r}) != nil || GPUWaste([]NamedRun{r}) != nil || TokenWaste(nil) != nil ||
		GPUWaste(nil) != nil {
		t.Error("where nothing is lost or known there is nothing to show")
	}
	r.Tokens = report.Tokens{Output: 1000, OutputSuccessful: 900, OutputGood: of(int64(250))}
	r.System.GPUSeconds = report.GPUSeconds{Useful: of(60.), Idle: of(30.), Recompute: of(10.), Padding: of(0.)}
	w := TokenWaste([]NamedRun{r})
	if w.Title != "Of the tokens that were emitted, 25 % are in requests within the SLO" || len(w.Stages) != 3 ||
		w.Groups[0].Values[2] != 250 {
		t.Errorf("%+v", w)
	}
	g := GPUWaste([]NamedRun{r})
	if g.Title != "Of the GPU’s time, 60 % does useful work" ||
		strings.Join(g.Stages, ", ") != "all, less idle, less recomputation, useful" || g.Groups[0].Values[1] != 70 {
		t.Errorf("%+v", g)
	}
}

func TestOperating(t *testing.T) {
	r := looked("", 8, 90)
	if Operating(1e15, 3e12, []NamedRun{r}) != nil {
		t.Error("without a use of the machine there is no point")
	}
	r.System.MFU, r.System.MBU, r.System.BusyFraction = of(0.2), of(0.4), of(0.5)
	c := Operating(1e15, 3e12, []NamedRun{r})
	if c.Title != "Memory bandwidth is the nearer roof: while busy, the GPU reaches 80 % of its memory bandwidth and 40 % of its arithmetic" {
		t.Error(c.Title)
	}
	if q := c.Panels[0].Lines[1].Points[0]; math.Abs(q.Y-400) > 1e-9 || math.Abs(q.X-0.2e15/(0.4*3e12)) > 1e-9 {
		t.Errorf("%+v", q)
	}
}

func TestOpeningShows(t *testing.T) {
	ms := func(v int64) clock.Time { return clock.Time(v) * clock.Time(clock.Millisecond) }
	o := &report.Gantt{
		Iterations: []report.Iteration{{Start: ms(10), End: ms(30), PrefillTokens: 500},
			{Start: ms(30), End: ms(40), Decodes: 1}, {Start: ms(40), End: ms(90), Decodes: 1, PrefillTokens: 900}},
		Requests: []report.Phases{
			{ID: 0, Arrival: ms(5), Queued: ms(8), Scheduled: ms(10), FirstToken: ms(30), End: ms(200),
				InputTokens: 500, OutputTokens: 9},
			{ID: 1, Arrival: ms(300), Queued: ms(300), Scheduled: clock.Never, FirstToken: clock.Never, End: ms(400)},
		},
	}
	x := Gantt(o)
	if len(x.Lanes) != 2 || x.FromS != 0.005 || x.ToS != 0.09 {
		t.Fatalf("%+v", x)
	}
	if want := "The first 0.085 s: iterations without prompts take 10 ms on average; the longest with one takes 50 ms " +
		"and delays 1 request"; x.Title != want {
		t.Errorf("%q", x.Title)
	}
	if got := x.Lanes[0].Slices[2]; got.Kind != prefillAndDecode ||
		got.Text != "50 ms: 1 requests decode one token, 900 prompt tokens" {
		t.Errorf("%+v", got)
	}
	phases := x.Lanes[1].Slices
	if len(phases) != 3 || phases[2].EndS != 0.09 || phases[2].Text != "request 0: output of 9 tokens, 170 ms" {
		t.Errorf("%+v", phases)
	}
	if Gantt(nil) != nil || Gantt(&report.Gantt{}) != nil {
		t.Error("nothing opens")
	}
}

// A figure's numbers are those that it draws, and what is not a number is null.
func TestDiagrams(t *testing.T) {
	c := openCurve()
	c.Knee = &curve.Knee{Value: 22, OutputTokensPerS: 3900}
	f, err := Curve(c, "operating")
	if err != nil {
		t.Fatal(err)
	}
	d := f.Diagrams()
	if len(d) != 1 || d[0].Title != f.Title || d[0].Y.Unit != "ms" || !d[0].Y.Log || len(d[0].Marks) == 0 ||
		d[0].Marks[0].Shape != "diamond" {
		t.Fatalf("%+v", d)
	}
	main := d[0].Series[1]
	if main.Name != "p95" || main.Color != "blue" || len(main.X) != len(c.Points) || main.Labels[0] != "1 req/s" ||
		!main.Hollow[len(main.Hollow)-1] || main.Hollow[0] {
		t.Errorf("%+v", main)
	}
	if d := (&Figure{}).Diagrams(); len(d) != 0 {
		t.Errorf("%+v", d)
	}
	text, err := json.Marshal([]Number{Number(math.NaN()), Number(math.Inf(1)), 1. / 3, 1e300, -2})
	if err != nil || string(text) != "[null,null,0.333333,1e+300,-2]" {
		t.Errorf("%s, %v", text, err)
	}
	for _, name := range names() {
		f, err := Curve(c, name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(f.Diagrams()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDifferences(t *testing.T) {
	v := &verdict.Result{Baseline: "old"}
	x := &verdict.Variant{Name: "new", Metrics: []verdict.Difference{
		{Path: "throughput.requests_per_s", Baseline: of(10.), Variant: of(12.), Difference: of(2.),
			CI95: &[2]float64{1, 3}, Verdict: verdict.Pass},
		{Path: "latency_ms.ttft.mean", Baseline: of(100.), Variant: of(200.), Difference: of(100.),
			CI95: &[2]float64{-500, 700}, Verdict: verdict.NotDistinguishable},
		{Path: "system.preemptions", Baseline: of(0.), Variant: of(0.), Verdict: verdict.Unknown},
	}}
	f := Differences(v, x)
	if f.Title != "new against old: of 2 numbers that differ, 1 better, 1 cannot be told apart" {
		t.Error(f.Title)
	}
	d := f.Diagrams()[0]
	if strings.Join(d.Y.Places, "; ") != "TTFT mean, ms; requests/s" || d.Series[0].X[0] != 1.2 || len(d.Bars) != 2 ||
		!(d.X.Min > 0) {
		t.Errorf("%+v", d)
	}
	if Differences(v, &verdict.Variant{}) != nil {
		t.Error("without differences there is nothing to show")
	}
}
