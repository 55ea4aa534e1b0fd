package curve

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"clifftop/report"
	"clifftop/report/layout"
)

// point is a point of a curve with little in it.
func point(value, throughput, e2e float64) Point {
	s := &report.Summary{Schema: report.SummarySchema}
	s.Throughput.OutputTokensPerS = &throughput
	s.Latency.E2E.Mean = &e2e
	return Point{Value: value, Summary: s}
}

func codes(c *Curve) []string {
	var list []string
	for _, s := range c.WarningSigns {
		list = append(list, s.Code)
	}
	return list
}

func ptr(v float64) *float64 { return &v }

// The curve of users that the saturation cliff is known by.
func TestCliff(t *testing.T) {
	points := []Point{
		point(200, 27_998, 30_000), point(10, 5_097, 1_400), point(100, 39_238, 4_000), point(50, 24_310, 1_700),
	}
	points[0].Summary.System.PrefixHitRate, points[2].Summary.System.PrefixHitRate = ptr(0), ptr(.65)
	points[1].Summary.System.PrefixHitRate = ptr(.96)
	c := New("users", points)
	if c.Peak == nil || c.Peak.Value != 100 || c.Peak.AtEdge {
		t.Errorf("peak %+v", c.Peak)
	}
	if c.Knee == nil || c.Knee.Value != 50 || c.Knee.MarginalValue == nil || *c.Knee.MarginalValue != 100 {
		t.Errorf("knee %+v", c.Knee)
	}
	if c.Collapse == nil || c.Collapse.Value != 200 || math.Abs(c.Collapse.FallFraction-.2865) > .001 ||
		!strings.Contains(c.Collapse.Evidence, "prefix hit rate") {
		t.Errorf("collapse %+v", c.Collapse)
	}
	if c.FirstLimit != nil {
		t.Errorf("a limit from no evidence: %+v", c.FirstLimit)
	}
	if got := codes(c); !slices.Equal(got, []string{"throughput_slows", "prefix_thrash"}) {
		t.Errorf("signs %v", got)
	}
	if points[0].Value != 200 {
		t.Error("the caller's points were moved")
	}
}

func TestSigns(t *testing.T) {
	points := []Point{point(10, 100, 1000), point(20, 190, 1100), point(40, 260, 1500), point(80, 262, 4000)}
	for i, v := range []struct{ p50, p99, busy, sd, kv float64 }{
		{100, 200, .5, .05, .4}, {110, 300, 1, .06, .7}, {140, 900, 1, .12, 1}, {2000, 3000, 1, .05, 1},
	} {
		s := points[i].Summary
		s.Latency.TTFT = report.Distribution{N: 20_000, P50: ptr(v.p50), P95: ptr(.8 * v.p99), P99: ptr(v.p99)}
		s.Latency.Queue.P99 = ptr(v.p99 - 100)
		s.System.BusyFraction, s.System.KVUsage.SD, s.System.KVUsage.Max = ptr(v.busy), ptr(v.sd), ptr(v.kv)
	}
	points[2].Summary.System.GapByCause.KV = ptr(.3)
	points[2].Summary.System.GapByCause.TokenBudget = ptr(.1)
	points[1].Summary.Requests = report.Requests{Offered: 1000, Rejected: 309, RejectedBusy: 9, RejectedLong: 300}
	points[2].Summary.Requests = report.Requests{Offered: 1000, Rejected: 10, RejectedBusy: 10}
	points[3].Summary.Tokens = report.Tokens{Input: 500, Output: 400, Recomputed: 100}
	points[3].Summary.Window = report.Window{Stationary: new(bool), GrowthRequestsPerS: ptr(2)}
	c := New("rate", points)
	at := map[string]float64{"throughput_slows": 20, "tail_spikes": 40, "tail_level": 40, "busy_but_flat": 40,
		"kv_oscillates": 40, "gap": 40, "rejects": 40, "recompute": 80, "not_stationary": 80}
	for _, s := range c.WarningSigns {
		if at[s.Code] != s.Value {
			t.Errorf("%s shows at %v, want %v: %s", s.Code, s.Value, at[s.Code], s.Evidence)
		}
		delete(at, s.Code)
	}
	if len(at) > 0 {
		t.Errorf("missing: %v", at)
	}
	if l := c.FirstLimit; l == nil || l.Resource != "kv" || l.Value != 40 {
		t.Errorf("limit %+v", l)
	}
	if c.Collapse != nil {
		t.Errorf("collapse %+v", c.Collapse)
	}

	for i := range points {
		points[i].Summary.System.GapByCause = report.GapByCause{}
		points[i].Summary.System.MFU, points[i].Summary.System.MBU = ptr(.3), ptr(.8)
	}
	if l := New("rate", points).FirstLimit; l == nil || l.Resource != "memory_bandwidth" || l.Value != 40 {
		t.Errorf("limit %+v", l)
	}
}

