package collect

import (
	"math/rand/v2"

	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
)

// Resampling says how [Resample] divides a window.
type Resampling struct {
	// Blocks is the number of blocks that make the window, and Length how long each is.
	Blocks int
	Length clock.Duration
}

// Blocks of a window: as many as make intervals narrow, but each several residences long, so that what happens in one
// depends little on the one before.
const (
	mostBlocks      = 30
	leastBlocks     = 10
	blockResidences = 5
)

// Resample returns what runs that share their window might have measured on other traffic like theirs: n times, blocks
// of the window are drawn with replacement, the same ones for all runs, and put together to a window of the same
// length. It is the moving-block bootstrap (H. R. Künsch, Annals of Statistics 17, 1989). Each summary has throughput,
// latencies, goodput, the error rate, the cost and the classes. They are nil where the window is too short for ten
// blocks of five residences each.
func Resample(all []*Collector, n int, rng *rand.Rand) (Resampling, [][]*report.Summary) {
	parts := make([]inParts, len(all))
	buckets, residence := 0, 0.0
	for i, c := range all {
		s := c.Summary()
		w := c.window(&report.Summary{})
		parts[i] = newInParts(c, &w)
		buckets = w.to - w.from
		if e := s.Latency.E2E.Mean; e != nil {
			residence = max(residence, *e/1000)
		}
	}
	width := clock.Duration(all[0].line.width)
	size := max((buckets+mostBlocks-1)/mostBlocks, int(blockResidences*residence/width.Seconds())+1)
	r := Resampling{Blocks: buckets / size, Length: clock.Duration(size) * width}
	if r.Blocks < leastBlocks {
		return r, nil
	}
	summaries := make([][]*report.Summary, len(all))
	order := make([]int, 0, buckets+size)
	for range n {
		order = order[:0]
		for len(order) < buckets {
			start := rng.IntN(buckets - size + 1)
			for k := range size {
				order = append(order, start+k)
			}
		}
		for i := range parts {
			summaries[i] = append(summaries[i], parts[i].summary(order[:buckets]))
		}
	}
	return r, summaries
}

// inParts is the window of a run, or of a class of it, by bucket.
type inParts struct {
	*Collector
	from    int
	samples [][]sample // by bucket of the window; nil where they are folded
	classes []inParts
}

func newInParts(c *Collector, w *window) inParts {
	p := inParts{Collector: c, from: w.from}
	if !c.folded {
		p.samples = make([][]sample, w.to-w.from)
		c.kept.in(w.start, w.until, func(x *sample) {
			k := min(c.line.index(x.arrival)-w.from, len(p.samples)-1)
			p.samples[k] = append(p.samples[k], *x)
		})
	}
	for _, k := range c.classes {
		for k.line.width < c.line.width {
			k.line.halve()
		}
		p.classes = append(p.classes, newInParts(k, w))
	}
	return p
}

// resampled is a collector of the buckets in another order, some of them several times.
func (p *inParts) resampled(order []int) *Collector {
	c := *p.Collector
	width := clock.Time(c.line.width)
	end := clock.Time(len(order)) * width
	c.opts.End, c.opts.Warmup, c.opts.Lifecycle = end, Warmup{}, false
	c.now, c.shared, c.parts, c.stages, c.sloHours = end, nil, nil, nil, nil
	c.line.buckets, c.line.detail = make([]bucket, len(order)), make([]detail, len(order))
	c.kept, c.classes = samples{}, nil
	for i, k := range order {
		if from := p.from + k; from < len(p.line.buckets) {
			c.line.buckets[i], c.line.detail[i] = p.line.buckets[from], p.line.detail[from]
		}
		if p.samples != nil {
			shift := clock.Time(i-(p.from+k)) * width
			for _, x := range p.samples[k] {
				x.arrival += shift
				c.kept.add(&x)
			}
		}
	}
	for i := range p.classes {
		c.classes = append(c.classes, p.classes[i].resampled(order))
	}
	return &c
}

// summary measures the buckets in an order.
func (p *inParts) summary(order []int) *report.Summary {
	c := summariser{p.resampled(order)}
	w := window{to: len(order), end: c.opts.End, until: c.opts.End}
	sum, d := c.line.total(0, len(order))
	s := &report.Summary{}
	c.rates(s, &w, &sum)
	c.latencies(s, &w, &sum, d)
	c.goodput(s, &w, &sum, d)
	s.System.ErrorRate = stats.Ratio(float64(sum.failures), float64(sum.arrivals))
	if price := c.hourlyPrice(&w); price > 0 && !p.opts.Lifecycle {
		s.Cost = &report.Cost{USDPerHour: stats.Finite(price)}
		s.Cost.USDPerMillionOutputAtLoad = report.CostPerMillion(price, s.Throughput.OutputTokensPerS)
		s.Cost.USDPerMillionOutputGood = report.CostPerMillion(price, s.Goodput.OutputTokensPerS)
	}
	s.Classes = c.classResults(&w)
	if c.classes.ownSLOs(&c.opts) {
		s.JudgeByClasses()
	}
	return s
}
