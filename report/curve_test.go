package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// point is a point of a curve with little in it.
func point(value, throughput, e2e float64) CurvePoint {
	s := &Summary{Schema: SummarySchema}
	s.Throughput.OutputTokensPerS = &throughput
	s.Latency.E2E.Mean = &e2e
	return CurvePoint{Value: value, Summary: s}
}

func codes(c *Curve) []string {
	var list []string
	for _, s := range c.Signs {
		list = append(list, s.Code)
	}
	return list
}

func ptr(v float64) *float64 { return &v }

// The curve of users that the saturation cliff is known by.
func TestCliff(t *testing.T) {
	points := []CurvePoint{
		point(200, 27_998, 30_000), point(10, 5_097, 1_400), point(100, 39_238, 4_000), point(50, 24_310, 1_700),
	}
	points[0].Summary.System.PrefixHitRate, points[2].Summary.System.PrefixHitRate = ptr(0), ptr(.65)
	points[1].Summary.System.PrefixHitRate = ptr(.96)
	c := NewCurve("users", points)
	if c.Peak == nil || c.Peak.Value != 100 || c.Peak.AtEdge {
		t.Errorf("peak %+v", c.Peak)
	}
	if c.Knee == nil || c.Knee.Value != 50 || c.Knee.MarginalValue == nil || *c.Knee.MarginalValue != 100 {
		t.Errorf("knee %+v", c.Knee)
	}
	if c.Collapse == nil || c.Collapse.Value != 200 || math.Abs(c.Collapse.FallFraction-.2865) > .001 || !strings.Contains(c.Collapse.Evidence, "prefix hit rate") {
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
	points := []CurvePoint{point(10, 100, 1000), point(20, 190, 1100), point(40, 260, 1500), point(80, 262, 4000)}
	for i, v := range []struct{ p50, p99, busy, sd, kv float64 }{
		{100, 200, .5, .05, .4}, {110, 300, 1, .06, .7}, {140, 900, 1, .12, 1}, {2000, 3000, 1, .05, 1},
	} {
		s := points[i].Summary
		s.Latency.TTFT.P50, s.Latency.TTFT.P99 = ptr(v.p50), ptr(v.p99)
		s.System.BusyFraction, s.System.KVUsage.SD, s.System.KVUsage.Max = ptr(v.busy), ptr(v.sd), ptr(v.kv)
	}
	points[2].Summary.System.GapByCause.KV = ptr(.3)
	points[2].Summary.System.GapByCause.TokenBudget = ptr(.1)
	points[3].Summary.Tokens = Tokens{Input: 500, Output: 400, Recomputed: 100}
	points[3].Summary.Window = Window{Stationary: new(bool), GrowthRequestsPerS: ptr(2)}
	c := NewCurve("rate", points)
	at := map[string]float64{"throughput_slows": 20, "tail_spikes": 40, "busy_but_flat": 40, "kv_oscillates": 40, "gap": 40, "recompute": 80, "not_stationary": 80}
	for _, s := range c.Signs {
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
		points[i].Summary.System.GapByCause = GapByCause{}
		points[i].Summary.System.MFU, points[i].Summary.System.MBU = ptr(.3), ptr(.8)
	}
	if l := NewCurve("rate", points).FirstLimit; l == nil || l.Resource != "memory_bandwidth" || l.Value != 40 {
		t.Errorf("limit %+v", l)
	}
}

// Of what is not a load, the peak and the fall beyond it can be told, but no knee.
func TestCurveOverAKnob(t *testing.T) {
	points := []CurvePoint{point(16, 100, 50), point(32, 300, 60), point(64, 350, 90), point(128, 200, 300)}
	c := NewCurve("engine.max_num_seqs", points)
	if c.Knee != nil || len(c.Signs) != 0 || c.Peak.Value != 64 || c.Collapse == nil {
		t.Errorf("%+v", c)
	}
	if c := NewCurve("workload.arrivals.rate", points); c.Knee == nil || c.Knee.Value != 32 {
		t.Errorf("%+v", c.Knee)
	}
}

// What few or odd points cannot tell is nil.
func TestCurveOfFewPoints(t *testing.T) {
	empty := NewCurve("rate", nil)
	if empty.Peak != nil || empty.Knee != nil || empty.Collapse != nil || empty.FirstLimit != nil {
		t.Errorf("%+v", empty)
	}
	b, _ := json.Marshal(empty)
	for _, want := range []string{`"knee":null`, `"signs":[]`, `"schema":"clifftop.curve/1"`} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("no %s in %s", want, b)
		}
	}
	one := NewCurve("rate", []CurvePoint{point(5, 10, 100)})
	if one.Knee != nil || one.Collapse != nil || one.Peak == nil || !one.Peak.AtEdge {
		t.Errorf("%+v", one)
	}
	// Duplicates are averaged; points without a result do not count.
	twice := NewCurve("rate", []CurvePoint{
		point(2, 110, 100), point(1, 50, 80), point(2, 90, 100), point(3, 97, 900), {Value: 4}, {Value: 0, Summary: &Summary{}},
	})
	if twice.Peak.Value != 2 || twice.Peak.OutputTokensPerS != 100 || twice.Collapse != nil || len(twice.Points) != 6 {
		t.Errorf("%+v", twice)
	}
	if twice.Knee == nil || twice.Knee.Value != 2 {
		t.Errorf("knee %+v", twice.Knee)
	}
	rising := NewCurve("users", []CurvePoint{point(1, 10, 100), point(2, 20, 100), point(4, 40, 100)})
	if rising.Knee != nil || len(rising.Signs) != 0 {
		t.Errorf("knee %+v, signs %v", rising.Knee, rising.Signs)
	}
	// A dip is no collapse, nor is a fall within the confidence intervals.
	if c := NewCurve("users", []CurvePoint{point(1, 100, 9), point(2, 80, 9), point(3, 99, 9)}).Collapse; c != nil {
		t.Errorf("%+v", c)
	}
	wide := []CurvePoint{point(1, 100, 9), point(2, 80, 9)}
	for _, p := range wide {
		x := *p.Summary.Throughput.OutputTokensPerS
		p.Summary.CI95 = map[string][2]float64{"throughput.output_tokens_per_s": {x - 15, x + 15}}
	}
	if c := NewCurve("users", wide).Collapse; c != nil {
		t.Errorf("%+v", c)
	}
}