// From an idle system to one in use every percentile grows, so that only loads nearby compare; of few
// requests a p99 is a matter of chance; and without a wait there is no queue to warn of.
func TestTailSpikes(t *testing.T) {
	shows := func(change func(before, after *Point)) bool {
		before, after := point(10, 100, 1000), point(15, 140, 1100)
		for p, ms := range map[*Point]float64{&before: 200, &after: 900} {
			p.Summary.Latency.TTFT = report.Distribution{N: 20_000, P50: ptr(100), P95: ptr(.7 * ms), P99: ptr(ms),
				P999: ptr(1.2 * ms)}
			p.Summary.Latency.Queue.P99 = ptr(ms - 100)
		}
		after.Summary.System.GapByCause.Seats = ptr(.05)
		change(&before, &after)
		return slices.Contains(codes(New("rate", []Point{before, after})), "tail_spikes")
	}
	if !shows(func(_, _ *Point) {}) {
		t.Error("a spike is missed")
	}
	for what, change := range map[string]func(before, after *Point){
		"loads far apart":   func(before, _ *Point) { before.Value = 7 },
		"few requests":      func(_, after *Point) { after.Summary.Latency.TTFT.N = 900 },
		"no request waits":  func(_, after *Point) { after.Summary.System.GapByCause.Seats = ptr(0) },
		"not by the queue":  func(_, after *Point) { after.Summary.Latency.Queue.P99 = ptr(150) },
		"p50 grows as well": func(_, after *Point) { after.Summary.Latency.TTFT.P50 = ptr(400) },
		"all requests wait": func(_, after *Point) { after.Summary.Latency.Queue.P50 = ptr(80) },
		"chance": func(_, after *Point) {
			after.Summary.Latency.TTFT = report.Distribution{N: 1000, P50: ptr(100), P95: ptr(120), P99: ptr(420),
				P999: ptr(2000)}
		},
	} {
		if shows(change) {
			t.Errorf("%s: a spike", what)
		}
	}
}

// Of what is not a load, the peak and the fall beyond it can be told, but no knee.
func TestCurveOverAKnob(t *testing.T) {
	points := []Point{point(16, 100, 50), point(32, 300, 60), point(64, 350, 90), point(128, 200, 300)}
	c := New("engine.max_num_seqs", points)
	if c.Knee != nil || len(c.WarningSigns) != 0 || c.Peak.Value != 64 || c.Collapse == nil {
		t.Errorf("%+v", c)
	}
	if c := New("workload.arrivals.rate", points); c.Knee == nil || c.Knee.Value != 32 {
		t.Errorf("%+v", c.Knee)
	}
}

