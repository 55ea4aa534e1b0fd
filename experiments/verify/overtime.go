package verify

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"clifftop/experiments/measured"
	"clifftop/experiments/scenario"
	"clifftop/experiments/validation"
	"clifftop/report"
	"clifftop/report/chart"
	"clifftop/report/layout"
)

// OverTime is the state of the engine over time, measured and simulated, in periods of equal length.
type OverTime struct {
	PeriodS float64 `json:"period_s"`
	// StartS is when the simulated traffic starts, from the first sample. The samples do not tell the instant: it is
	// the one around the first sample with a request, from a period before it to half of one after it, at which the
	// running requests agree best.
	StartS float64 `json:"start_s"`
	Series []Curve `json:"series"`

	begun bool // before the first sample
}

// Curve is one number of the state over time.
type Curve struct {
	Name string `json:"metric"` // running_requests, waiting_requests, kv_usage or gpu_hit_rate
	// Difference is the median of the absolute differences of the periods with both values.
	Difference float64 `json:"median_difference"`
	// Chance is the same between this simulation and one with another seed.
	Chance float64 `json:"median_difference_by_chance"`
	// Mean is the mean of the measured values.
	Mean   float64   `json:"measured_mean"`
	Points []Instant `json:"points"`
}

// Instant is a period of a [Curve].
type Instant struct {
	AtS       float64  `json:"at_s"` // the middle, from the start of the simulated traffic
	Measured  *float64 `json:"measured"`
	Simulated *float64 `json:"simulated"`
}

// quantities are the numbers of a state that are compared over time.
var quantities = []struct {
	name  string
	share bool // the engines' mean, not their sum
	of    func(*measured.Sample) *float64
}{
	{"running_requests", false, func(s *measured.Sample) *float64 { return s.Running }},
	{"waiting_requests", false, func(s *measured.Sample) *float64 { return s.Waiting }},
	{"kv_usage", true, func(s *measured.Sample) *float64 { return s.KVUse }},
	{"gpu_hit_rate", true, func(s *measured.Sample) *float64 { return s.HitRate }},
}

const (
	fewestPeriods = 3   // of a comparison over time
	mostPeriods   = 200 // that a picture shows
	startSteps    = 30  // in one and a half periods, to find the start of the traffic
	// recentRequests is the number of requests that the hit rate in vLLM's log is of.
	recentRequests = 1000
)

// overTime compares the samples of a run with the simulation of its case; nil if there are too few. A second simulation
// with another seed shows how much values differ by chance.
func overTime(ctx context.Context, c *validation.Case, run *measured.Run, tool string, s *validation.States,
	o Options) (*OverTime, error) {
	if s == nil || len(s.Series) == 0 || len(run.Series) == 0 {
		return nil, nil
	}
	m := gather(run.Series)
	if m == nil {
		return nil, nil
	}
	sim := &simulation{States: s}
	if tool == "vllm-log" {
		sim.recent = recentRequests
	}
	another, err := otherSeed(ctx, c, o)
	if err != nil {
		return nil, err
	}
	return compareOverTime(m, sim, &simulation{States: another, recent: sim.recent}), nil
}

// otherSeed simulates a case with another seed.
func otherSeed(ctx context.Context, c *validation.Case, o Options) (*validation.States, error) {
	seed := fmt.Sprint(c.Setup().Scenario.Run.Seed ^ 1)
	varied, err := c.Varied(nil, scenario.Setting{Key: "run.seed", Value: seed, Flag: "verify"})
	if err != nil {
		return nil, err
	}
	report, err := simulated(ctx, varied, Options{Jobs: o.Jobs, states: true})
	if err != nil {
		return nil, err
	}
	return report.Rows[0].States, nil
}

// compareOverTime finds the start of the traffic and compares each quantity; nil if no quantity has enough values.
func compareOverTime(m *periods, sim, another *simulation) *OverTime {
	start, least := 0.0, math.Inf(1)
	for i := range startSteps + 1 {
		at := (float64(m.first) + 0.5 - 1.5*float64(i)/startSteps) * m.length
		if d := m.distance(sim, at); d < least {
			start, least = at, d
		}
	}
	out := &OverTime{PeriodS: m.length, StartS: start, Series: []Curve{}, begun: m.first == 0}
	for q := range quantities {
		if c := m.curve(q, sim, another, start); c != nil {
			out.Series = append(out.Series, *c)
		}
	}
	if len(out.Series) == 0 {
		return nil
	}
	return out
}

