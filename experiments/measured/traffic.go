package measured

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/workload"
)

// Traffic is the workload of a run for a scenario.
type Traffic struct {
	// Workload is the section workload. Each value has a comment that says from where it comes.
	Workload *yamldoc.Node
	// Fits are the distributions of request lengths and of gaps, where the run has single requests.
	Fits []Fit
	// Notes say what was assumed, one line each.
	Notes []string
}

// Fit is a measured distribution and the law that stands for it.
type Fit struct {
	// Title names what was measured, and Unit is its unit: tokens or s.
	Title, Unit string
	// Law is the law in words.
	Law string
	// Distance is the Kolmogorov–Smirnov distance: the largest difference of the two cumulative distributions.
	Distance float64
	// Measured are the values, sorted.
	Measured []float64
	// Below is the share of the law that is x or less.
	Below func(x float64) float64
}

// Traffic fits the arrivals and the lengths of the run. The error is a [yamldoc.Faults] if the run does not tell them.
func (run *Run) Traffic(file string) (*Traffic, error) {
	t := &Traffic{Workload: &yamldoc.Node{Kind: yamldoc.Map}}
	fault := func(problem string) error {
		return yamldoc.Faults{{Where: file, Key: run.Name, Problem: problem}}
	}
	arrivals, from := run.arrivals(t)
	if arrivals == nil {
		return nil, fault("neither a rate nor a number of users is in the result (want --rate N or --users N)")
	}
	t.put("arrivals", arrivals, from)
	input, output := run.lengths(t, "prompt lengths", &run.Input, func(q Request) int { return q.Input }),
		run.lengths(t, "output lengths", &run.Output, func(q Request) int { return q.Output })
	switch {
	case input == nil && output == nil:
		return nil, fault("the result has no lengths of prompts and outputs (want them in the result, or --input N " +
			"and --output N)")
	case input == nil:
		return nil, fault("the result has no lengths of prompts (want them in the result, or --input N)")
	case output == nil:
		return nil, fault("the result has no lengths of outputs (want them in the result, or --output N)")
	}
	t.put("input", input.node, input.from)
	t.put("output", output.node, output.from)
	if run.inSessions() {
		t.Notes = append(t.Notes, "the requests belong to conversations; the fit takes them as single requests, so "+
			"that no prefix is "+
			"shared (a trace keeps them for routers)")
	}
	return t, nil
}

func (t *Traffic) put(name string, v *yamldoc.Node, comment string) {
	v.Comment = comment
	t.Workload.Put(name, yamldoc.Place{}, v)
}

// law is a distribution for a scenario.
type law struct {
	node  *yamldoc.Node
	from  string
	spec  workload.LengthsSpec
	words string
}

// fewGaps is the smallest number of gaps for the fit of a CV.
const fewGaps = 20

// arrivals is the arrival process, and where it comes from.
func (run *Run) arrivals(t *Traffic) (*yamldoc.Node, string) {
	l, gaps := run.Load, run.gaps()
	process := func(name string) *yamldoc.Node {
		n := &yamldoc.Node{Kind: yamldoc.Map}
		n.Put("process", yamldoc.Place{}, &yamldoc.Node{Kind: yamldoc.Text, Text: name})
		return n
	}
	switch {
	case l.Rate != nil && *l.Rate > 0:
		if l.Concurrency != nil {
			t.Notes = append(t.Notes, fmt.Sprintf("at most %s in flight in the measured run; there is no limit in "+
				"the scenario", requests(*l.Concurrency)))
		}
		n, how := process("poisson"), fmt.Sprintf("rate of the load generator: %g/s", *l.Rate)
		switch {
		case l.Constant:
			n = process("constant")
		case l.Burstiness != nil && *l.Burstiness != 1 && *l.Burstiness > 0:
			n = process("gamma")
			n.Put("rate", yamldoc.Place{}, number(*l.Rate))
			n.Put("cv", yamldoc.Place{}, number(significant(1/math.Sqrt(*l.Burstiness))))
			t.gaps(gaps, *l.Rate, 1/math.Sqrt(*l.Burstiness))
			return n, how + fmt.Sprintf(", burstiness %g", *l.Burstiness)
		case l.Burstiness == nil && len(gaps) >= fewGaps:
			return t.fitted(gaps, *l.Rate, how)
		}
		n.Put("rate", yamldoc.Place{}, number(*l.Rate))
		cv := 1.0
		if l.Constant {
			cv = 0
		}
		t.gaps(gaps, *l.Rate, cv)
		return n, how
	case l.Concurrency != nil && *l.Concurrency > 0:
		n := process("closed")
		n.Put("users", yamldoc.Place{}, number(float64(*l.Concurrency)))
		return n, fmt.Sprintf("%s in flight", requests(*l.Concurrency))
	case l.AtOnce:
		return process("all-at-once"), "all requests were sent at the beginning"
	case len(gaps) >= fewGaps:
		t.Notes = append(t.Notes, "the result does not say how requests were sent; their times are taken as those of "+
			"an open loop "+
			"(--users N makes it closed)")
		total := 0.0
		for _, g := range gaps {
			total += g
		}
		return t.fitted(gaps, float64(len(gaps))/total, "")
	case or(run.RequestsPerS, 0) > 0:
		n := process("poisson")
		n.Put("rate", yamldoc.Place{}, number(significant(*run.RequestsPerS)))
		t.Notes = append(t.Notes, "the result does not say how requests were sent; arrivals are taken as Poisson with "+
			"the rate of "+
			"completed requests (--users N makes it closed)")
		return n, "rate of completed requests"
	}
	return nil, ""
}

