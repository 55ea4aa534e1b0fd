package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"clifftop/report"
	"clifftop/report/curve"
	"clifftop/report/inspect"
	"clifftop/sim/clock"
)

// texts are the visible texts of a picture; lines of a title come apart.
func texts(t testing.TB, f *Figure) []string {
	t.Helper()
	var b bytes.Buffer
	if err := f.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
		t.Fatalf("a coordinate is no number")
	}
	var out []string
	d := xml.NewDecoder(&b)
	in := false
	for {
		token, err := d.Token()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			in = e.Name.Local == "text"
		case xml.EndElement:
			in = false
		case xml.CharData:
			if in {
				out = append(out, string(e))
			}
		}
	}
}

func TestCurveShows(t *testing.T) {
	for _, c := range []struct {
		curve *curve.Curve
		name  string
		want  []string
	}{
		{openCurve(), "operating", []string{
			"Knee at 22 req/s: 3.96k output tok/s, TTFT p95 140 ms;", "from 28 req/s on the queue grows without end",
			"Output tokens/s, whole system", "Time to first token (TTFT) p95, ms or s, log scale",
			"knee: 22 req/s", "peak: 30 req/s", "1 req/s", "13", "40 req/s", "p95", "p50", "SLO 800 ms",
			"no steady state", "better",
			"First limit: the KV cache, from 26 req/s. SLO (TTFT p95 ≤ 800 ms, TPOT p95 ≤ 50 ms) kept up to 26 req/s.",
		}},
		{openCurve(), "throughput", []string{"offered", "output", "in SLO", "Offered load, requests/s",
			"5.01k output tok/s"}},
		{openCurve(), "latency", []string{"Time to first token (TTFT)", "Time per output token (TPOT)",
			"SLO p95 800 ms", "SLO p95 50 ms", "p99", "p95", "p50", "knee", "peak"}},
		{openCurve(), "interactivity", []string{"Output tokens/s per GPU",
			"Output tokens/s for each user (1 / TPOT p50)", "knee: 22 req/s"}},
		{openCurve(), "kv", []string{"The KV cache is full from 28 req/s; preemptions from 26 req/s", "mean", "max",
			"per second"}},
		{closedCurve(), "operating", []string{"collapse: 120 users", "peak: 100 users", "knee: 80 users", "10 users",
			"200 users", "beyond 100 users throughput falls, by up to 31 %"}},
		{closedCurve(), "throughput", []string{"successful", "Users at once",
			"Throughput peaks at 1.4k output tok/s at 100 users; beyond, it falls by up to 31 %"}},
		{closedCurve(), "kv", []string{"prefix hits", "None at any load"}},
		{closedCurve(), "latency", []string{"Latencies are those of completed requests; up to 28 % of requests did not complete."}},
		{openCurve(), "sweep", []string{"Throughput against latency", "Throughput", "Speed for each user",
			"Time to first token (TTFT)", "KV cache", "Preemptions"}},
	} {
		f, err := Curve(c.curve, c.name)
		if err != nil {
			t.Fatal(err)
		}
		f.Caption = "a <b> & c"
		got := texts(t, f)
		for _, want := range append(c.want, f.Caption) {
			if !slices.Contains(got, want) {
				t.Errorf("%s over %s: no %q among %q", c.name, c.curve.Over, want, got)
			}
		}
	}
	if _, err := Curve(openCurve(), "pie"); err == nil || !strings.Contains(err.Error(), "throughput") {
		t.Errorf("an unknown picture: %v", err)
	}
}

