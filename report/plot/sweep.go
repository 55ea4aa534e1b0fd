package plot

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"clifftop/report"
	"clifftop/report/curve"
)

// sweep is a curve with the data of its pictures.
type sweep struct {
	*curve.Curve
	variable
	points loadPoints
}

// variable is the swept key of a sweep, a key such as "rate", "users" or "engine.max_num_seqs". It writes values with
// their unit.
type variable string

// loadPoints are the points of a sweep in the order of their loads, one for each load.
type loadPoints []point

// point is a load with its results: more than one if the load was run several times.
type point struct {
	load      float64
	summary   *report.Summary // the first
	summaries []*report.Summary
	steady    bool
	finite    bool // a piece of time that has not settled
	short     bool // measured over too short a window
}

// value is the mean of a statistic over the results that know it.
func (p *point) value(y statistic) (mean float64, ok bool) {
	sum, n := 0.0, 0
	for _, s := range p.summaries {
		if x, known := number(y(s)); known {
			sum, n = sum+x, n+1
		}
	}
	return sum / float64(max(n, 1)), n > 0
}

// A statistic reads a number of a summary; nil means unknown.
type statistic func(*report.Summary) *float64

func newSweep(c *curve.Curve) *sweep {
	v := &sweep{Curve: c}
	if c == nil {
		v.Curve = &curve.Curve{}
	}
	v.variable = variable(v.Over)
	var points []point
	for _, p := range v.Points {
		if p.Summary != nil && finite(p.Value) {
			points = append(points, point{p.Value, p.Summary, []*report.Summary{p.Summary},
				!p.Summary.Window.Unsettled(), p.Summary.Window.State == report.Finite, p.Short})
		}
	}
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.load, b.load) })
	for _, p := range points {
		if n := len(v.points); n > 0 && v.points[n-1].load == p.load {
			same := &v.points[n-1]
			same.summaries = append(same.summaries, p.summary)
			same.steady, same.short = same.steady && p.steady, same.short || p.short
			same.finite = same.finite || p.finite
			continue
		}
		v.points = append(v.points, p)
	}
	return v
}

// open says that the load is a rate of arrivals, which goes on whatever the system does.
func (k variable) open() bool { return k.key() == "rate" }

func (k variable) users() bool { return k.key() == "users" }

func (k variable) load(x float64) string {
	switch n := loadNumber(x); {
	case k.open():
		return n + " req/s"
	case k.users() && x == 1:
		return "1 user"
	case k.users():
		return n + " users"
	default:
		return k.key() + " " + n
	}
}

// key returns the last part of the swept key.
func (k variable) key() string { return report.LastKey(string(k)) }

func (k variable) loadTitle() string {
	switch {
	case k.open():
		return "Offered load, requests/s"
	case k.users():
		return "Users at once"
	case k == "":
		return "Load"
	}
	return string(k)
}

func loadNumber(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e5 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return scaled(x, 3)
}

// clumped says whether the loads grow by factors rather than by steps.
func (l loadPoints) clumped() bool {
	n := len(l)
	if n < 4 || l[0].load <= 0 {
		return false
	}
	return l[n/2].load < 0.12*l[n-1].load
}

func (v *sweep) series(y statistic) []xy {
	return v.against(nil, y)
}

// against reads one statistic against another; against the load if x is nil.
func (v *sweep) against(x, y statistic) []xy {
	var out []xy
	for _, p := range v.points {
		at, ok := p.load, true
		if x != nil {
			at, ok = p.value(x)
		}
		if value, known := p.value(y); ok && known {
			q := xy{x: at, y: value, hollow: !p.steady || p.short, finite: p.finite && p.steady, load: p.load}
			if x != nil {
				q.text = v.load(p.load)
			}
			out = append(out, q)
		}
	}
	return out
}

// bars adds what the results carry for a path, such as "latency_ms.ttft.p95": the confidence interval, or the band of
// the hours of a run that has not settled.
func (l loadPoints) bars(points []xy, path string) []xy {
	for i := range points {
		q := &points[i]
		k, _ := slices.BinarySearchFunc(l, q.load, func(p point, x float64) int {
			return cmp.Compare(p.load, x)
		})
		if h := hoursOf(l[k].summary, path); h != nil && q.finite {
			q.low, q.high = *h.Least, *h.Most
			if h.P10 != nil && h.P90 != nil {
				q.low, q.high = *h.P10, *h.P90
			}
			continue
		}
		if ci, ok := l[k].summary.CI95[path]; ok && l[k].replicated() && finite(ci[0]) && finite(ci[1]) {
			q.low, q.high = ci[0], ci[1]
		}
	}
	return points
}

// hoursOf is how the hours of a run that has not settled differ; nil if there are none.
func hoursOf(s *report.Summary, path string) *report.HourSpread {
	if h := s.Hours.At(path); h != nil && h.Median != nil && s.Window.State == report.Finite {
		return h
	}
	return nil
}

// hourly reports whether latencies at some load belong to the median hour.
func (l loadPoints) hourly() bool {
	return slices.ContainsFunc(l, func(p point) bool {
		return len(p.summaries) == 1 && p.finite && p.steady && hoursOf(p.summary, "latency_ms.ttft.p95") != nil
	})
}

// barred says whether there are any such intervals.
func (l loadPoints) barred() bool {
	return slices.ContainsFunc(l, point.replicated)
}

