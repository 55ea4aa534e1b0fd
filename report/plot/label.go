package plot

import (
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
)

// placer finds room for labels. What is placed first stays; what finds no room is left out.
type placer struct {
	bounds vg.Rectangle
	taken  []vg.Rectangle // nothing may cover these
	lines  []vg.Point     // better not cover these
}

func (p *placer) take(r vg.Rectangle) { p.taken = append(p.taken, r) }

// avoidLine makes labels keep clear of a path, if they can.
func (p *placer) avoidLine(points []vg.Point) {
	const stride = 2.5
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		n := int(math.Hypot(float64(b.X-a.X), float64(b.Y-a.Y))/stride) + 1
		for k := range n {
			f := vg.Length(k) / vg.Length(n)
			p.lines = append(p.lines, vg.Point{X: a.X + f*(b.X-a.X), Y: a.Y + f*(b.Y-a.Y)})
		}
	}
	if len(points) > 0 {
		p.lines = append(p.lines, points[len(points)-1])
	}
}

// direction is where a label lies as seen from its anchor.
type direction struct{ dx, dy float64 }

var (
	east, west           = direction{1, 0}, direction{-1, 0}
	north, south         = direction{0, 1}, direction{0, -1}
	northEast, northWest = direction{1, 1}, direction{-1, 1}
	southEast, southWest = direction{1, -1}, direction{-1, -1}
)

// wish is a label that looks for a place.
type wish struct {
	anchor vg.Point
	w, h   vg.Length
	order  []direction // best first
	near   vg.Length   // distance from the anchor
	far    []vg.Length // more distances to try; the label then gets a leader
	// strict labels rather stay away than cover a line.
	strict bool
}

// place answers the box of a label, and how far it lies off.
func (p *placer) place(w wish) (box vg.Rectangle, distance vg.Length, ok bool) {
	best := math.Inf(1)
	for _, d := range append([]vg.Length{w.near}, w.far...) {
		for rank, dir := range w.order {
			r := w.box(dir, d)
			if !inside(r, p.bounds) || slices.ContainsFunc(p.taken, func(t vg.Rectangle) bool {
				return overlap(r, t)
			}) {
				continue
			}
			covered := 0
			for _, q := range p.lines {
				if q.X > r.Min.X-1 && q.X < r.Max.X+1 && q.Y > r.Min.Y-1 && q.Y < r.Max.Y+1 {
					covered++
				}
			}
			if w.strict && covered > 0 || d > w.near+leaderFrom && p.blocked(w.anchor, r) {
				continue
			}
			cost := float64(covered)*8 + float64(rank) + float64(d-w.near)*0.6
			if cost < best {
				best, box, distance, ok = cost, r, d, true
			}
		}
	}
	if ok {
		p.take(grow(box, 1))
	}
	return box, distance, ok
}

// leaderFrom is how much farther off than near a label gets a leader.
const leaderFrom vg.Length = 5

// leader is the end at a label's box of the line from its anchor.
func leader(anchor vg.Point, box vg.Rectangle) vg.Point {
	return vg.Point{X: min(max(anchor.X, box.Min.X), box.Max.X), Y: min(max(anchor.Y, box.Min.Y), box.Max.Y)}
}

// blocked says whether a leader would cross what must not be covered.
func (p *placer) blocked(anchor vg.Point, box vg.Rectangle) bool {
	const clear, stride = 8, 3 // past the anchor's own mark
	end := leader(anchor, box)
	length := vg.Length(math.Hypot(float64(end.X-anchor.X), float64(end.Y-anchor.Y)))
	for d := vg.Length(clear); d < length; d += stride {
		q := vg.Point{X: anchor.X + (end.X-anchor.X)*d/length, Y: anchor.Y + (end.Y-anchor.Y)*d/length}
		for _, t := range p.taken {
			if q.X > t.Min.X && q.X < t.Max.X && q.Y > t.Min.Y && q.Y < t.Max.Y {
				return true
			}
		}
	}
	return false
}

// box puts the label at a distance from the anchor; diagonals touch with a corner.
func (w wish) box(dir direction, d vg.Length) vg.Rectangle {
	at := func(anchor, size vg.Length, side float64, d vg.Length) vg.Length {
		return anchor + vg.Length(side)*d + vg.Length(side-1)/2*size
	}
	if dir.dx != 0 && dir.dy != 0 {
		d *= 0.75
	}
	x, y := at(w.anchor.X, w.w, dir.dx, d), at(w.anchor.Y, w.h, dir.dy, d)
	return rect(x, y, x+w.w, y+w.h)
}

func inside(r, in vg.Rectangle) bool {
	return r.Min.X >= in.Min.X && r.Max.X <= in.Max.X && r.Min.Y >= in.Min.Y && r.Max.Y <= in.Max.Y
}

func overlap(a, b vg.Rectangle) bool {
	return a.Min.X < b.Max.X && b.Min.X < a.Max.X && a.Min.Y < b.Max.Y && b.Min.Y < a.Max.Y
}

func grow(r vg.Rectangle, by vg.Length) vg.Rectangle {
	return rect(r.Min.X-by, r.Min.Y-by, r.Max.X+by, r.Max.Y+by)
}

// stack moves labels of one height so that they do not overlap, by as little as possible and in their order, within
// [lo, hi]. It returns their centres.
func stack(centres []vg.Length, height, lo, hi vg.Length) []vg.Length {
	order := make([]int, len(centres))
	for i := range order {
		order[i] = i
	}
	// Of equal ones the first stays on top.
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case centres[a] < centres[b]:
			return -1
		case centres[a] > centres[b]:
			return 1
		}
		return b - a
	})
	// Groups of touching labels, each centred on the mean of its labels.
	type group struct {
		sum vg.Length // of wanted centre minus offset in the group
		n   int
	}
	var groups []group
	start := func(g group) vg.Length {
		top := hi - height*(vg.Length(g.n)-0.5)
		return max(min(g.sum/vg.Length(g.n), top), lo+height/2)
	}
	for _, i := range order {
		groups = append(groups, group{centres[i], 1})
		for len(groups) > 1 {
			a, b := groups[len(groups)-2], groups[len(groups)-1]
			if start(a)+height*vg.Length(a.n) <= start(b) {
				break
			}
			groups = groups[:len(groups)-1]
			groups[len(groups)-1] = group{a.sum + b.sum - height*vg.Length(a.n*b.n), a.n + b.n}
		}
	}
	out, k := make([]vg.Length, len(centres)), 0
	for _, g := range groups {
		for j := range g.n {
			out[order[k]] = start(g) + height*vg.Length(j)
			k++
		}
	}
	return out
}