// gaps are the times between arrivals in seconds, where all are known.
func (run *Run) gaps() []float64 {
	var out []float64
	for i, q := range run.Requests {
		if !q.Timed {
			return nil
		}
		if i > 0 {
			out = append(out, (q.Arrival - run.Requests[i-1].Arrival).Seconds())
		}
	}
	if len(out) == 0 || run.Requests[len(run.Requests)-1].Arrival == 0 {
		return nil
	}
	return out
}

// fitted is a process with the rate and with the CV of the gaps. A CV that could be that of a Poisson process, within
// two standard errors, is taken as that.
func (t *Traffic) fitted(gaps []float64, rate float64, how string) (*yamldoc.Node, string) {
	s := describe(gaps)
	cv, n := *s.Std / *s.Mean, float64(len(gaps))
	rate = significant(rate)
	node := &yamldoc.Node{Kind: yamldoc.Map}
	name := "gamma"
	switch {
	case cv < 0.05:
		name, cv = "constant", 0
	case math.Abs(cv-1) < 2/math.Sqrt(n): // the sample CV of an exponential has a standard error of 1/√n
		name = "poisson"
	}
	node.Put("process", yamldoc.Place{}, &yamldoc.Node{Kind: yamldoc.Text, Text: name})
	node.Put("rate", yamldoc.Place{}, number(rate))
	if name == "gamma" {
		cv = significant(min(max(cv, 0.05), 100))
		node.Put("cv", yamldoc.Place{}, number(cv))
		t.gaps(gaps, rate, cv)
	} else if name == "poisson" {
		t.gaps(gaps, rate, 1)
	} else {
		t.gaps(gaps, rate, 0)
	}
	if how != "" {
		how += "; "
	}
	return node, fmt.Sprintf("%sgaps of %d requests: CV %.2f", how, len(gaps)+1, *s.Std / *s.Mean)
}

// gaps adds the fit of the gaps between arrivals.
func (t *Traffic) gaps(gaps []float64, rate, cv float64) {
	if len(gaps) < fewGaps {
		return
	}
	shape := 0.0
	words := fmt.Sprintf("constant, %.4g s", 1/rate)
	if cv > 0 {
		shape = 1 / (cv * cv)
		words = fmt.Sprintf("gamma, mean %.4g s, CV %.3g", 1/rate, cv)
	}
	f := Fit{Title: "Gaps of arrivals", Unit: "s", Law: words, Measured: slices.Sorted(slices.Values(gaps)),
		Below: func(x float64) float64 {
			if shape == 0 {
				if x >= 1/rate {
					return 1
				}
				return 0
			}
			return gammaBelow(shape, x*rate*shape)
		}}
	f.Distance = distance(f.Measured, f.Below)
	t.Fits = append(t.Fits, f)
}

// lengths is the law of lengths; nil if nothing is known of them.
func (run *Run) lengths(t *Traffic, title string, l *Lengths, of func(Request) int) *law {
	var values []float64
	for _, q := range run.Requests {
		if n := of(q); !q.Failed && n > 0 {
			values = append(values, float64(n))
		}
	}
	if len(values) == 0 {
		return l.law(t, title)
	}
	slices.Sort(values)
	best := fitLengths(values)
	k := *best
	below, err := k.below()
	if err != nil {
		return nil
	}
	f := Fit{Title: strings.ToUpper(title[:1]) + title[1:], Unit: "tokens", Law: k.words, Measured: values,
		Below: below}
	f.Distance = distance(values, below)
	t.Fits = append(t.Fits, f)
	k.from = fmt.Sprintf("%s; KS distance %.3f", requests(len(values)), f.Distance)
	return &k
}