// A key that helps keeps the objective from some value on; one that hinders, up to it.
func TestWhereTheObjectiveIsKept(t *testing.T) {
	for _, c := range []struct {
		over string
		met  []bool
		want string
	}{
		{"rate", []bool{true, true, false, true}, "kept up to 10 req/s."},
		{"rate", []bool{false, true, true, true}, "missed from the lowest load on."},
		{"rate", []bool{true, true, true, true}, "kept at every load."},
		{"deployment.replicas", []bool{false, false, true, true}, "kept from replicas 20 on."},
		{"deployment.replicas", []bool{true, true, false, false}, "kept up to replicas 10."},
		{"deployment.replicas", []bool{true, true, true, true}, "kept at every value of replicas."},
		{"deployment.replicas", []bool{false, false, false, false}, "missed at every value of replicas."},
		{"deployment.replicas", []bool{false, true, false, true}, "kept at 2 of 4 values."},
	} {
		points := openCurve(5, 10, 20, 30).Points
		for i := range points {
			points[i].Summary.Goodput.Met = &c.met[i]
		}
		if got := newSweep(curve.New(c.over, points)).kept(); !strings.HasSuffix(got, ") "+c.want) {
			t.Errorf("%v over %s: %q, want %q", c.met, c.over, got, c.want)
		}
	}
}

func TestPercentileOfFewSamplesIsLeftOut(t *testing.T) {
	c := openCurve()
	for i := range c.Points {
		c.Points[i].Summary.Latency.TTFT.N, c.Points[i].Summary.Latency.TPOT.N = 999, 999
	}
	f, _ := Curve(c, "latency")
	got := texts(t, f)
	if slices.Contains(got, "p99") || !slices.Contains(got, "No p99 where fewer than 1,000 requests were measured.") {
		t.Errorf("p99 of 999 samples: %q", got)
	}
}

// An objective of the p99.9 is shown against it, as far as there are samples enough.
func TestOperatingByP999(t *testing.T) {
	c := openCurve()
	for i := range c.Points {
		s := c.Points[i].Summary
		s.Goodput.SLO = &report.SLO{Objectives: []report.Objective{{Metric: "ttft", Percentile: 99.9,
			Limit: 2 * clock.Second}}}
		s.Latency.TTFT.P999 = s.Latency.TTFT.Max
	}
	f, _ := Curve(c, "operating")
	want := []string{"Time to first token (TTFT) p99.9, ms or s, log scale", "SLO 2 s"}
	if got := texts(t, f); !slices.Contains(got, want[0]) || !slices.Contains(got, want[1]) {
		t.Errorf("no %q among %q", want, got)
	}
	for i := range c.Points {
		c.Points[i].Summary.Latency.TTFT.N = 9999
	}
	f, _ = Curve(c, "operating")
	if got := texts(t, f); slices.Contains(got, want[0]) {
		t.Errorf("p99.9 of 9,999 samples: %q", got)
	}
}

// Runs without a window measured no preemptions, which is not the same as none.
func TestPreemptionsUnknown(t *testing.T) {
	c := openCurve(1, 2, 3)
	for i := range c.Points {
		c.Points[i].Summary.Window = report.Window{}
	}
	f, _ := Curve(c, "kv")
	for _, text := range texts(t, f) {
		if strings.Contains(text, "None at any load") || strings.Contains(text, "no preemptions") {
			t.Errorf("%q", text)
		}
	}
}

func TestRepeatedLoadsAndIntervals(t *testing.T) {
	c := openCurve(5, 10, 10, 20)
	*c.Points[1].Summary.Throughput.OutputTokensPerS = 1700
	*c.Points[2].Summary.Throughput.OutputTokensPerS = 1900
	v := newSweep(c)
	if got := v.series(outputTPS); len(got) != 3 || got[1].y != 1800 {
		t.Errorf("two runs of one load: %+v", got)
	}
	c.Points[3].Summary.CI95 = map[string][2]float64{"throughput.output_tokens_per_s": {3500, 3700}}
	if got := v.throughput().series; got[len(got)-1].points[2].low != 3500 {
		t.Errorf("no interval: %+v", got)
	}
	f, _ := Curve(c, "throughput")
	if got := texts(t, f); !slices.Contains(got, "Bars: 95 % confidence intervals.") {
		t.Errorf("the bars are not explained: %q", got)
	}
}