func TestBands(t *testing.T) {
	d, strict := DefaultProfile(), ChatStrictProfile()
	for _, test := range []struct {
		bands Bands
		ms    float64
		want  string
	}{
		{d.TTFT, 0, "excellent"}, {d.TTFT, 199.999, "excellent"}, {d.TTFT, 200, "acceptable"}, {d.TTFT, 800, "marginal"},
		{d.TTFT, 1000, "poor"}, {d.TTFT, 1e9, "poor"}, {d.TPOT, 29, "excellent"}, {d.TPOT, 30, "acceptable"}, {d.TPOT, 80, "marginal"}, {d.TPOT, 100, "poor"},
		{strict.TTFT, 99, "instant"}, {strict.TTFT, 300, "marginal"}, {strict.TTFT, 1000, "doubtful"}, {strict.TTFT, 2000, "abandoned"}, {strict.TPOT, 150, "stuttering"},
	} {
		if got := test.bands.Name(test.ms); got != test.want {
			t.Errorf("%v ms is %s, want %s", test.ms, got, test.want)
		}
	}
	if p, ok := ProfileByName("chat-strict"); !ok || p.Name != "chat-strict" {
		t.Error("no profile chat-strict")
	}
	if _, ok := ProfileByName("strange"); ok {
		t.Error("a strange profile")
	}
}

func TestCurveCSV(t *testing.T) {
	var b bytes.Buffer
	c := NewCurve("users", []CurvePoint{point(10, 5000, 100), {Value: 20}})
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

// Tables keep to 80 columns, whatever they have to say.
func TestTableWidth(t *testing.T) {
	slo, _ := ParseSLOList("ttft_p95=200ms,attainment=0.9")
	for _, n := range []int{0, 1, 50, 3000} {
		c := NewCollector(Options{SLO: slo, Warmup: Warmup{Auto: true}, UsableBlocks: 1e6, USDPerHour: 12.34, Work: &Work{1, 1, 1, 1, 1, 1, 1, 1}})
		c.AddWarning("uncalibrated", strings.Repeat("the constants of this card are guesses; ", 5))
		queueRun(c, n, 0, func(i int) float64 { return 1.3 })
		s := c.Summary()
		var b bytes.Buffer
		for _, p := range []Profile{DefaultProfile(), ChatStrictProfile()} {
			if err := s.WriteTable(&b, p); err != nil {
				t.Fatal(err)
			}
		}
		big := NewCurve("rate", []CurvePoint{{1, s}, {1234.5678, s}})
		if err := big.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(b.String(), "\n") {
			if utf8.RuneCountInString(line) > tableWidth {
				t.Errorf("%d requests: %d columns: %s", n, utf8.RuneCountInString(line), line)
			}
		}
		if refused := strings.Contains(b.String(), "no p99 from"); refused != (n > 0 && n < 1000) {
			t.Errorf("%d requests: p99 refused: %v\n%s", n, refused, b.String())
		}
	}
}

func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.00001: "1.0e-05", .0123: "0.012", 1.234: "1.23", 9.999: "10.0", 12.34: "12.3", 99.96: "100", 123.4: "123", 45678.9: "45679"} {
		if got := digits(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}