// closeEnough is the Kolmogorov–Smirnov distance up to which a law with few parameters stands for lengths.
const closeEnough = 0.05

// fitLengths chooses a law: fixed, uniform or lognormal if one is close to the values, else their quantiles.
func fitLengths(values []float64) *law {
	s := describe(values)
	if *s.Min == *s.Max {
		return fixedLaw(*s.Mean)
	}
	logs := make([]float64, len(values))
	for i, v := range values {
		logs[i] = math.Log(v)
	}
	ofLogs := describe(logs)
	mu, variance := *ofLogs.Mean, *ofLogs.Std**ofLogs.Std
	best, least := quantilesLaw(values), closeEnough
	for _, k := range []*law{uniformLaw(*s.Min, *s.Max), lognormalLaw(*s.Mean, *s.Std / *s.Mean, *s.Max),
		lognormalLaw(math.Exp(mu+variance/2), math.Sqrt(math.Expm1(variance)), *s.Max)} {
		below, err := k.below()
		if err != nil {
			continue
		}
		if d := distance(values, below); d < least {
			best, least = k, d
		}
	}
	return best
}

// law is the law that totals tell: of mean and standard deviation, of percentiles, or of the mean alone.
func (l *Lengths) law(t *Traffic, title string) *law {
	s := l.Statistics
	if typical := or(s.Mean, or(s.P50, 0)); !(typical >= 1) || max(typical, or(s.Max, 0)) > maxTokens {
		return nil
	}
	known := func(list ...*float64) bool { return !slices.Contains(list, nil) }
	with := func(k *law, format string, args ...any) *law {
		k.from = fmt.Sprintf(format, args...)
		return k
	}
	switch {
	case known(s.Min, s.Max) && *s.Min == *s.Max || known(s.Std, s.Mean) && *s.Std < 0.005**s.Mean:
		return with(fixedLaw(or(s.Mean, or(s.P50, 1))), "all %s are equal", title)
	case known(s.Mean, s.Std, s.Min, s.Max) && math.Abs(*s.Std*math.Sqrt(12)/(*s.Max-*s.Min)-1) < 0.03 &&
		math.Abs((*s.Min+*s.Max)/2 / *s.Mean - 1) < 0.03:
		return with(uniformLaw(*s.Min, *s.Max), "smallest and largest; the standard deviation is that of a uniform law")
	case known(s.Mean, s.Std):
		return with(lognormalLaw(*s.Mean, *s.Std / *s.Mean, or(s.Max, 0)), "mean %.5g, standard deviation %.5g",
			*s.Mean, *s.Std)
	case known(s.Min, s.P50, s.Max):
		return with(percentilesLaw(s), "percentiles of the result")
	case known(s.P50, s.P90) && *s.P90 > *s.P50 && *s.P50 >= 1:
		const z90 = 1.2815515655446004
		sigma := math.Log(*s.P90 / *s.P50) / z90
		cv := math.Sqrt(math.Expm1(sigma * sigma))
		return with(lognormalLaw(or(s.Mean, *s.P50*math.Exp(sigma*sigma/2)), cv, or(s.Max, 0)), "median %.5g, p90 %.5g",
			*s.P50,
			*s.P90)
	}
	t.Notes = append(t.Notes, "the result has only the mean of "+title+": all are taken as equal, which makes "+
		"waiting times too short")
	return with(fixedLaw(or(s.Mean, or(s.P50, 1))), "mean")
}

func newLaw(spec workload.LengthsSpec, words string, fields ...any) *law {
	n := &yamldoc.Node{Kind: yamldoc.Map}
	n.Put("distribution", yamldoc.Place{}, &yamldoc.Node{Kind: yamldoc.Text, Text: spec.Distribution})
	for i := 0; i < len(fields); i += 2 {
		switch v := fields[i+1].(type) {
		case float64:
			n.Put(fields[i].(string), yamldoc.Place{}, number(v))
		case []float64:
			list := &yamldoc.Node{Kind: yamldoc.List}
			for _, x := range v {
				list.Items = append(list.Items, number(x))
			}
			n.Put(fields[i].(string), yamldoc.Place{}, list)
		}
	}
	return &law{node: n, spec: spec, words: words}
}

func fixedLaw(x float64) *law {
	x = max(math.Round(x), 1)
	return newLaw(workload.LengthsSpec{Distribution: "fixed", Value: int32(x)}, fmt.Sprintf("fixed, %.0f", x), "value",
		x)
}