// A load is written at its own point, also where the last one is a landmark and has no label of this kind.
func TestLoadsStandAtTheirPoints(t *testing.T) {
	c := closedCurve()
	keep := []curve.Point{c.Points[0], c.Points[5], c.Points[7], c.Points[8]}
	c.Points = keep // 10, 80 (knee), 100 (peak), 120 (collapse)
	tags := newSweep(c).loadTags(outputTPS, latency("ttft", "p95"))
	if len(tags) != 1 || tags[0].text != "10 users" {
		t.Errorf("%+v", tags)
	}
}

// A load that has not settled is drawn at its median hour, with a band of the hours. Where no hours are known it is
// drawn as it is, and so are loads that have settled.
func TestHoursAreDrawn(t *testing.T) {
	c := openCurve(10, 12, 14, 16)
	three := report.HourSpread{Least: of(100.0), Median: of(300.0), Most: of(9000.0)}
	twelve := report.HourSpread{Least: of(100.0), P10: of(120.0), Median: of(310.0), P90: of(800.0), Most: of(9000.0)}
	for i, h := range []*report.Hours{{TTFTP95: three}, {TTFTP95: three}, {TTFTP95: twelve}, nil} {
		s := c.Points[i].Summary
		s.Hours, s.Window.State = h, report.Finite
	}
	c.Points[0].Summary.Window.State = report.Settled
	v := newSweep(c)
	var got []xy
	for _, s := range v.latency("ttft").series {
		if s.name == "p95" {
			got = s.points
		}
	}
	own := func(i int) float64 { return *c.Points[i].Summary.Latency.TTFT.P95 }
	for i, want := range []xy{{y: own(0)}, {y: 300, low: 100, high: 9000}, {y: 310, low: 120, high: 800}, {y: own(3)}} {
		if q := got[i]; q.y != want.y || q.low != want.low || q.high != want.high {
			t.Errorf("load %g: %g with a band of %g to %g, want %g, %g to %g", q.load, q.y, q.low, q.high, want.y, want.low,
				want.high)
		}
	}
	if notes := strings.Join(v.notes(), " "); !strings.Contains(notes, "are of the median hour") {
		t.Error(notes)
	}
}

// degenerate are curves with little or nothing to show.
func degenerate() map[string]*curve.Curve {
	bare := &curve.Curve{Over: "users"}
	for _, x := range []float64{1, 2, 4} {
		bare.Points = append(bare.Points, curve.Point{Value: x, Summary: &report.Summary{}})
	}
	same := openCurve(5, 5, 5)
	zero := openCurve(1, 2, 3)
	for i := range zero.Points {
		zero.Points[i].Summary.Latency.TTFT = dist(5000, 0, 0, 0)
		zero.Points[i].Summary.Throughput.OutputTokensPerS = of(0.0)
	}
	odd := openCurve(1, 2, 3)
	odd.Points[0].Summary.Latency.TTFT = dist(5000, math.NaN(), math.Inf(1), -4)
	odd.Points[1].Summary = nil
	odd.Points[2].Value = math.NaN()
	return map[string]*curve.Curve{
		"nil": nil, "empty": {}, "one": openCurve(7), "one at zero": openCurve(0), "all nil": bare, "equal loads": same,
		"all zero": zero, "not numbers": odd, "wide": openCurve(1e-6, 1e-3, 1, 1e3, 1e6),
		"negative": openCurve(-3, -2, 5),
	}
}

func TestDegenerateCurves(t *testing.T) {
	for name, c := range degenerate() {
		for _, picture := range names() {
			f, err := Curve(c, picture)
			if err != nil {
				t.Fatal(err)
			}
			if f.Title == "" || len(texts(t, f)) == 0 {
				t.Errorf("%s, %s: nothing is said", name, picture)
			}
		}
		var b bytes.Buffer
		if err := Terminal(&b, c, 0); err != nil || b.Len() == 0 {
			t.Errorf("%s: %v, %d bytes", name, err, b.Len())
		}
	}
}

