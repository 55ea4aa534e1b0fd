package curve

import (
	"cmp"
	"math"
	"slices"

	"clifftop/report"
	"clifftop/report/stats"
)

// New is newWith the defaultThresholds.
func New(over string, points []Point) *Curve {
	return newWith(defaultThresholds(), over, points)
}

// newWith puts the points of a sweep in order and says what they show together. over names what varies: a load, if its
// last part is "rate" or "users", or else another number, of which a knee and a gain per unit mean nothing. Fields that
// the points do not determine are nil. Points with too short a window are marked and not used.
func newWith(t Thresholds, over string, points []Point) *Curve {
	c := &Curve{Schema: Schema, Over: over, Thresholds: t, Points: slices.Clone(points), Warnings: []report.Warning{}}
	slices.SortStableFunc(c.Points, func(a, b Point) int { return cmp.Compare(a.Value, b.Value) })
	_ = c.analyse() // reading summaries in memory cannot fail
	return c
}

// Read is [New] of results that are read when they are needed and not kept: of each only the numbers stay, as long
// as the curve is being made, that have to be held against those of the others. read gives the result at values[i], the
// same whenever it is asked.
func Read(over string, values []float64, read func(i int) (*report.Summary, error)) (*Curve, error) {
	c := &Curve{Schema: Schema, Over: over, Thresholds: defaultThresholds(), Warnings: []report.Warning{},
		Points: make([]Point, len(values))}
	order := make([]int32, len(values))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(values[a], values[b]) })
	for i := range c.Points {
		c.Points[i].Value = values[order[i]]
	}
	c.read = func(i int) (*report.Summary, error) { return read(int(order[i])) }
	if err := c.analyse(); err != nil {
		return nil, err
	}
	return c, nil
}

// Summary returns the summary of a point, or nil if the point has none.
func (c *Curve) Summary(i int) (*report.Summary, error) {
	if c.read == nil || c.Points[i].Summary != nil {
		return c.Points[i].Summary, nil
	}
	s, err := c.read(i)
	if err != nil {
		return nil, err
	}
	return c.priced(s), nil
}

// analyse looks at each point once, and says what they show.
func (c *Curve) analyse() error {
	a := newAnalysis(c.Thresholds, c.Over, len(c.Points))
	each := newScan()
	for i := range c.Points {
		s, err := c.Summary(i)
		if err != nil {
			return err
		}
		each.add(c, i, s)
		if p := &c.Points[i]; s != nil && !p.Short {
			a.add(p.Value, s)
		}
	}
	each.conclude(c)
	c.Peak, c.plateau = a.peak(), a.plateau()
	c.Knee = a.knee()
	c.Collapse = a.collapse()
	c.UsefulCollapse = a.usefulCollapse()
	c.FirstLimit = a.firstLimit()
	c.WarningSigns = a.warningSigns(c.Points)
	c.USL = a.usl()
	c.Bounds = a.bounds()
	return nil
}

// load holds the results at one load: the means over its points.
type load struct {
	value      float64
	offered    float64 // the load that there was: of a rate the one within the window, else the value
	throughput float64 // output tokens per second
	error      float64 // half the width of its confidence interval, or NaN
	requests   float64 // that it is measured on, 0 if unknown
	e2e        float64 // mean, in milliseconds; NaN if unknown
	measures           // of the first of them, but for the useful tokens

	bestHits float64 // of the prefix cache, at lower loads
	calmest  int     // index of the lower load with the least p99 of TTFT, -1 without
}

// analysis derives the findings of a curve from its loads and thresholds.
type analysis struct {
	Thresholds
	at             []load
	isLoad, isRate bool   // what varies is a load, or the value of something else
	closed         bool   // it is a number of users
	what           string // the tokens that throughput counts
	noIntervals    bool   // of throughput are known
	summitIs       *int   // where it has been looked for

	output, useful, e2e, rates []float64 // of the last load's runs
}

func newAnalysis(t Thresholds, over string, most int) *analysis {
	a := &analysis{Thresholds: t, closed: report.LastKey(over) == "users", isRate: report.LastKey(over) == "rate",
		what: "output", at: make([]load, 0, most)}
	a.isLoad = a.isRate || a.closed
	return a
}

// add adds a run. Runs are added in order of load.
func (a *analysis) add(value float64, s *report.Summary) {
	x := s.Throughput.OutputTokensPerS
	if x == nil {
		return
	}
	m := measuresOf(s)
	n := len(a.at)
	if n == 0 || a.at[n-1].value != value {
		l := load{value: value, offered: value, error: math.NaN(), measures: m, calmest: -1}
		if n > 0 {
			l.bestHits, l.calmest = a.at[n-1].bestHits, a.at[n-1].calmest
			if before := &a.at[n-1]; !unknown(before.hits) {
				l.bestHits = max(l.bestHits, before.hits)
			}
			if before := &a.at[n-1]; before.ttft.known() &&
				(l.calmest < 0 || before.ttft.p99 < a.at[l.calmest].ttft.p99) {
				l.calmest = n - 1
			}
		}
		a.at = append(a.at, l)
		a.output, a.useful, a.e2e, a.rates = a.output[:0], a.useful[:0], a.e2e[:0], a.rates[:0]
	}
	l := &a.at[len(a.at)-1]
	a.output, a.useful = append(a.output, *x), append(a.useful, m.useful)
	if v := s.Latency.E2E.Mean; v != nil {
		a.e2e = append(a.e2e, *v)
	}
	if v := s.Throughput.OfferedRequestsPerS; v != nil && a.isRate {
		a.rates = append(a.rates, *v)
		l.offered = stats.Mean(a.rates)
	}
	if ci, ok := s.CI95["throughput.output_tokens_per_s"]; ok && s.CI95Method != report.ByBatchMeans {
		l.error = (ci[1] - ci[0]) / 2
	}
	l.requests += float64(s.Latency.E2E.N)
	l.throughput, l.useful, l.e2e = stats.Mean(a.output), stats.Mean(a.useful), stats.Mean(a.e2e)
}

// deviation is the standard deviation of the difference of two throughputs, as requests of unlike lengths
// let it be: that of the sum of n of them is about 1/√n of it. It is 0 where n is unknown.
func deviation(a, b *load) float64 {
	if a.requests == 0 || b.requests == 0 {
		return 0
	}
	return max(a.throughput, b.throughput) * math.Sqrt(1/a.requests+1/b.requests)
}

// intervals returns the sum of the half-widths of the confidence intervals of two throughputs; NaN without intervals.
func (a *analysis) intervals(x, y *load) float64 {
	if a.noIntervals {
		return math.NaN()
	}
	return x.error + y.error
}
