package inspect

import (
	"math"
	"slices"

	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/workload"
	"clifftop/workload/trace"
)

type request = workload.Request

// moments sums up numbers.
type moments struct {
	n             int64
	at, deviation float64 // Mean, and sum of squared deviations from it (Welford 1962)
}

func (m *moments) add(x float64) {
	m.n++
	d := x - m.at
	m.at += d / float64(m.n)
	m.deviation += d * (x - m.at)
}

func (m *moments) mean() float64 { return m.at }
func (m *moments) sd() float64   { return math.Sqrt(m.deviation / float64(m.n)) }

// lengthCounts counts lengths in tokens, each by itself.
type lengthCounts struct {
	counts []int64 // by length
	n      int64
	total  int64
}

func (l *lengthCounts) add(tokens int32) {
	if int(tokens) >= len(l.counts) {
		l.counts = append(l.counts, make([]int64, int(tokens)+1+len(l.counts)/2-len(l.counts))...)
	}
	l.counts[tokens]++
	l.n++
	l.total += int64(tokens)
}

// walk goes over the lengths that occur, from short to long, with the number of those up to each.
func (l *lengthCounts) walk(do func(tokens int, count, upTo int64)) {
	upTo := int64(0)
	for tokens, count := range l.counts {
		if count > 0 {
			upTo += count
			do(tokens, count, upTo)
		}
	}
}

// quantiles interpolates linearly between neighbours; p rises.
func (l *lengthCounts) quantiles(p []float64) []float64 {
	found := make([]float64, len(p))
	if l.n == 0 {
		return found
	}
	i := 0
	previous := 0
	l.walk(func(tokens int, count, upTo int64) {
		for ; i < len(p); i++ {
			rank := p[i] * float64(l.n-1)                     // from 0
			if below := float64(upTo - count); rank < below { // between the previous length and this one
				found[i] = float64(previous) + (rank-(below-1))*float64(tokens-previous)
				continue
			}
			if rank > float64(upTo-1) {
				break
			}
			found[i] = float64(tokens)
		}
		previous = tokens
	})
	return found
}

// plotted are the probabilities that a picture of a distribution needs.
func plotted() []float64 {
	var p []float64
	for i := range 201 {
		p = append(p, float64(i)/200)
	}
	return p
}

func (l *lengthCounts) lengths() TokenLengths {
	t := TokenLengths{Distribution: report.Distribution{N: l.n}, Total: l.total, Quantiles: []Quantile{}}
	if l.n == 0 {
		return t
	}
	var m moments
	most, longest := 0, 0
	l.walk(func(tokens int, count, _ int64) {
		m.n += count
		m.at += float64(tokens) * float64(count)
		if count > l.counts[most] {
			most = tokens
		}
		longest = tokens
	})
	m.at /= float64(m.n)
	atMost := int64(0)
	l.walk(func(tokens int, count, _ int64) {
		d := float64(tokens) - m.at
		m.deviation += d * d * float64(count)
		if float64(tokens) >= 0.999*float64(longest) {
			atMost += count
		}
	})
	q := l.quantiles([]float64{0.5, 0.9, 0.95, 0.99, 0.999, 1})
	t.Mean, t.SD = stats.Finite(m.mean()), stats.Finite(m.sd())
	t.P50, t.P90, t.P95, t.P99, t.P999, t.Max = &q[0], &q[1], &q[2], &q[3], &q[4], &q[5]
	t.Mode, t.ModeShare = stats.Finite(float64(most)), stats.Ratio(float64(l.counts[most]), float64(l.n))
	t.AtMaxShare = stats.Ratio(float64(atMost), float64(l.n))
	p := plotted()
	for i, tokens := range l.quantiles(p) {
		t.Quantiles = append(t.Quantiles, Quantile{p[i], tokens})
	}
	return t
}

// pairs keeps prompts and answers for the rank correlation: all of them up to maxPairs, then every second,
// every fourth …
type pairs struct {
	list   [][2]int32
	stride int64
	n      int64
}

const maxPairs = 1 << 20

func (p *pairs) add(input, output int32) {
	if p.stride == 0 {
		p.stride = 1
	}
	if p.n%p.stride == 0 {
		if len(p.list) == maxPairs {
			for i := range maxPairs / 2 {
				p.list[i] = p.list[2*i]
			}
			p.list = p.list[:maxPairs/2]
			p.stride *= 2
		}
		if p.n%p.stride == 0 {
			p.list = append(p.list, [2]int32{input, output})
		}
	}
	p.n++
}

// spearman is the correlation of the ranks, ties sharing theirs.
func (p *pairs) spearman() (*float64, int) {
	n := len(p.list)
	if n < 2 {
		return nil, n
	}
	var ranks [2][]float64
	order := make([]int32, n)
	for side := range ranks {
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortFunc(order, func(a, b int32) int { return int(p.list[a][side]) - int(p.list[b][side]) })
		ranks[side] = make([]float64, n)
		for i := 0; i < n; {
			k := i
			for k < n && p.list[order[k]][side] == p.list[order[i]][side] {
				k++
			}
			for j := i; j < k; j++ {
				ranks[side][order[j]] = float64(i+k-1) / 2
			}
			i = k
		}
	}
	mean := float64(n-1) / 2
	var xy, xx, yy float64
	for i := range n {
		x, y := ranks[0][i]-mean, ranks[1][i]-mean
		xy, xx, yy = xy+x*y, xx+x*x, yy+y*y
	}
	return stats.Ratio(xy, math.Sqrt(xx*yy)), n
}