// periods are measured values by period. Period k has its middle at k times the length from the first sample.
type periods struct {
	length      float64      // in seconds
	values      [][]*float64 // by period and quantity
	first, last int          // periods with a request
}

// gather takes the mean of the samples of each engine in a period. Requests are the sum over engines, and unknown where
// an engine has no sample; shares are the mean over engines.
func gather(series []measured.Sample) *periods {
	m := &periods{length: periodOf(series)}
	if m.length <= 0 {
		return nil
	}
	index := func(s *measured.Sample) int { return int(math.Round(s.At.Seconds() / m.length)) }
	m.values = make([][]*float64, index(&series[len(series)-1])+1)
	engines := enginesOf(series)
	for k := range m.values {
		m.values[k] = make([]*float64, len(quantities))
	}
	for q, x := range quantities {
		sums := make([]map[string][2]float64, len(m.values)) // the sum and the number of samples of an engine
		for i := range series {
			s := &series[i]
			v := x.of(s)
			if v == nil {
				continue
			}
			k := index(s)
			if sums[k] == nil {
				sums[k] = map[string][2]float64{}
			}
			was := sums[k][s.Replica]
			sums[k][s.Replica] = [2]float64{was[0] + *v, was[1] + 1}
		}
		for k, of := range sums {
			if len(of) == 0 || !x.share && len(of) < len(engines) {
				continue
			}
			total := 0.0
			for _, name := range engines {
				if e, ok := of[name]; ok {
					total += e[0] / e[1]
				}
			}
			if x.share {
				total /= float64(len(of))
			}
			m.values[k][q] = &total
		}
	}
	busy := measured.Busy(series)
	m.first, m.last = index(&busy[0]), index(&busy[len(busy)-1])
	return m
}

func enginesOf(series []measured.Sample) (names []string) {
	for i := range series {
		if at, ok := slices.BinarySearch(names, series[i].Replica); !ok {
			names = slices.Insert(names, at, series[i].Replica)
		}
	}
	return names
}

// periodOf returns the median time between samples of an engine in seconds, at least a second and long enough for a
// picture; 0 if there are too few samples.
func periodOf(series []measured.Sample) float64 {
	last := map[string]float64{}
	var gaps []float64
	for i := range series {
		s := &series[i]
		at := s.At.Seconds()
		if before, ok := last[s.Replica]; ok {
			gaps = append(gaps, at-before)
		}
		last[s.Replica] = at
	}
	if len(gaps) < fewestPeriods-1 {
		return 0
	}
	slices.Sort(gaps)
	return max(gaps[len(gaps)/2], series[len(series)-1].At.Seconds()/mostPeriods, 1)
}

// distance returns the mean absolute difference of the first quantity that was measured, if the traffic starts at a
// time.
func (m *periods) distance(sim *simulation, start float64) float64 {
	for q := range quantities {
		sum, n := 0.0, 0
		m.each(sim, start, func(k int, at float64) {
			if v, s := m.values[k][q], sim.value(q, at, m.length); v != nil && s != nil {
				sum, n = sum+math.Abs(*v-*s), n+1
			}
		})
		if n > 0 {
			return sum / float64(n)
		}
	}
	return 0
}

// each calls f with the periods from the start of the traffic to the last one in which one of the two has requests. At
// is the middle from the start of the traffic.
func (m *periods) each(sim *simulation, start float64, f func(k int, at float64)) {
	for k := m.first; k < len(m.values); k++ {
		at := float64(k)*m.length - start
		if k > m.last && at-m.length/2 > sim.end() {
			return
		}
		f(k, at)
	}
}

// curve compares one quantity; nil if too few periods have both values.
func (m *periods) curve(q int, sim, another *simulation, start float64) *Curve {
	c := &Curve{Name: quantities[q].name, Points: []Instant{}}
	var differences, chance []float64
	m.each(sim, start, func(k int, at float64) {
		v, s := m.values[k][q], sim.value(q, at, m.length)
		if v == nil {
			return
		}
		c.Points = append(c.Points, Instant{AtS: at, Measured: v, Simulated: s})
		c.Mean += *v
		if s != nil {
			differences = append(differences, math.Abs(*v-*s))
			if x := another.value(q, at, m.length); x != nil {
				chance = append(chance, math.Abs(*x-*s))
			}
		}
	})
	if len(differences) < fewestPeriods {
		return nil
	}
	c.Mean /= float64(len(c.Points))
	c.Difference, c.Chance = median(differences), median(chance)
	return c
}

