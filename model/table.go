package model

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"
)

// Table is a step timer from measured iterations, by number of decoding sequences, their summed context and the
// number of prefill tokens. It interpolates between the rows.
//
// Rows with the same prefill tokens and decodes form a curve over the mean context of the decodes, linear between
// rows. Between two numbers of decodes the time is linear at the same mean context, and between two numbers of
// prefill tokens at the same decodes and context. The table therefore reproduces every row, and everywhere a time
// of the form a + b·decodes + c·context + d·prefill. Below the smallest number in the table the time is that of the
// smallest; above the largest it extrapolates the last two, but never decreases.
//
// It ignores the cached prefix of a chunk and context that sequences share. Drafts count as prefill tokens.
type Table struct {
	levels []tableLevel // by prefill tokens
	rows   int
}

// tableLevel has the rows with one number of prefill tokens.
type tableLevel struct {
	prefill int64
	curves  []tableCurve // by decodes
}

// tableCurve has the rows with one number of decodes.
type tableCurve struct {
	decodes int64
	points  []tablePoint // by context
}

type tablePoint struct {
	context int64
	femtos  float64
	slope   float64 // femtoseconds per token of context, up to the next point
}

var _ StepTimer = (*Table)(nil)

// NewTable makes a table of iterations in any order. Iterations that differ only in their time are averaged. It
// returns an error for iterations with a cached prefix.
func NewTable(all []Iteration) (*Table, error) {
	rows := make([]tableRow, len(all))
	for i := range all {
		b := &all[i].Batch
		rows[i] = tableRow{decodes: int64(b.Decodes), context: b.Context, seconds: all[i].Seconds}
		for _, c := range b.Chunks {
			rows[i].prefill += int64(c.New)
			if c.Cached > 0 {
				return nil, fmt.Errorf("line %d: the chunk has %d cached tokens, which a table does not support "+
					"(want 0)", all[i].Line, c.Cached)
			}
		}
	}
	slices.SortStableFunc(rows, tableRow.compare)
	t := &Table{rows: len(rows)}
	for len(rows) > 0 {
		sum, n := 0.0, 0
		for n < len(rows) && rows[n].compare(rows[0]) == 0 {
			sum += rows[n].seconds
			n++
		}
		t.add(rows[0], float64(roundFemtos(float64(sum/float64(n))*femtosPerSecond)))
		rows = rows[n:]
	}
	for i := range t.levels {
		for j := range t.levels[i].curves {
			t.levels[i].curves[j].setSlopes()
		}
	}
	return t, nil
}

// tableRow is a row of a table.
type tableRow struct {
	prefill, decodes, context int64
	seconds                   float64
}

// compare orders rows by prefill tokens, decodes and context.
func (r tableRow) compare(s tableRow) int {
	return cmp.Or(cmp.Compare(r.prefill, s.prefill), cmp.Compare(r.decodes, s.decodes),
		cmp.Compare(r.context, s.context))
}

func (t *Table) add(r tableRow, femtos float64) {
	if k := len(t.levels); k == 0 || t.levels[k-1].prefill != r.prefill {
		t.levels = append(t.levels, tableLevel{prefill: r.prefill})
	}
	l := &t.levels[len(t.levels)-1]
	if k := len(l.curves); k == 0 || l.curves[k-1].decodes != r.decodes {
		l.curves = append(l.curves, tableCurve{decodes: r.decodes})
	}
	c := &l.curves[len(l.curves)-1]
	c.points = append(c.points, tablePoint{context: r.context, femtos: femtos})
}

// setSlopes computes the slopes between points.
func (c *tableCurve) setSlopes() {
	last := len(c.points) - 1
	for k := range last {
		p, q := &c.points[k], &c.points[k+1]
		p.slope = (q.femtos - p.femtos) / float64(q.context-p.context)
	}
	if last > 0 {
		c.points[last].slope = max(0, c.points[last-1].slope)
	}
}

// Rows returns the number of rows.
func (t *Table) Rows() int { return t.rows }

// Limits returns the largest numbers of decodes and of prefill tokens in the table, beyond which it extrapolates.
func (t *Table) Limits() (decodes, prefill int) {
	for i := range t.levels {
		curves := t.levels[i].curves
		decodes = max(decodes, int(curves[len(curves)-1].decodes))
		prefill = max(prefill, int(t.levels[i].prefill))
	}
	return decodes, prefill
}

// PrefillOnly returns the numbers of prefill tokens for which the table has no row with decodes although it has
// decodes without prefill. The table ignores the decodes of such iterations.
func (t *Table) PrefillOnly() (prefill []int) {
	if decodes, _ := t.Limits(); decodes == 0 {
		return nil
	}
	for i := range t.levels {
		l := &t.levels[i]
		if l.prefill > 0 && l.curves[len(l.curves)-1].decodes == 0 {
			prefill = append(prefill, int(l.prefill))
		}
	}
	return prefill
}