// What few or odd points cannot tell is nil.
func TestCurveOfFewPoints(t *testing.T) {
	empty := New("rate", nil)
	if empty.Peak != nil || empty.Knee != nil || empty.Collapse != nil || empty.FirstLimit != nil {
		t.Errorf("%+v", empty)
	}
	b, _ := json.Marshal(empty)
	for _, want := range []string{`"knee":null`, `"signs":[]`, `"schema":"clifftop.curve/1"`} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("no %s in %s", want, b)
		}
	}
	one := New("rate", []Point{point(5, 10, 100)})
	if one.Knee != nil || one.Collapse != nil || one.Peak == nil || !one.Peak.AtEdge {
		t.Errorf("%+v", one)
	}
	// Duplicates are averaged; points without a result do not count.
	twice := New("rate", []Point{
		point(2, 110, 100), point(1, 50, 80), point(2, 90, 100), point(3, 97, 900), {Value: 4},
		{Value: 0, Summary: &report.Summary{}},
	})
	if twice.Peak.Value != 2 || twice.Peak.OutputTokensPerS != 100 || twice.Collapse != nil || len(twice.Points) != 6 {
		t.Errorf("%+v", twice)
	}
	if twice.Knee == nil || twice.Knee.Value != 2 {
		t.Errorf("knee %+v", twice.Knee)
	}
	rising := New("users", []Point{point(1, 10, 100), point(2, 20, 100), point(4, 40, 100)})
	if rising.Knee != nil || len(rising.WarningSigns) != 0 {
		t.Errorf("knee %+v, signs %v", rising.Knee, rising.WarningSigns)
	}
	if n := len(New("rate", []Point{point(1, 1, 1)}).Warnings); n != 0 {
		t.Errorf("%d warnings", n)
	}
	// A dip is no collapse, nor is a fall within the confidence intervals.
	if c := New("users", []Point{point(1, 100, 9), point(2, 80, 9), point(3, 99, 9)}).Collapse; c != nil {
		t.Errorf("%+v", c)
	}
	wide := []Point{point(1, 100, 9), point(2, 80, 9)}
	for _, p := range wide {
		x := *p.Summary.Throughput.OutputTokensPerS
		p.Summary.CI95 = map[string][2]float64{"throughput.output_tokens_per_s": {x - 15, x + 15}}
	}
	if c := New("users", wide).Collapse; c != nil {
		t.Errorf("%+v", c)
	}
}

// On a plateau the peak is where it begins, wherever chance put the highest value; and it is not said to lie
// beyond.
func TestPeakOfAPlateau(t *testing.T) {
	for _, tail := range [][]float64{{1000, 1004, 998, 1007}, {1007, 998, 1004, 1000}, {993, 1001, 1002, 1011}} {
		points := []Point{point(1, 250, 9), point(2, 500, 9), point(3, 750, 9)}
		for i, x := range tail {
			points = append(points, point(float64(4+i), x, float64(20*i+12)))
		}
		if p := New("rate", points).Peak; p.Value != 4 || p.AtEdge {
			t.Errorf("%v: %+v", tail, p)
		}
		// Narrow confidence intervals tell them apart.
		for _, p := range points {
			x := *p.Summary.Throughput.OutputTokensPerS
			p.Summary.CI95 = map[string][2]float64{"throughput.output_tokens_per_s": {x - .1, x + .1}}
		}
		if p := New("rate", points).Peak; p.OutputTokensPerS != slices.Max(tail) {
			t.Errorf("%v: %+v", tail, p)
		}
	}
	rising := []Point{point(1, 100, 9), point(2, 200, 9), point(3, 300, 9)}
	if p := New("rate", rising).Peak; p.Value != 3 || !p.AtEdge {
		t.Errorf("%+v", p)
	}
}

// Of a key that is no load, a peak with as much beyond it is where a plateau begins. What else there is, is said.
func TestPlateau(t *testing.T) {
	points := []Point{point(2, 1204, 9), point(3, 1515, 9), point(4, 1536, 9), point(6, 1549, 9), point(8, 1548, 9)}
	for over, want := range map[string]string{"deployment.replicas": "plateau", "rate": "peak"} {
		c := New(over, points)
		text := ""
		for _, line := range c.Findings() {
			if line[0] == want {
				text = line[1]
			}
		}
		if !strings.HasPrefix(text, "1515 output tokens/s at 3") ||
			!strings.HasSuffix(text, "higher values bring 2.24 % more at most") ||
			c.LevelsOff() != (want == "plateau") {
			t.Errorf("%s: %s %q", over, want, text)
		}
	}
	rising := New("deployment.replicas", points[:2])
	if rising.LevelsOff() || !rising.Peak.AtEdge {
		t.Errorf("no plateau: %+v", rising.Peak)
	}
}

// Values that sweeps vary have all their digits.
func TestLargeValues(t *testing.T) {
	c := New("engine.max_num_batched_tokens", []Point{point(8192, 100, 9), point(16384, 250, 9)})
	if text := fmt.Sprint(c.Findings()); !strings.Contains(text, "at 16384") {
		t.Error(text)
	}
}

