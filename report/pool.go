package report

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"clifftop/report/layout"
)

// Methods by which confidence intervals are made.
const (
	ByReplications = "replications" // t or jackknife over runs with other random numbers
	ByBatchMeans   = "batch_means"  // the same over consecutive parts of one run
)

// Replications tells of the runs that a summary pools.
type Replications struct {
	Runs  int      `json:"runs"`
	Seeds []uint64 `json:"seeds"`
	// Precision is the relative half width of intervals that was asked for; nil where the number of runs was.
	Precision *float64 `json:"precision"`
	// Widest is the widest of the intervals that precision was asked of, and HalfWidth its half width over the mean.
	Widest    string   `json:"widest,omitempty"`
	HalfWidth *float64 `json:"half_width_fraction"`
	// Stopped says why there were no more runs.
	Stopped string `json:"stopped"`
}

// Reasons to stop replicating.
const (
	StoppedByCount     = "count"         // there were as many as asked for
	StoppedByPrecision = "precision"     // the intervals are as narrow as asked for
	StoppedByCap       = "cap"           // there were as many as allowed, and the intervals are wider
	StoppedByOverload  = "overload"      // there is no steady state to know better
	StoppedByAlike     = "no_randomness" // the seed changes nothing
	StoppedByInterrupt = "interrupted"
)

// Pool makes one summary of runs that differ in their random numbers alone, in the order of their seeds.
//
// Counts, and GPU time, are those of all runs together. Rates, shares and averages over time are ratios of sums: what
// happened in all windows by their whole length; their intervals are the jackknife's over the runs, those of shares of
// requests at least Wilson's. Means and percentiles of latencies are averages over the runs, with t intervals; the
// mean inter-token gap is a ratio of sums. A number that some run does not know is not known; a
// maximum is that of all runs. The window is an average one.
//
// An overloaded system has no steady state: latencies and numbers of requests then depend on how long the runs are, and
// get no intervals.
func Pool(runs []*Summary) *Summary {
	if len(runs) == 1 {
		return runs[0]
	}
	s := *runs[0]
	p := &pool{runs: runs, to: &s, ci: map[string][2]float64{}, tails: map[string]int64{}}
	s.Warnings, s.Stages, s.Classes = nil, nil, nil
	p.window()
	of := make([]reflect.Value, len(runs))
	for i, r := range runs {
		of[i] = reflect.ValueOf(r).Elem()
		s.Partial = s.Partial || r.Partial
	}
	p.fields("", of, reflect.ValueOf(&s).Elem())
	p.cost()
	p.objective()
	s.Replications = &Replications{Runs: len(runs), Stopped: StoppedByCount}
	for _, r := range runs {
		s.Replications.Seeds = append(s.Replications.Seeds, r.Seed)
	}
	s.CI95, s.TailSamples, s.CI95Method = p.ci, p.tails, ByReplications
	alike := p.alike()
	if alike {
		s.CI95, s.CI95Method = nil, ""
	}
	p.warnings(alike)
	s.Classes = poolClasses(runs)
	return &s
}

// String says how many runs there were, and why no more.
func (r *Replications) String() string {
	text := fmt.Sprintf("%d with seeds %d to %d, pooled; ± is half of a 95 %% interval", r.Runs, r.Seeds[0], r.Seeds[len(r.Seeds)-1])
	if r.Precision == nil {
		return text
	}
	asked := layout.Percent(*r.Precision)
	got := ""
	if r.HalfWidth != nil {
		got = fmt.Sprintf(": %s is within ±%s", r.Widest, layout.Percent(*r.HalfWidth))
	}
	switch r.Stopped {
	case StoppedByPrecision:
		text += fmt.Sprintf(". Enough for the precision of %s%s", asked, got)
	case StoppedByCap:
		text += fmt.Sprintf(". NOT enough for the precision of %s, but all that are allowed%s", asked, got)
	case StoppedByOverload:
		text += fmt.Sprintf(". More would not give the precision of %s: the system is overloaded", asked)
	case StoppedByAlike:
		text += fmt.Sprintf(". More would not give the precision of %s: the seed changes nothing", asked)
	}
	return text
}

// PrecisionPaths are the numbers that are to be known well before replicating ends.
func PrecisionPaths() []string {
	return []string{"throughput.output_tokens_per_s", "latency_ms.ttft.mean", "latency_ms.tpot.mean", "latency_ms.e2e.mean"}
}