func uniformLaw(low, high float64) *law {
	low, high = max(math.Round(low), 1), max(math.Round(high), 1)
	return newLaw(workload.LengthsSpec{Distribution: "uniform", Min: int32(low), Max: int32(high)},
		fmt.Sprintf("uniform, %.0f to %.0f", low, high), "min", low, "max", high)
}

func lognormalLaw(mean, cv, most float64) *law {
	mean, cv = significant(mean), significant(max(cv, 0.001))
	spec := workload.LengthsSpec{Distribution: "lognormal", Mean: mean, CV: cv}
	words := fmt.Sprintf("lognormal, mean %g, CV %g", mean, cv)
	if most >= 1 {
		most = math.Ceil(most)
		spec.Max = int32(most)
		return newLaw(spec, words, "mean", mean, "cv", cv, "max", most)
	}
	return newLaw(spec, words, "mean", mean, "cv", cv)
}

// quantilesLaw has 23 quantiles of sorted values: steps of 5 %, and 1 and 99 %.
func quantilesLaw(values []float64) *law {
	p := []float64{0, 0.01}
	for i := 1; i < 20; i++ {
		p = append(p, float64(i)/20)
	}
	p = append(p, 0.99, 1)
	var q []float64
	for _, at := range p {
		q = append(q, math.Round(quantile(values, at)))
	}
	return newLaw(workload.LengthsSpec{Distribution: "quantiles", P: p, Q: q}, "measured quantiles", "p", p, "q", q)
}

func percentilesLaw(s Statistics) *law {
	var p, q []float64
	for _, k := range []struct {
		at float64
		v  *float64
	}{{0, s.Min}, {0.5, s.P50}, {0.9, s.P90}, {0.95, s.P95}, {0.99, s.P99}, {1, s.Max}} {
		if k.v != nil && (len(q) == 0 || *k.v >= q[len(q)-1]) {
			p, q = append(p, k.at), append(q, *k.v)
		}
	}
	return newLaw(workload.LengthsSpec{Distribution: "quantiles", P: p, Q: q}, "percentiles", "p", p, "q", q)
}

// below is the cumulative distribution of the law.
func (k *law) below() (func(x float64) float64, error) {
	l, err := k.spec.Lengths("lengths")
	if err != nil {
		return nil, err
	}
	return func(x float64) float64 {
		return 1 - l.Exceeds(int32(min(max(math.Floor(x), 0), workload.MaxTokens)))
	}, nil
}

// distance is the Kolmogorov–Smirnov distance of sorted values from a law. Laws of whole numbers have steps at the
// values, so that both sides of a step are compared.
func distance(values []float64, below func(x float64) float64) float64 {
	most, n := 0.0, float64(len(values))
	for i := 0; i < len(values); {
		j := i
		for j < len(values) && values[j] == values[i] {
			j++
		}
		most = max(most, math.Abs(below(values[i])-float64(j)/n),
			math.Abs(below(math.Nextafter(values[i], -1))-float64(i)/n))
		i = j
	}
	return most
}

// gammaBelow is the regularised lower incomplete gamma function P(a, x), by its series or its continued fraction
// (Abramowitz and Stegun 6.5.29 and 6.5.31).
func gammaBelow(a, x float64) float64 {
	if !(x > 0) {
		return 0
	}
	lg, _ := math.Lgamma(a)
	front := math.Exp(a*math.Log(x) - x - lg)
	if x < a+1 {
		term, total := 1/a, 1/a
		for n := 1; n < 1000 && term > total*1e-14; n++ {
			term *= x / (a + float64(n))
			total += term
		}
		return min(front*total, 1)
	}
	const tiny = 1e-300
	b := x + 1 - a
	c, d := 1/tiny, 1/b
	h := d
	for i := 1; i < 1000; i++ {
		an := -float64(i) * (float64(i) - a)
		b += 2
		d = an*d + b
		if math.Abs(d) < tiny {
			d = tiny
		}
		c = b + an/c
		if math.Abs(c) < tiny {
			c = tiny
		}
		d = 1 / d
		h *= d * c
		if math.Abs(d*c-1) < 1e-14 {
			break
		}
	}
	return max(0, 1-front*h)
}

func requests(n int) string {
	if n == 1 {
		return "1 request"
	}
	return fmt.Sprintf("%d requests", n)
}

// significant rounds to four digits.
func significant(x float64) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64)
	return y
}

func number(x float64) *yamldoc.Node {
	return &yamldoc.Node{Kind: yamldoc.Number, Number: x, Text: strconv.FormatFloat(x, 'f', -1, 64),
		Whole: x == math.Trunc(x)}
}