// Where a key makes no difference to throughput there is no peak to tell of; under a load there is.
func TestLevel(t *testing.T) {
	points := []Point{point(512, 990, 9), point(2048, 1004, 9), point(8192, 1000, 9)}
	if c := New("engine.max_num_batched_tokens", points); !c.Level() {
		t.Errorf("%+v is not level", c.Peak)
	}
	if c := New("rate", points); c.Level() {
		t.Error("a plateau over the load is level")
	}
	points[0] = point(512, 900, 9)
	if c := New("engine.max_num_batched_tokens", points); c.Level() {
		t.Error("a tenth less is level")
	}
}

// measured gives a point the window and the requests of a run.
func measured(p Point, requests int64, windowS, e2eMs, queueMs float64) Point {
	s := p.Summary
	s.Window.EndS = windowS
	s.Latency.E2E = report.Distribution{N: requests, Mean: ptr(e2eMs)}
	s.Latency.Queue = report.Distribution{N: requests, Mean: ptr(queueMs)}
	return p
}

// Runs of equally many requests are the shorter the higher the load. A server without a limit, where a request
// takes R seconds at any load, has then delivered the share 1 - R/2T of the work that arrived in T seconds:
// a curve that falls though nothing is lost.
func TestRampsAreNoCollapse(t *testing.T) {
	const requests, r = 300, 3.
	var points []Point
	for _, rate := range []float64{1, 3, 7, 10, 20, 40, 80, 160} {
		window := requests / rate
		share := 1 - r/2/window
		if window < r {
			share = window / 2 / r
		}
		points = append(points, measured(point(rate, 200*rate*share, 1000*r), requests, window, 1000*r, 0))
	}
	c := New("rate", points)
	if c.Collapse != nil || c.FirstLimit != nil || len(c.WarningSigns) != 0 || c.Peak == nil || c.Peak.Value != 10 ||
		!c.Peak.AtEdge {
		t.Errorf("peak %+v, collapse %+v, limit %+v, signs %v", c.Peak, c.Collapse, c.FirstLimit, c.WarningSigns)
	}
	for _, p := range c.Points {
		if want := p.Value > 10; p.Short != want {
			t.Errorf("the window at %v is short: %v", p.Value, p.Short)
		}
	}
	if len(c.Warnings) != 1 || c.Warnings[0].Code != "points_short" {
		t.Errorf("%+v", c.Warnings)
	}
	// Waiting makes no window short: under overload it grows with the run.
	if c := New("rate", []Point{measured(point(9, 9, 9), 3000, 100, 60_000, 57_000)}); c.Points[0].Short {
		t.Error("an overloaded system is taken to fill up")
	}
}

// A small fall counts where wasted work explains it, and a fall of its own kind only where it is plain. Of few
// requests more is due to chance.
func TestSmallFalls(t *testing.T) {
	for _, test := range []struct {
		what      string
		fall      float64
		requests  int64
		recompute int64
		hits      float64
		errors    float64
		want      bool
	}{
		{"unexplained and small", .04, 20_000, 0, .9, 0, false},
		{"unexplained and plain", .08, 20_000, 0, .9, 0, true},
		{"unexplained, of few requests", .08, 1000, 0, .9, 0, false},
		{"recomputed tokens", .04, 20_000, 500, .9, 0, true},
		{"recomputed tokens, of few requests", .04, 1000, 500, .9, 0, false},
		{"prefix hits lost", .04, 20_000, 0, .5, 0, true},
		{"timeouts", .04, 20_000, 0, .9, .4, true},
		{"within the plateau", .01, 20_000, 500, .5, .4, false},
	} {
		points := []Point{point(10, 500, 9), point(20, 1000, 9), point(40, 1000*(1-test.fall), 9),
			point(80, 1000*(1-test.fall), 9)}
		for i, p := range points {
			measured(p, test.requests, 1000, 9, 0)
			p.Summary.System.PrefixHitRate, p.Summary.System.ErrorRate = ptr(.9), ptr(0)
			p.Summary.Tokens = report.Tokens{Input: 5000, Output: 5000}
			if i > 1 {
				p.Summary.System.PrefixHitRate, p.Summary.Tokens.Recomputed = ptr(test.hits), test.recompute
				p.Summary.System.ErrorRate = ptr(test.errors)
			}
		}
		if c := New("users", points).Collapse; (c != nil) != test.want {
			t.Errorf("%s: %+v", test.what, c)
		}
	}
}