func TestAnyCurve(t *testing.T) {
	value := rapid.OneOf(rapid.Just(0.0), rapid.Just(math.Inf(1)), rapid.Float64Range(1e-9, 1e9),
		rapid.Float64Range(0, 50))
	pointer := rapid.Ptr(value, true)
	rapid.Check(t, func(t *rapid.T) {
		c := &curve.Curve{Over: rapid.SampledFrom([]string{"rate", "users", "engine.max_num_seqs", ""}).Draw(t, "over")}
		for range rapid.IntRange(0, 12).Draw(t, "points") {
			s := &report.Summary{}
			s.Window.EndS = value.Draw(t, "end")
			s.Window.Stationary = rapid.Ptr(rapid.Bool(), true).Draw(t, "stationary")
			s.System.Preemptions = rapid.Int64Range(0, 9).Draw(t, "preemptions")
			for _, p := range []**float64{
				&s.Throughput.OutputTokensPerS, &s.Throughput.OutputTokensPerSPerGPU, &s.Goodput.OutputTokensPerS,
				&s.Latency.TTFT.P50, &s.Latency.TTFT.P95, &s.Latency.TPOT.P50, &s.System.KVUsage.Mean,
				&s.System.PrefixHitRate,
			} {
				*p = pointer.Draw(t, "value")
			}
			c.Points = append(c.Points, curve.Point{Value: value.Draw(t, "load"), Summary: s})
		}
		if rapid.Bool().Draw(t, "marks") {
			c.Knee = &curve.Knee{Value: value.Draw(t, "knee"), OutputTokensPerS: value.Draw(t, "tps")}
			c.Peak = &curve.Peak{Value: value.Draw(t, "peak"), OutputTokensPerS: value.Draw(t, "tps")}
			c.Collapse = &curve.Collapse{Value: value.Draw(t, "collapse"), OutputTokensPerS: value.Draw(t, "tps"),
				FallFraction: 0.2}
		}
		f, err := Curve(c, "sweep")
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := f.WriteSVG(&b); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
			t.Fatal("a coordinate is no number")
		}
		b.Reset()
		if err := Terminal(&b, c, 70); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(b.String(), "\n") {
			if utf8.RuneCountInString(line) > 70 {
				t.Fatalf("%q is too wide", line)
			}
		}
	})
}

// memory keeps files by name.
type memory map[string]*bytes.Buffer

func (m memory) keep(name string, fill func(io.Writer) error) error {
	m[name] = new(bytes.Buffer)
	return fill(m[name])
}