// windowCounts counts rows in windows of one width, empty ones too.
type windowCounts struct {
	width        clock.Duration
	current      int64 // the window's number
	count        int64 // of rows in it
	n            int64 // whole windows
	sum, squares float64
	products     float64 // of neighbours
	firstCount   float64
	lastCount    float64
}

func (w *windowCounts) add(at clock.Duration) {
	for k := int64(at / w.width); k > w.current; {
		w.finish(k)
	}
	w.count++
}

// finish ends the current window, and all empty ones after it that come before window k.
func (w *windowCounts) finish(k int64) {
	c := float64(w.count)
	if w.n == 0 {
		w.firstCount = c
	} else {
		w.products += w.lastCount * c
	}
	w.n++
	w.sum += c
	w.squares += c * c
	w.lastCount = c
	w.current++
	w.count = 0
	if empty := k - w.current; empty > 0 { // they add nothing but their number
		w.n += empty
		w.current = k
		w.lastCount = 0
	}
}

// index is the variance of the counts over their mean; nil for few of them. The last window, in which the rows end,
// does not count: it is not whole.
func (w *windowCounts) index() *float64 {
	const fewest = 10
	if w.n < fewest || w.sum == 0 {
		return nil
	}
	n := float64(w.n)
	mean := w.sum / n
	return stats.Finite((w.squares - n*mean*mean) / (n - 1) / mean)
}

func (w *windowCounts) correlation() *float64 {
	const fewest = 20
	if w.n < fewest {
		return nil
	}
	n := float64(w.n - 1)
	x, y := w.sum-w.lastCount, w.sum-w.firstCount // of all but the last, and all but the first
	xx, yy := w.squares-w.lastCount*w.lastCount-x*x/n, w.squares-w.firstCount*w.firstCount-y*y/n
	return stats.Ratio(w.products-x*y/n, math.Sqrt(xx*yy))
}

type sessionCounts struct {
	turns   map[int32]int32
	last    map[int32]clock.Time
	gaps    stats.Histogram // milliseconds
	waiting int64
}

func newSessionCounts() sessionCounts {
	return sessionCounts{turns: map[int32]int32{}, last: map[int32]clock.Time{}}
}

func (s *sessionCounts) add(r *trace.Row) {
	if r.Session == 0 {
		return
	}
	if at, ok := s.last[r.Session]; ok {
		s.gaps.Record(int64(r.Arrival.Sub(at)/clock.Millisecond), 1)
	}
	s.last[r.Session] = r.Arrival
	s.turns[r.Session] += int32(r.Requests())
	s.waiting += int64(len(r.Then))
}

func (s *sessionCounts) facts() *SessionFacts {
	if len(s.turns) == 0 {
		return nil
	}
	f := &SessionFacts{Sessions: int64(len(s.turns)), Gaps: report.DistributionOfHistogram(&s.gaps, 1e-3),
		Waiting: s.waiting}
	for _, n := range s.turns {
		f.Requests += int64(n)
		f.MaxTurns = max(f.MaxTurns, n)
	}
	f.MeanTurns = stats.Ratio(float64(f.Requests), float64(f.Sessions))
	return f
}

// trafficSeries keeps what arrives over time, in few points: twice as long ones when there are too many.
type trafficSeries struct {
	width clock.Duration
	list  []TrafficPoint
}

// Points of a series: their number is at most maxPoints, their first width is an eighth of a second, so that
// later ones are whole seconds.
const (
	maxPoints  = 480
	firstWidth = clock.Second / 8
)

func (s *trafficSeries) at(t clock.Duration) *TrafficPoint {
	if s.width == 0 {
		s.width = firstWidth
	}
	for t/s.width >= maxPoints {
		for i := range s.list {
			if i%2 == 0 {
				s.list[i/2] = s.list[i]
				continue
			}
			p, q := &s.list[i/2], &s.list[i]
			p.Requests += q.Requests
			p.InputTokens += q.InputTokens
			p.OutputTokens += q.OutputTokens
			p.blocks += q.blocks
			p.hits += q.hits
		}
		s.list = s.list[:(len(s.list)+1)/2]
		s.width *= 2
	}
	i := int(t / s.width)
	for len(s.list) <= i {
		s.list = append(s.list, TrafficPoint{})
	}
	return &s.list[i]
}

// points have their places in time; the last ends with the traffic.
func (s *trafficSeries) points(span clock.Duration) []TrafficPoint {
	list := slices.Clone(s.list)
	for i := range list {
		list[i].StartS = (clock.Duration(i) * s.width).Seconds()
		list[i].EndS = (clock.Duration(i+1) * s.width).Seconds()
	}
	if n := len(list); n > 1 {
		list[n-1].EndS = max(span.Seconds(), list[n-1].StartS)
	}
	return list
}