// In a closed loop the GPU is busy from one user on and each user brings a little less than the last, which
// limits nothing while throughput still rises.
func TestFirstLimitOfAClosedLoop(t *testing.T) {
	// X = N/(a+bN), and seats end it at 64.
	curve := func(change func(n float64, s *report.Summary)) *Limit {
		var points []Point
		for n := 1.; n <= 256; n *= 2 {
			in := min(n, 64)
			p := point(n, in/(10+.1*in), 10+.1*in+(n-in)*.3)
			y := &p.Summary.System
			y.BusyFraction, y.MFU, y.MBU = ptr(1), ptr(.1), ptr(.5)
			y.GapByCause.Seats = ptr(0)
			if n > 64 {
				y.GapByCause.Seats = ptr(.95)
			}
			change(n, p.Summary)
			points = append(points, p)
		}
		return New("users", points).FirstLimit
	}
	none := func(float64, *report.Summary) {}
	if l := curve(none); l == nil || l.Resource != "seats" || l.Value != 128 {
		t.Errorf("%+v", l)
	}
	free := func(s *report.Summary) { s.System.GapByCause.Seats = ptr(0) }
	if l := curve(func(_ float64, s *report.Summary) { free(s) }); l == nil || l.Resource != "gpu" || l.Value != 64 {
		t.Errorf("%+v", l)
	}
	for want, set := range map[string][2]float64{"memory_bandwidth": {.1, .7}, "compute": {.6, .3}, "gpu": {.4, .5}} {
		l := curve(func(_ float64, s *report.Summary) {
			free(s)
			s.System.MFU, s.System.MBU = ptr(set[0]), ptr(set[1])
		})
		if l == nil || l.Resource != want {
			t.Errorf("MFU %v, MBU %v: %+v, want %s", set[0], set[1], l, want)
		}
	}
	// A full KV pool that makes requests give way binds before anybody waits for it.
	l := curve(func(n float64, s *report.Summary) {
		s.System.KVUsage.Max = ptr(min(1, n/64))
		if n >= 64 {
			s.System.Preemptions, s.Tokens = 395, report.Tokens{Input: 5000, Output: 5000, Recomputed: 500}
		}
	})
	if l == nil || l.Resource != "kv" || l.Value != 64 {
		t.Errorf("%+v", l)
	}
}

// Traffic in bursts may offer another rate than the one asked for, over a run that meets few of them.
func TestRateThatWasNotOffered(t *testing.T) {
	for offered, want := range map[float64]int{10: 0, 10.9: 0, 5.7: 1, 13: 1} {
		p := measured(point(10, 500, 100), 3000, 300, 100, 0)
		p.Summary.Throughput.OfferedRequestsPerS = &offered
		c := New("rate", []Point{p})
		if len(c.Warnings) != want || want > 0 && c.Warnings[0].Code != "rate_off" {
			t.Errorf("%v requests/s: %v", offered, c.Warnings)
		}
		if c := New("users", []Point{p}); len(c.Warnings) != 0 {
			t.Errorf("of users: %v", c.Warnings)
		}
	}
}

// A gain below nothing is called a fall.
func TestNegativeGains(t *testing.T) {
	points := []Point{point(10, 100, 9), point(20, 200, 9), point(30, 150, 20)}
	for _, p := range points {
		p.Summary.System.BusyFraction = ptr(1)
	}
	for _, s := range New("rate", points).WarningSigns {
		if strings.Contains(s.Evidence, "-") || !strings.Contains(s.Evidence, "throughput falls by 25") {
			t.Errorf("%s: %s", s.Code, s.Evidence)
		}
	}
}

