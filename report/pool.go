package report

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"clifftop/report/layout"
	"clifftop/report/stats"
)

// Pool makes one summary of runs that differ in their random numbers alone, in the order of their seeds.
//
// Counts, and GPU time, are sums over the runs. Rates, shares and averages over time are ratios of sums: the events of
// all windows divided by their total length; their intervals are the jackknife's over the runs, those of shares of
// requests at least Wilson's. Means and percentiles of latencies are averages over the runs, with t intervals; the mean
// inter-token gap is a ratio of sums. A number that is unknown in one run is unknown; a maximum is the maximum over all
// runs. The window is the average window.
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
	s.SLOHours, s.Hours = poolSLOHours(runs), poolHours(runs)
	s.Replications, s.Effort = &Replications{Runs: len(runs), Stopped: StoppedByCount}, Effort{}
	for _, r := range runs {
		s.Effort.Add(r.Effort)
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

// pool makes a summary of several.
type pool struct {
	runs  []*Summary
	to    *Summary
	ci    map[string][2]float64
	tails map[string]int64
}

// unpooled are the paths whose values are not pooled, or are pooled by code of their own.
var unpooled = [...]string{
	"schema", "clifftop", "scenario", "seed", "partial", "window", "replications", "classes", "accuracy", "predictive",
	"warnings",
	"ci95", "ci95_method", "tail_samples", "slo_hours", "hours", "effort",
	"goodput.slo", "goodput.met", "goodput.limits", "goodput.gated_output_tokens_per_s", "cost",
}

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
		full := JoinPath(path, name)
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

// value pools a number, or a value that contains numbers. A text is taken from the first run.
func (p *pool) value(path string, of []reflect.Value, to reflect.Value) {
	switch to.Kind() {
	case reflect.Struct:
		p.fields(path, of, to)
	case reflect.Slice:
		p.list(path, of, to)
	case reflect.Int, reflect.Int64:
		p.count(path, of, to)
	case reflect.Float64:
		xs := make([]float64, len(of))
		for i, v := range of {
			xs[i] = v.Float()
		}
		to.SetFloat(stats.Mean(xs))
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
	default:
		to.Set(of[0])
	}
}

func (p *pool) count(path string, of []reflect.Value, to reflect.Value) {
	pooling := pooledMetric(path).Pool
	n := of[0].Int()
	for _, v := range of[1:] {
		switch pooling {
		case Sum:
			n += v.Int()
		case Max:
			n = max(n, v.Int())
		}
	}
	to.SetInt(n)
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
	w.Backlog = p.backlog()
	if steady+unsteady > 0 {
		verdict := steady >= unsteady
		w.Stationary = &verdict
		if growing > 0 && !verdict {
			w.GrowthRequestsPerS = stats.Finite(growth / float64(growing))
		}
	}
}

// backlog averages the backlogs of the runs that have one, and the ends of their intervals. It is nil if most have
// none.
func (p *pool) backlog() *Backlog {
	var sum Backlog
	n := 0.0
	for _, r := range p.runs {
		if b := r.Window.Backlog; b != nil {
			sum.RequestsPerS += b.RequestsPerS
			sum.CI95[0] += b.CI95[0]
			sum.CI95[1] += b.CI95[1]
			n++
		}
	}
	if 2*n <= float64(len(p.runs)) {
		return nil
	}
	return &Backlog{RequestsPerS: sum.RequestsPerS / n, CI95: [2]float64{sum.CI95[0] / n, sum.CI95[1] / n}}
}

// cost is the price at the pooled throughput.
func (p *pool) cost() {
	c := p.runs[0].Cost
	if c == nil || c.USDPerHour == nil {
		return
	}
	price := p.price()
	cost := *c
	cost.USDPerHour = &price
	cost.USDPerMillionOutputAtLoad = CostPerMillion(price, p.to.Throughput.OutputTokensPerS)
	cost.USDPerMillionOutputGood = CostPerMillion(price, p.to.Goodput.OutputTokensPerS)
	p.to.Cost = &cost
	for path, of := range map[string]string{
		"cost.usd_per_million_output_tokens_at_load": "throughput.output_tokens_per_s",
		"cost.usd_per_million_output_tokens_good":    "goodput.output_tokens_per_s",
	} {
		if ci, ok := p.ci[of]; ok && ci[0] > 0 {
			p.ci[path] = [2]float64{*CostPerMillion(price, &ci[1]), *CostPerMillion(price, &ci[0])}
		}
	}
}

// price returns the mean price of an hour. Replicas that start and stop are paid while they exist.
func (p *pool) price() float64 {
	first := *p.runs[0].Cost.USDPerHour
	paid, length, same := 0.0, 0.0, true
	for _, r := range p.runs {
		x, seconds := 0.0, r.Window.EndS-r.Window.StartS
		if r.Cost != nil && r.Cost.USDPerHour != nil { // a run that paid for nothing has no price
			x = *r.Cost.USDPerHour
		}
		paid, length, same = paid+x*seconds, length+seconds, same && x == first
	}
	if same || length == 0 {
		return first
	}
	return paid / length
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
	g.Judge(p.to.Throughput.OutputTokensPerS)
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
	return a.Window.StartS == b.Window.StartS && a.Window.EndS == b.Window.EndS && a.Requests == b.Requests &&
		a.Tokens.Output == b.Tokens.Output && a.Tokens.Input == b.Tokens.Input &&
		alikeNumbers(a.Latency.E2E.Mean, b.Latency.E2E.Mean) && alikeNumbers(a.Latency.TTFT.Mean, b.Latency.TTFT.Mean)
}

func alikeNumbers(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }

// warnings merges the warnings of the runs, each with the number of its runs if not all have it. Texts that differ only
// in numbers count as one, with the numbers of the first run.
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
	for _, k := range keys {
		t := text[k]
		if k.code == "not_stationary" && s.Window.Unsettled() && s.Window.GrowthRequestsPerS != nil {
			t = fmt.Sprintf("overload: the system fills up by %s requests/s and has no steady state. Latencies and "+
				"numbers of requests are averages over runs of this length, and have no intervals",
				layout.Significant(*s.Window.GrowthRequestsPerS, 3))
		} else if n := count[k]; n < len(p.runs) {
			t = fmt.Sprintf("in %d of %d runs: %s", n, len(p.runs), t)
		}
		s.AddWarning(k.code, t)
	}
	if alike {
		s.AddWarning("no_randomness",
			"the seed changes nothing in this traffic: the runs are alike, and there are no intervals")
	}
}