// Widest finds the widest interval of the paths, as half its width over the value. The path is empty where none has an
// interval, or a value other than 0.
func (s *Summary) Widest(paths []string) (path string, half float64) {
	for _, p := range paths {
		ci, ok := s.CI95[p]
		middle := (ci[0] + ci[1]) / 2
		if !ok || middle == 0 {
			continue
		}
		if h := (ci[1] - ci[0]) / 2 / math.Abs(middle); path == "" || h > half {
			path, half = p, h
		}
	}
	return path, half
}

// pool makes a summary of several.
type pool struct {
	runs  []*Summary
	to    *Summary
	ci    map[string][2]float64
	tails map[string]int64
}

// unpooled are the paths whose values are not numbers to be pooled, or are pooled apart.
var unpooled = [...]string{
	"schema", "clifftop", "scenario", "seed", "partial", "window", "replications", "classes", "accuracy", "warnings", "ci95", "ci95_method", "tail_samples",
	"goodput.slo", "goodput.met", "goodput.limits", "goodput.gated_output_tokens_per_s", "cost",
}

// fields pools the fields of a struct.
func (p *pool) fields(path string, of []reflect.Value, to reflect.Value) {
	if d, ok := to.Addr().Interface().(*Distribution); ok {
		p.tail(path, of, d)
	}
	for i := range to.NumField() {
		f := to.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || name == "" {
			continue
		}
		full := join(path, name)
		if slices.Contains(unpooled[:], full) {
			continue
		}
		values := make([]reflect.Value, len(of))
		for k, v := range of {
			values[k] = v.Field(i)
		}
		p.value(full, values, to.Field(i))
	}
}

// value pools a number, or what holds numbers. A text is that of the first run.
func (p *pool) value(path string, of []reflect.Value, to reflect.Value) {
	switch to.Kind() {
	case reflect.Struct:
		p.fields(path, of, to)
	case reflect.Slice:
		p.list(path, of, to)
	case reflect.Int64:
		to.SetInt(0)
		for _, v := range of {
			to.SetInt(to.Int() + v.Int())
		}
	case reflect.Float64:
		xs := make([]float64, len(of))
		for i, v := range of {
			xs[i] = v.Float()
		}
		to.SetFloat(mean(xs))
	case reflect.Pointer:
		for _, v := range of {
			if v.IsNil() {
				to.SetZero()
				return
			}
		}
		within := make([]reflect.Value, len(of))
		for i, v := range of {
			within[i] = v.Elem()
		}
		to.Set(reflect.New(to.Type().Elem()))
		if to.Elem().Kind() == reflect.Float64 {
			p.number(path, within, to)
			return
		}
		p.value(path, within, to.Elem())
		if within, _ := ofReplica(path); within == "system.kv_blocks" {
			to.Elem().SetInt(of[0].Elem().Int())
		}
	default:
		to.Set(of[0])
	}
}

// list pools lists of equal lengths item by item.
func (p *pool) list(path string, of []reflect.Value, to reflect.Value) {
	n := of[0].Len()
	for _, v := range of {
		if v.Len() != n {
			return
		}
	}
	to.Set(reflect.MakeSlice(to.Type(), n, n))
	for i := range n {
		items := make([]reflect.Value, len(of))
		for k, v := range of {
			items[k] = v.Index(i)
		}
		p.value(fmt.Sprintf("%s.%d", path, i), items, to.Index(i))
	}
}

// ofReplica is the path of a replica's number as if it were the whole's.
func ofReplica(path string) (of string, is bool) {
	rest, is := strings.CutPrefix(path, "replicas.")
	if !is {
		return path, false
	}
	_, of, _ = strings.Cut(rest, ".")
	return of, true
}

// number pools a number that all runs know.
func (p *pool) number(path string, of []reflect.Value, to reflect.Value) {
	whole := path
	path, _ = ofReplica(path)
	xs := make([]float64, len(of))
	for i, v := range of {
		xs[i] = v.Float()
	}
	set := func(v float64) { to.Set(reflect.ValueOf(number(v))) }
	last := lastPart(path)
	switch weights := p.weights(whole); {
	case last == "max":
		set(slices.Max(xs))
	case last == "sd":
		squares := 0.0
		for _, x := range xs {
			squares += x * x
		}
		set(math.Sqrt(squares / float64(len(xs))))
	case strings.HasPrefix(path, "system.gpu_seconds."):
		sum := 0.0
		for _, x := range xs {
			sum += x
		}
		set(sum)
	case weights == nil:
		center, half := MeanInterval(xs, Confidence)
		set(center)
		p.interval(whole, center-half, center+half)
	default:
		parts := make([]float64, len(xs))
		for i, x := range xs {
			parts[i] = x * weights[i]
		}
		if isShare(path) {
			share, low, high := ShareInterval(parts, weights, Confidence)
			set(share)
			p.interval(whole, low, high)
			return
		}
		ratio, half := RatioInterval(parts, weights, Confidence)
		set(ratio)
		p.interval(whole, ratio-half, ratio+half)
	}
}