func TestBands(t *testing.T) {
	d := report.DefaultProfile()
	for _, test := range []struct {
		bands report.Bands
		ms    float64
		want  string
	}{
		{d.TTFT, 0, "excellent"}, {d.TTFT, 199.999, "excellent"}, {d.TTFT, 200, "acceptable"},
		{d.TTFT, 800, "marginal"},
		{d.TTFT, 1000, "poor"}, {d.TTFT, 1e9, "poor"}, {d.TPOT, 29, "excellent"}, {d.TPOT, 30, "acceptable"},
		{d.TPOT, 80, "marginal"}, {d.TPOT, 100, "poor"},
	} {
		if got := test.bands.Name(test.ms); got != test.want {
			t.Errorf("%v ms is %s, want %s", test.ms, got, test.want)
		}
	}
}

func TestCurveCSV(t *testing.T) {
	var b bytes.Buffer
	c := New("users", []Point{point(10, 5000, 100), {Value: 20}})
	if err := c.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.Index(rows[0], "output_tokens_per_s")
	if len(rows) != 3 || rows[0][0] != "users" || rows[1][0] != "10" || rows[1][i] != "5000" || rows[2][i] != "" {
		t.Errorf("%q", rows)
	}
	j := slices.Index(rows[0], "ttft_p99_ms")
	if rows[1][j] != "" {
		t.Errorf("an unknown number is %q", rows[1][j])
	}
	var one bytes.Buffer
	if err := c.Points[0].Summary.WriteCSV(&one); err != nil || strings.Count(one.String(), "\n") != 2 {
		t.Errorf("%v %q", err, one.String())
	}
}