// replicated says that a point has intervals to draw: those by batch means are not known at every load, and stay in the
// tables.
func (p point) replicated() bool {
	return len(p.summaries) == 1 && len(p.summary.CI95) > 0 && p.summary.CI95Method != report.ByBatchMeans
}

func number(p *float64) (float64, bool) {
	if p == nil || !finite(*p) {
		return 0, false
	}
	return *p, true
}

// at reads a statistic at a load, between points if need be.
func (v *sweep) at(load float64, y statistic) (float64, bool) {
	points := v.series(y)
	i, found := slices.BinarySearchFunc(points, load, func(p xy, x float64) int { return cmp.Compare(p.x, x) })
	switch {
	case found:
		return points[i].y, true
	case i == 0 || i == len(points):
		return 0, false
	}
	a, b := points[i-1], points[i]
	return a.y + (b.y-a.y)*(load-a.x)/(b.x-a.x), true
}

// unsteadyFrom is the first of the loads that end the sweep without a steady state.
func (l loadPoints) unsteadyFrom() (load float64, ok bool) {
	for _, p := range slices.Backward(l) {
		if p.steady {
			break
		}
		load, ok = p.load, true
	}
	return load, ok
}

// saturatedFrom returns the lowest load without a steady state: the saturation rate if it is known, otherwise the first
// load after the last one with a steady state.
func (v *sweep) saturatedFrom() (load float64, ok bool) {
	load, ok = v.points.unsteadyFrom()
	if r := v.Saturation; ok && r != nil && v.open() {
		return min(load, r.HighRequestsPerS), true
	}
	return load, ok
}

// Statistics of a summary.

func offeredRPS(s *report.Summary) *float64    { return s.Throughput.OfferedRequestsPerS }
func outputTPS(s *report.Summary) *float64     { return s.Throughput.OutputTokensPerS }
func successfulTPS(s *report.Summary) *float64 { return s.Throughput.SuccessfulOutputTokensPerS }
func goodTPS(s *report.Summary) *float64       { return s.Goodput.OutputTokensPerS }
func perGPU(s *report.Summary) *float64        { return s.Throughput.OutputTokensPerSPerGPU }
func kvMean(s *report.Summary) *float64        { return s.System.KVUsage.Mean }
func kvMax(s *report.Summary) *float64         { return s.System.KVUsage.Max }
func prefixHits(s *report.Summary) *float64    { return s.System.PrefixHitRate }

// metShare is 1 for a run that met the objective and 0 for one that did not.
func metShare(s *report.Summary) *float64 {
	if s.Goodput.Met == nil {
		return nil
	}
	share := 0.0
	if *s.Goodput.Met {
		share = 1
	}
	return &share
}

func preemptionsPerS(s *report.Summary) *float64 {
	span := s.Window.EndS - s.Window.StartS
	if !(span > 0) {
		return nil
	}
	rate := float64(s.System.Preemptions) / span
	return &rate
}

// perUser is the speed at which a user sees tokens come, by the median TPOT.
func perUser(s *report.Summary) *float64 {
	ms, ok := number(s.Latency.TPOT.P50)
	if !ok || ms <= 0 {
		return nil
	}
	speed := 1000 / ms
	return &speed
}

// latency reads a statistic such as "p95" of "ttft" or "tpot"; nil for one that a summary does not have. A p99 or p99_9
// of too few samples is unknown. For a run that has not settled it is the value of the median hour.
func latency(metric, stat string) statistic {
	path := "latency_ms." + metric
	m, n := report.FindMetric(report.JoinPath(path, stat)), report.FindMetric(report.JoinPath(path, "n"))
	return func(s *report.Summary) *float64 {
		if m == nil || *n.Of(s) < float64(m.MinSamples) {
			return nil
		}
		if h := hoursOf(s, m.Path); h != nil {
			return h.Median
		}
		return m.Of(s)
	}
}

type limit struct {
	metric, stat string
	ms           float64
}

func (l limit) String() string {
	return strings.ToUpper(l.metric) + " " + l.statistic() + " ≤ " + duration(l.ms, 3)
}

// statistic returns the statistic of the limit in common notation, such as p99.9.
func (l limit) statistic() string { return strings.ReplaceAll(l.stat, "_", ".") }

// limits are the objective's limits on latency, TTFT first.
func (l loadPoints) limits() []limit {
	var out []limit
	for _, p := range l {
		if slo := p.summary.Goodput.SLO; slo != nil {
			for _, o := range slo.Objectives {
				out = append(out, limit{o.Metric, o.Statistic(), o.Limit.Milliseconds()})
			}
			break // all points share it
		}
	}
	slices.SortFunc(out, func(a, b limit) int {
		return cmp.Or(-cmp.Compare(a.metric, b.metric), cmp.Compare(a.stat, b.stat))
	})
	return out
}

// failures says whether some requests did not complete.
func (l loadPoints) failures() bool {
	return slices.ContainsFunc(l, func(p point) bool {
		r := &p.summary.Requests
		return r.Rejected+r.TimedOut+r.Cancelled+r.Failed > 0
	})
}

// outputPerRequest is the mean number of output tokens of a request, from loads without failures.
func (l loadPoints) outputPerRequest() (float64, bool) {
	var tokens, requests int64
	for _, p := range l {
		r := &p.summary.Requests
		if p.steady && r.Rejected+r.TimedOut+r.Cancelled+r.Failed == 0 {
			tokens += p.summary.Tokens.OutputSuccessful
			requests += r.Completed
		}
	}
	return float64(tokens) / float64(requests), tokens > 0 && requests > 0
}