// Span implements [StepTimer]. A sequence of decodes ends at the next row.
func (t *Table) Span(b *Batch) (first, slope int64, n int) {
	decodes, prefill := int64(b.Decodes), int64(b.Drafts)
	for _, c := range b.Chunks {
		prefill += int64(c.New)
	}
	if decodes == 0 && prefill == 0 || len(t.levels) == 0 {
		return 0, 0, 1
	}
	i := sort.Search(len(t.levels), func(i int) bool { return t.levels[i].prefill > prefill }) - 1
	if prefill == 0 {
		s := t.levels[max(i, 0)].at(decodes, b.Context)
		first, slope = s.at(b.Context), s.slope
		if slope = saturate(0, max(slope, 0), decodes); s.slope < 0 || slope == maxFemtos {
			return first, 0, 1 // measured noise: a time that decreases with context applies to one step only
		}
		return first, slope, int(bound(first, slope, s.run(b.Context, decodes)))
	}
	return t.mixed(i, decodes, b.Context, prefill), 0, 1
}

// mixed returns the time of an iteration with prefill tokens. i is the last level with at most that many, or -1.
func (t *Table) mixed(i int, decodes, context, prefill int64) int64 {
	at := func(i int) float64 {
		s := t.levels[i].at(decodes, context)
		return float64(s.at(context))
	}
	switch last := len(t.levels) - 1; {
	case i < 0 || last == 0:
		return int64(at(0))
	case t.levels[i].prefill == prefill:
		return int64(at(i))
	default:
		i = min(i, last-1)
	}
	low, high := &t.levels[i], &t.levels[i+1]
	return roundFemtos(between(at(i), at(i+1), share(prefill, low.prefill, high.prefill)))
}

// share returns the position of x between two numbers: 0 at low, 1 at high, more beyond.
func share(x, low, high int64) float64 { return float64(x-low) / float64(high-low) }

// between interpolates between a and b, or extrapolates for a share above 1 without decreasing. Products are
// rounded before they are added, so that all platforms agree.
func between(a, b, share float64) float64 {
	if share > 1 && b < a {
		return b
	}
	return a + float64((b-a)*share)
}

// tableSegment is a time that is linear in the summed context between two rows.
type tableSegment struct {
	from, to int64 // of summed context
	value    int64 // at from, femtoseconds
	slope    int64 // femtoseconds per token
}

func (s *tableSegment) at(context int64) int64 {
	if s.slope < 0 {
		return max(s.value-saturate(0, -s.slope, context-s.from), 1)
	}
	return saturate(s.value, s.slope, context-s.from)
}

// run returns the number of iterations that begin on the segment.
func (s *tableSegment) run(context, decodes int64) int64 {
	if s.to == math.MaxInt64 {
		return maxRun
	}
	return min((s.to-context+decodes-1)/decodes, maxRun)
}

// at returns the segment for a number of decodes that contains a summed context. It depends only on the ends of the
// segment, not on the context, so that a sequence of iterations is a straight line wherever it starts.
func (l *tableLevel) at(decodes, context int64) tableSegment {
	last := len(l.curves) - 1
	i := sort.Search(len(l.curves), func(i int) bool { return l.curves[i].decodes > decodes }) - 1
	if i < 0 || last == 0 || l.curves[i].decodes == decodes {
		c := &l.curves[max(i, 0)]
		k, from, to := c.find(decodes, context)
		value, slope := c.line(k, decodes, from)
		return tableSegment{from, to, roundFemtos(value), roundSlope(slope)}
	}
	i = min(i, last-1)
	a, b := &l.curves[i], &l.curves[i+1]
	ka, from, to := a.find(decodes, context)
	kb, fromB, toB := b.find(decodes, context)
	from, to = max(from, fromB), min(to, toB)
	va, sa := a.line(ka, decodes, from)
	vb, sb := b.line(kb, decodes, from)
	w := share(decodes, a.decodes, b.decodes)
	if w > 1 && vb < va {
		w = 1
	}
	return tableSegment{from, to, roundFemtos(between(va, vb, w)), roundSlope(sa + float64((sb-sa)*w))}
}

// find returns the index of the last point at or before a summed context, compared by mean context, and the range
// of summed contexts for which it is the last; -1 means before the first point.
func (c *tableCurve) find(decodes, context int64) (k int, from, to int64) {
	if c.decodes == 0 || decodes == 0 {
		return 0, 0, math.MaxInt64
	}
	start := func(k int) int64 { return scaleUp(c.points[k].context, decodes, c.decodes) }
	k = sort.Search(len(c.points), func(k int) bool { return start(k) > context }) - 1
	to = math.MaxInt64
	if k >= 0 {
		from = start(k)
	}
	if k+1 < len(c.points) {
		to = start(k + 1)
	}
	return k, from, to
}

// line returns the curve's time after point k for a summed context of a number of decodes, and its slope per token.
func (c *tableCurve) line(k int, decodes, context int64) (value, slope float64) {
	p := &c.points[max(k, 0)]
	if k < 0 || c.decodes == 0 || decodes == 0 {
		return p.femtos, 0
	}
	scale := float64(c.decodes) / float64(decodes)
	beyond := max(0, float64(float64(context)*scale)-float64(p.context))
	return p.femtos + float64(p.slope*beyond), float64(p.slope * scale)
}

// roundSlope rounds femtoseconds per token, which may be negative.
func roundSlope(fs float64) int64 {
	if fs < -maxFemtos {
		return -maxFemtos
	}
	return roundFemtos(fs)
}

// scaleUp returns x·a/b rounded up, for non-negative numbers.
func scaleUp(x, a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(x), uint64(a))
	lo, carry := bits.Add64(lo, uint64(b)-1, 0)
	hi += carry
	if hi >= uint64(b) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(b))
	return int64(min(q, math.MaxInt64))
}