func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.00001: "1.0e-05", .0123: "0.012", 1.234: "1.23", 9.999: "10.0",
		12.34: "12.3", 99.96: "100", 123.4: "123", 45678.9: "45679"} {
		if got := layout.Digits(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}

// A closed loop whose throughput rises to its last user while nothing holds requests up has too few users to find a
// limit of the system; an open one has no such excuse.
func TestTooFewUsers(t *testing.T) {
	var points []Point
	for _, n := range []float64{1, 4, 16, 64} {
		p := point(n, 20*n, 1000)
		p.Summary.System.BusyFraction, p.Summary.Concurrency.InSystem.Mean = ptr(.3), ptr(n/10)
		points = append(points, p)
	}
	if l := New("users", points).FirstLimit; l == nil || l.Resource != "users" || l.Value != 64 ||
		!strings.Contains(l.Evidence, "of 64 users 6.40") {
		t.Errorf("%+v", l)
	}
	if l := New("rate", points).FirstLimit; l != nil {
		t.Errorf("%+v", l)
	}
}

// Clients who leave before anything is full are the limit; where their requests wait for something, that is.
func TestClientsAreTheLimit(t *testing.T) {
	curve := func(kv float64) *Curve {
		points := []Point{point(5, 100, 1000), point(10, 190, 1500), point(20, 195, 3000), point(40, 195, 3000)}
		for i, p := range points {
			s := p.Summary
			s.Requests = report.Requests{Offered: 1000, Attempts: 1000}
			s.System.GapByCause.KV = ptr(0)
			if i >= 2 {
				s.Requests.TimedOut, s.Requests.Retries, s.Requests.Attempts = 300, 600, 1600
				s.System.GapByCause.KV = &kv
			}
			s.Throughput.SuccessfulOutputTokensPerS = ptr(*s.Throughput.OutputTokensPerS * []float64{1, 1, .6, .1}[i])
		}
		return New("rate", points)
	}
	c := curve(0)
	if l := c.FirstLimit; l == nil || l.Resource != "clients" || l.Value != 20 ||
		!strings.Contains(l.Evidence, "30.0 % of the requests (300 of 1000); 37.5 % of the attempts") {
		t.Errorf("%+v", l)
	}
	if l := curve(.5).FirstLimit; l == nil || l.Resource != "kv" {
		t.Errorf("%+v", l)
	}
	// All that was put out stays the same; what is of use collapses.
	if x := c.UsefulCollapse; c.Collapse != nil || x == nil || x.Value != 20 ||
		math.Abs(x.FallFraction-(1-19.5/190)) > 1e-9 || !strings.Contains(x.Evidence, "completed requests") {
		t.Errorf("%+v, %+v", c.Collapse, x)
	}
	// Of several runs at a load the mean counts.
	better := *c.Points[3].Summary
	better.Throughput.SuccessfulOutputTokensPerS = ptr(3 * *better.Throughput.SuccessfulOutputTokensPerS)
	twice := New("rate", append(slices.Clone(c.Points), Point{Value: c.Points[3].Value, Summary: &better}))
	if x := twice.UsefulCollapse; x == nil || math.Abs(x.FallFraction-(1-2*19.5/190)) > 1e-9 {
		t.Errorf("%+v", x)
	}
	if !slices.Contains(codes(c), "clients_leave") {
		t.Errorf("%v", codes(c))
	}
	if got := c.Points[3].Signs; !slices.Contains(got, "clients_leave") ||
		slices.Contains(c.Points[0].Signs, "clients_leave") || c.Points[0].Signs == nil {
		t.Errorf("%v, %v", got, c.Points[0].Signs)
	}
}

// C7, C11: p99 beside p50 makes a spike, but deep in overload p50 has caught up, and the ratio falls. The level still
// tells.
func TestTailLevel(t *testing.T) {
	var points []Point
	for i, v := range []struct{ p50, p99, kv float64 }{{100, 200, 0}, {110, 300, 0}, {150, 2000, .2}, {6000, 8400, .9},
		{9000, 12_600, .9}} {
		p := point(float64(10*(i+1)), 100, 1000)
		s := p.Summary
		s.Latency.TTFT = report.Distribution{N: 20_000, P50: ptr(v.p50), P95: ptr(.9 * v.p99), P99: ptr(v.p99)}
		s.Latency.Queue = report.Distribution{P50: ptr(v.p50 - 100), P99: ptr(v.p99 - 100)}
		s.System.GapByCause.KV = ptr(v.kv)
		points = append(points, p)
	}
	points[3].Summary.Latency.TTFT.N = 900 // too few for a p99
	c := New("users", points)
	for _, s := range c.WarningSigns {
		if (s.Code == "tail_level" || s.Code == "tail_spikes") && s.Value != 30 {
			t.Errorf("%+v", s)
		}
	}
	for i, want := range []string{"", "", "tail_spikes tail_level", "", "tail_level"} {
		got := slices.DeleteFunc(slices.Clone(c.Points[i].Signs), func(s string) bool {
			return !strings.HasPrefix(s, "tail")
		})
		if strings.Join(got, " ") != want {
			t.Errorf("at %v: %v, want %v", c.Points[i].Value, got, want)
		}
	}
}

// C13: what tokens cost at capacity stands beside what they cost at each load.
func TestCostAtCapacity(t *testing.T) {
	points := []Point{point(1, 400, 9), point(2, 800, 9), point(4, 4000, 9), point(8, 3000, 9)}
	for _, p := range points {
		p.Summary.Cost = &report.Cost{USDPerHour: ptr(3),
			USDPerMillionOutputAtLoad: report.CostPerMillion(3, p.Summary.Throughput.OutputTokensPerS)}
	}
	p := New("users", points).Peak
	if p.USDPerMillionOutput == nil || math.Abs(*p.USDPerMillionOutput-3/14.4) > 1e-9 {
		t.Errorf("%+v", p)
	}
	if at := *points[0].Summary.Cost.USDPerMillionOutputAtLoad; math.Abs(at-30/14.4) > 1e-9 {
		t.Errorf("%v at a tenth of it", at)
	}
}

// Other thresholds judge otherwise, and the curve says by which it was judged.
func TestThresholds(t *testing.T) {
	points := []Point{point(10, 100, 9), point(20, 100, 9), point(40, 92, 9)}
	if c := New("users", points); c.Collapse == nil || c.Thresholds != defaultThresholds() {
		t.Errorf("%+v", c.Collapse)
	}
	strict := defaultThresholds()
	strict.PlainFall = .2
	if c := newWith(strict, "users", points); c.Collapse != nil || c.Thresholds.PlainFall != .2 {
		t.Errorf("%+v", c.Collapse)
	}
	b, err := json.Marshal(New("users", points))
	if err != nil || !bytes.Contains(b, []byte(`"tail_level":4`)) {
		t.Errorf("%v in %s", err, b)
	}
}