// isShare says that a path has a share of the requests offered.
func isShare(path string) bool { return path == "goodput.attainment" || path == "system.error_rate" }

// weights are what the numbers of a path are fractions of, in each run; nil for averages over runs.
func (p *pool) weights(path string) []float64 {
	var of func(*Summary) float64
	switch part := lastPart(path); {
	case strings.HasPrefix(path, "stages."): // they are as long in every run
	case isShare(path):
		of = (*Summary).arrivals
	case path == "latency_ms.itl.mean":
		of = func(s *Summary) float64 { return float64(s.Latency.ITL.N) }
	case path == "system.prefix_hit_rate":
		of = func(s *Summary) float64 { return perWindow(s.Throughput.InputTokensPerS, s) }
	case path == "goodput.work_fraction":
		of = func(s *Summary) float64 { return computedTokens(s) }
	case strings.HasPrefix(path, "throughput."), strings.HasSuffix(part, "_per_s"), strings.HasPrefix(path, "concurrency.") && part == "mean",
		strings.HasPrefix(path, "system.") && !strings.Contains(path, "speculative"):
		of = func(s *Summary) float64 { return s.Window.EndS - s.Window.StartS }
	}
	if of == nil {
		return nil
	}
	weights := make([]float64, len(p.runs))
	for i, r := range p.runs {
		if weights[i] = of(r); !(weights[i] > 0) {
			return nil
		}
	}
	return weights
}

// perWindow is the number of what has a rate in the window.
func perWindow(rate *float64, s *Summary) float64 {
	if rate == nil {
		return 0
	}
	return *rate * (s.Window.EndS - s.Window.StartS)
}

// arrivals is the number of requests that were offered in the window.
func (s *Summary) arrivals() float64 {
	return math.Round(perWindow(s.Throughput.OfferedRequestsPerS, s))
}

// interval notes an interval. Latencies and numbers in the system have none under overload.
func (p *pool) interval(path string, low, high float64) {
	if _, is := ofReplica(path); is || math.IsInf(high-low, 0) || math.IsNaN(high-low) {
		return // replicas have none: there are many of them
	}
	if w := &p.to.Window; w.Stationary != nil && !*w.Stationary && growsWithRun(path) {
		return
	}
	p.ci[path] = [2]float64{low, high}
}