func TestWriteAll(t *testing.T) {
	files := memory{}
	if err := WriteAll(openCurve(), "a chat", files.keep); err != nil {
		t.Fatal(err)
	}
	if len(files) != 2*len(names()) {
		t.Errorf("%d files", len(files))
	}
	f, _ := Curve(openCurve(), "operating")
	f.Caption = "a chat"
	var svg, bitmap bytes.Buffer
	if err := errors.Join(f.WriteSVG(&svg), f.WritePNG(&bitmap)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(svg.Bytes(), files["operating.svg"].Bytes()) ||
		!bytes.Equal(bitmap.Bytes(), files["operating.png"].Bytes()) {
		t.Error("equal curves make unequal files")
	}
	img, err := png.Decode(&bitmap)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := img.Bounds().Dx(), int(math.Round(float64(pageWidth)/72*192)); got != want {
		t.Errorf("%d pixels wide, want %d", got, want)
	}
	full := errors.New("disk full")
	if err := WriteAll(openCurve(), "", func(string, func(io.Writer) error) error {
		return full
	}); !errors.Is(err, full) {
		t.Errorf("a failing writer: %v", err)
	}
}

func TestDrawingTwiceIsTheSame(t *testing.T) {
	f, _ := Curve(closedCurve(), "sweep")
	var a, b bytes.Buffer
	if err := errors.Join(f.WriteSVG(&a), f.WriteSVG(&b)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("a figure changes when it is drawn")
	}
}

func TestRun(t *testing.T) {
	s := openCurve(22).Points[0].Summary
	s.Concurrency.Running.Mean, s.Concurrency.QueueDepth.Mean = of(118.0), of(0.4)
	got := texts(t, Run(s, buckets(0)))
	for _, want := range []string{"running", "waiting", "warm-up", "drain", "KV cache", "Time since the start, s"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q among %q", want, got)
		}
	}
	if title := Run(s, nil).Title; !strings.HasPrefix(title, "120 requests running and 0.4 waiting on average") {
		t.Errorf("title %q", title)
	}
	s.Window.Stationary, s.Window.GrowthRequestsPerS = of(false), of(3.04)
	if got, want := Run(s, buckets(3)).Title, "No steady state: the queue grows by 3 requests/s"; got != want {
		t.Errorf("title %q, want %q", got, want)
	}
	for name, b := range map[string][]report.SeriesPoint{"none": nil, "one": buckets(0)[:1],
		"empty": make([]report.SeriesPoint, 3)} {
		if len(texts(t, Run(nil, b))) == 0 {
			t.Errorf("%s: nothing is said", name)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{scaled(0, 3), "0"}, {scaled(4623, 2), "4.6k"}, {scaled(950, 3), "950"}, {scaled(999.96, 3), "1k"},
		{scaled(1.25e6, 3), "1.25M"},
		{scaled(0.126, 2), "0.13"}, {scaled(-1500, 2), "-1.5k"}, {scaled(9.999, 2), "10"},
		{duration(0.02, 2), "20 µs"}, {duration(140.4, 2), "140 ms"}, {duration(999.7, 3), "1 s"},
		{duration(48210, 2), "48 s"}, {duration(6e5, 2), "10 min"},
		{percent(0.31), "31 %"}, {percent(1), "100 %"}, {percent(0.004), "0.4 %"}, {percent(0.996), "99.6 %"},
		{percent(0), "0 %"},
		{loadNumber(120), "120"}, {loadNumber(0.25), "0.25"}, {loadNumber(2e6), "2M"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestTicks(t *testing.T) {
	labels := func(a axis, n int, values ...float64) string {
		a.spread(values, n)
		var out []string
		for _, k := range a.ticks {
			out = append(out, k.text)
		}
		return fmt.Sprint(out)
	}
	for _, c := range []struct{ got, want string }{
		{labels(axis{}, 5, 3, 40), "[0 10 20 30 40]"},
		{labels(axis{}, 5, 0.3), "[0 0.1 0.2 0.3]"},
		{labels(axis{}, 5, 0), "[0 0.2 0.4 0.6 0.8 1]"},
		{labels(axis{log: true}, 9, 34, 900), "[20 50 100 200 500 1k]"},
		{labels(axis{log: true}, 5, 34, 90000), "[100 1k 10k 100k]"},
		{labels(axis{log: true}, 5, 12), "[10 20]"},
		{labels(axis{log: true}, 4, 1, 1e7), "[1 100 10k 1M]"},
		{labels(axis{log: true}, 4), "[]"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

func TestStackKeepsOrderAndDistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.Float64Range(0, 100), 0, 8).Draw(t, "centres")
		var wanted []float64
		got := stack(lengths(in), 10, 0, 100)
		for i := range got {
			wanted = append(wanted, float64(got[i]))
			for k := range got {
				if in[i] < in[k] && got[k]-got[i] < 10-1e-9 || i != k && math.Abs(float64(got[i]-got[k])) < 10-1e-9 {
					t.Fatalf("%v becomes %v", in, got)
				}
			}
			if got[i] < 5-1e-9 || got[i] > 95+1e-9 {
				t.Fatalf("%v leaves its room: %v", in, wanted)
			}
		}
	})
}

func TestPlacerKeepsLabelsApart(t *testing.T) {
	p := &placer{bounds: rect(0, 0, 100, 100)}
	placed := 0
	for i := range 60 {
		w := wish{w: 20, h: 8, near: 3, order: []direction{northEast, east, south, west}}
		w.anchor.X, w.anchor.Y = lengths([]float64{float64(i * 37 % 100)})[0],
			lengths([]float64{float64(i * 61 % 100)})[0]
		before := slices.Clone(p.taken)
		box, _, ok := p.place(w)
		if !ok {
			continue
		}
		placed++
		if !inside(box, p.bounds) || slices.ContainsFunc(before, func(r rectangle) bool { return overlap(box, r) }) {
			t.Fatalf("label %d at %v", i, box)
		}
	}
	if placed < 10 || placed == 60 {
		t.Errorf("%d of 60 labels found room", placed)
	}
}

// TestTraffic draws traces with much, little and nothing in them.
func TestTraffic(t *testing.T) {
	full := &inspect.Result{File: "trace.csv", Requests: 5000, SpanS: 7200, RequestsPerS: of(0.69)}
	full.Arrivals.Dispersion = []inspect.Dispersion{{WindowS: 1, Index: of(1.4)}, {WindowS: 60, Index: of(16.0)}}
	for i := range 200 {
		full.Series = append(full.Series,
			inspect.TrafficPoint{StartS: float64(36 * i), EndS: float64(36*i + 36), Requests: int64(20 + i%17),
				InputTokens: int64(9000 + 50*i), OutputTokens: 4000})
		p := float64(i) / 199
		full.InputTokens.Quantiles = append(full.InputTokens.Quantiles, inspect.Quantile{P: p, Tokens: 10 + 4000*p*p})
		full.OutputTokens.Quantiles = append(full.OutputTokens.Quantiles, inspect.Quantile{P: p, Tokens: 1 + 900*p})
	}
	full.Prefix = &inspect.PrefixSharing{HitBlocks: of(0.4),
		LRU: []inspect.LRUPoint{{Tokens: 5e4, Hit: of(0.1)}, {Tokens: 5e6, Hit: of(0.39)}}}
	full.Warnings = []report.Warning{{Code: "cap", Text: "Cut."}}
	one := &inspect.Result{Requests: 1, Series: []inspect.TrafficPoint{{Requests: 1}}}
	one.InputTokens.Quantiles = []inspect.Quantile{{P: 0, Tokens: 7}, {P: 1, Tokens: 7}}
	one.Prefix = &inspect.PrefixSharing{}
	for name, c := range map[string]struct {
		x    *inspect.Result
		want []string
	}{
		"full": {full, []string{"5000 requests in 2 h, 0.69/s; counts over 60 s vary 16 times",
			"without bounds 40 %", "prompts", "Cut."}},
		"one row": {one, []string{"1 requests", "All arrive together", "No blocks"}},
		"nothing": {&inspect.Result{}, []string{"0 requests", "No requests"}},
	} {
		var svg, png bytes.Buffer
		f := Traffic(c.x)
		if err := f.WriteSVG(&svg); err != nil {
			t.Fatal(err)
		}
		if err := f.WritePNG(&png); err != nil {
			t.Fatal(err)
		}
		for _, w := range c.want {
			if !strings.Contains(strings.ReplaceAll(svg.String(), "\n", " "), w) &&
				!strings.Contains(strings.ReplaceAll(f.Title, "\n", " "), w) {
				t.Errorf("%s: no %q in the picture", name, w)
			}
		}
		if strings.Contains(svg.String(), "NaN") {
			t.Errorf("%s: NaN in the picture", name)
		}
	}
}