// median returns the median of values; 0 if there are none.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[n/2] + values[(n-1)/2]) / 2
}

// simulation is the simulated state over time.
type simulation struct {
	*validation.States
	recent int // requests of a hit rate; 0 takes those of the period
}

func (s *simulation) end() float64 { return s.Series[len(s.Series)-1].EndS }

// value returns the mean of a quantity in a period around a time, in seconds from the start of the traffic; nil where
// it is unknown. A system without requests is idle.
func (s *simulation) value(q int, at, length float64) *float64 {
	from, to := at-length/2, at+length/2
	if quantities[q].name == "gpu_hit_rate" {
		return s.hitRate(at, from, to)
	}
	if to > s.end() && !s.Ended {
		return nil
	}
	sum := 0.0
	for i := range s.Series {
		p := &s.Series[i]
		if width := min(p.EndS, to) - max(p.StartS, from); width > 0 {
			x := stateOf(q, p)
			if x == nil {
				return nil
			}
			sum += *x * width
		}
	}
	sum /= to - from
	return &sum
}

// stateOf reads a quantity of a bucket; nil where it is unknown.
func stateOf(q int, p *report.SeriesPoint) *float64 {
	switch quantities[q].name {
	case "running_requests":
		return &p.RunningMean
	case "waiting_requests":
		return &p.QueueMean
	}
	return p.KVUsageMean
}

// hitRate returns the cached part of the prompts of a period, or of the recent ones up to a time.
func (s *simulation) hitRate(at, from, to float64) *float64 {
	index := func(t float64) int {
		i, _ := slices.BinarySearchFunc(s.Lookups, t,
			func(l validation.Lookup, t float64) int { return cmp.Compare(l.AtS, t) })
		return i
	}
	first, end := index(from), index(to)
	if s.recent > 0 {
		end = index(at)
		first = max(0, end-s.recent)
	}
	tokens, cached := 0.0, 0.0
	for _, l := range s.Lookups[first:max(first, end)] {
		tokens, cached = tokens+float64(l.Tokens), cached+float64(l.Cached)
	}
	if tokens == 0 {
		return nil
	}
	share := cached / tokens
	return &share
}

// sentence says how much measured and simulated values differ over time.
func (o *OverTime) sentence() string {
	var parts []string
	n := 0
	for i := range o.Series {
		c := &o.Series[i]
		m := Metric{Name: c.Name}
		name, _ := m.title()
		n = max(n, len(c.Points))
		if isShare(c.Name) {
			parts = append(parts, fmt.Sprintf("%s %.1f points (by chance %.1f)", name, 100*c.Difference, 100*c.Chance))
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %s (by chance %s)", name, layout.Digits(c.Difference),
			layout.Digits(c.Chance)))
	}
	return fmt.Sprintf("Over time, in %d periods of %s s, the median difference is: %s. By chance is between two "+
		"simulations with different seeds.", n, layout.Digits(o.PeriodS), strings.Join(parts, ", "))
}

// idle reports whether all values are 0.
func (c *Curve) idle() bool {
	return !slices.ContainsFunc(c.Points, func(p Instant) bool {
		return *p.Measured != 0 || p.Simulated != nil && *p.Simulated != 0
	})
}

// picture draws the measured and the simulated state, one panel for each quantity that is not always 0.
func (o *OverTime) picture(name string) *chart.Lines {
	p := &chart.Lines{Title: name + " over time", Notes: []string{name + ": " + o.sentence()}}
	for i := range o.Series {
		c := &o.Series[i]
		if c.idle() {
			continue
		}
		m := Metric{Name: c.Name}
		title, _ := m.title()
		panel := chart.Panel{Title: name + ": " + title, Height: 0.8, Y: chart.Scale{Title: "Requests"},
			X: chart.Scale{Title: "Time since the traffic started, s", Unit: chart.Whole}}
		if isShare(c.Name) {
			panel.Y = chart.Scale{Title: "Part", Unit: chart.Fraction}
		}
		was, is := chart.Line{Name: "measured", Dots: true}, chart.Line{Name: "simulated"}
		for _, at := range c.Points {
			was.Points = append(was.Points, chart.Point{X: at.AtS, Y: *at.Measured})
			if at.Simulated != nil {
				is.Points = append(is.Points, chart.Point{X: at.AtS, Y: *at.Simulated})
			}
		}
		panel.Lines = []chart.Line{was, is}
		p.Panels = append(p.Panels, panel)
	}
	return p
}