// growsWithRun says that a number of an overloaded system has no limit as the run gets longer.
func growsWithRun(path string) bool {
	for _, prefix := range []string{"latency_ms.", "concurrency.", "e2e_tps_user.", "goodput."} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// tail notes how many samples lie beyond the percentiles, in all runs, and how few any run has.
func (p *pool) tail(path string, of []reflect.Value, d *Distribution) {
	d.fewest = math.MaxInt64
	var n int64
	for _, v := range of {
		n += v.Addr().Interface().(*Distribution).N
		d.fewest = min(d.fewest, v.Addr().Interface().(*Distribution).N)
	}
	if _, is := ofReplica(path); is || n == 0 || strings.HasPrefix(path, "stages.") {
		return
	}
	for _, q := range tailQuantiles {
		p.tails[join(path, q.name)] = beyondQuantile(n, q.q)
	}
}

// tailQuantiles are the percentiles that are told with the number of samples beyond them.
var tailQuantiles = [...]struct {
	name string
	q    float64
}{{"p90", .9}, {"p95", .95}, {"p99", .99}, {"p99_9", .999}}

// beyondQuantile is the number of samples beyond a quantile of n.
func beyondQuantile(n int64, q float64) int64 { return n - int64(math.Ceil(float64(n)*q-1e-9)) }

// window is the average window. The system is stationary unless more runs say the contrary.
func (p *pool) window() {
	w := &p.to.Window
	*w = Window{}
	n := float64(len(p.runs))
	steady, unsteady, growth, growing := 0, 0, 0.0, 0
	for _, r := range p.runs {
		w.StartS += r.Window.StartS / n
		w.EndS += r.Window.EndS / n
		w.WarmupS += r.Window.WarmupS / n
		switch st := r.Window.Stationary; {
		case st == nil:
		case *st:
			steady++
		default:
			unsteady++
		}
		if g := r.Window.GrowthRequestsPerS; g != nil {
			growth += *g
			growing++
		}
	}
	if steady+unsteady > 0 {
		verdict := steady >= unsteady
		w.Stationary = &verdict
		if growing > 0 && !verdict {
			w.GrowthRequestsPerS = number(growth / float64(growing))
		}
	}
}

// cost is the price at the pooled throughput.
func (p *pool) cost() {
	c := p.runs[0].Cost
	if c == nil || c.USDPerHour == nil {
		return
	}
	price := *c.USDPerHour
	cost := *c
	cost.USDPerMillionOutputAtLoad = usdPerMillion(price, p.to.Throughput.OutputTokensPerS)
	cost.USDPerMillionOutputGood = usdPerMillion(price, p.to.Goodput.OutputTokensPerS)
	p.to.Cost = &cost
	for path, of := range map[string]string{
		"cost.usd_per_million_output_tokens_at_load": "throughput.output_tokens_per_s", "cost.usd_per_million_output_tokens_good": "goodput.output_tokens_per_s",
	} {
		if ci, ok := p.ci[of]; ok && ci[0] > 0 {
			p.ci[path] = [2]float64{*usdPerMillion(price, &ci[1]), *usdPerMillion(price, &ci[0])}
		}
	}
}

// objective judges the runs together.
func (p *pool) objective() {
	g := &p.to.Goodput
	if g.SLO == nil {
		return
	}
	g.Limits = nil
	var judged []*Summary // a run without a request in its window says nothing of the limits
	for _, r := range p.runs {
		if r.Goodput.Limits != nil {
			judged = append(judged, r)
		}
	}
	if len(judged) == 0 {
		return
	}
	for i := range judged[0].Goodput.Limits {
		l := LimitResult{}
		for _, r := range judged {
			l.add(&r.Goodput.Limits[i])
		}
		l.conclude(len(judged))
		g.Limits = append(g.Limits, l)
	}
	g.judge(p.to.Throughput.OutputTokensPerS)
}

// alike reports whether the runs do not differ.
func (p *pool) alike() bool {
	for _, r := range p.runs[1:] {
		if !alikeRuns(p.runs[0], r) {
			return false
		}
	}
	return true
}

// alikeRuns reports whether two runs did the same.
func alikeRuns(a, b *Summary) bool {
	return a.Window.StartS == b.Window.StartS && a.Window.EndS == b.Window.EndS && a.Requests == b.Requests && a.Tokens.Output == b.Tokens.Output && a.Tokens.Input == b.Tokens.Input &&
		alikeNumbers(a.Latency.E2E.Mean, b.Latency.E2E.Mean) && alikeNumbers(a.Latency.TTFT.Mean, b.Latency.TTFT.Mean)
}

func alikeNumbers(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }

// warnings are those of the runs, each once, with the number of runs that give it where not all do. Texts may differ in
// their numbers: those of the first run stand.
func (p *pool) warnings(alike bool) {
	type key struct {
		code string
		k    int // of those with that code in a run
	}
	s := p.to
	count, text := map[key]int{}, map[key]string{}
	var keys []key
	for _, r := range p.runs {
		seen := map[string]int{}
		for _, w := range r.Warnings {
			k := key{w.Code, seen[w.Code]}
			seen[w.Code]++
			if count[k]++; count[k] == 1 {
				keys, text[k] = append(keys, k), w.Text
			}
		}
	}
	s.Warnings = []Warning{}
	overload := s.Window.Stationary != nil && !*s.Window.Stationary
	for _, k := range keys {
		t := text[k]
		if k.code == "not_stationary" && overload && s.Window.GrowthRequestsPerS != nil {
			t = fmt.Sprintf("overload: the system fills up by %.3g requests/s and has no steady state. Latencies and numbers of requests are averages over runs of this length, and have no intervals", *s.Window.GrowthRequestsPerS)
		} else if n := count[k]; n < len(p.runs) {
			t = fmt.Sprintf("in %d of %d runs: %s", n, len(p.runs), t)
		}
		s.warn(k.code, t)
	}
	if alike {
		s.warn("no_randomness", "the seed changes nothing in this traffic: the runs are alike, and there are no intervals")
	}
}
