package collect

import (
	"slices"

	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// sloHours counts a run by minute, hour or day, to tell in how many of them the objective was met. A request belongs to
// the one in which it arrived. The run begins with minutes; when there are too many, they become hours, and then days.
type sloHours struct {
	length clock.Duration
	list   []hourTally
	gaps   bool // the objective limits gaps between tokens
}

// hourTally holds the sums and distributions of a minute, hour or day, of which levels and time are not kept.
type hourTally struct {
	bucket
	itl    stats.Histogram
	sketch sketch
}

// From so many minutes on they are counted as hours, and from so many hours on as days.
const (
	minutesToHours = 120
	hoursToDays    = 1200
)

// newSLOHours is nil if there is no objective.
func newSLOHours(s *report.SLO) *sloHours {
	if !s.Limits() {
		return nil
	}
	gaps := slices.ContainsFunc(s.Objectives, func(o report.Objective) bool { return o.Metric == "itl" })
	return &sloHours{length: 60 * clock.Second, gaps: gaps}
}

// at is the tally of what arrives at an instant.
func (h *sloHours) at(at clock.Time) *hourTally {
	i := int(int64(at) / int64(h.length))
	for {
		switch {
		case h.length == 60*clock.Second && i >= minutesToHours:
			h.merge(60)
			i /= 60
		case h.length == 3600*clock.Second && i >= hoursToDays:
			h.merge(24)
			i /= 24
		default:
			for len(h.list) <= i {
				h.list = append(h.list, hourTally{})
			}
			return &h.list[i]
		}
	}
}

// merge joins each so many tallies.
func (h *sloHours) merge(parts int) {
	n := (len(h.list) + parts - 1) / parts
	for i := range n {
		first := h.list[i*parts]
		for k := i*parts + 1; k < min((i+1)*parts, len(h.list)); k++ {
			t := &h.list[k]
			first.merge(&t.bucket)
			first.itl.Take(&t.itl)
			for m := range t.sketch {
				first.sketch[m].Take(&t.sketch[m])
			}
		}
		h.list[i] = first
	}
	clear(h.list[n:])
	h.list = h.list[:n]
	h.length *= clock.Duration(parts)
}

// span counts the gaps of a span by the ends of its iterations.
func (h *sloHours) span(s event.Span) {
	for {
		t := h.at(max(s.End(1), 1) - 1)
		end := clock.Time((int64(max(s.End(1), 1)-1)/int64(h.length) + 1) * int64(h.length))
		n := s.N
		if s.End(n) > end {
			if n = s.FirstEndAtOrAfter(end + 1); s.End(n) > end {
				n--
			}
		}
		if n == s.N {
			recordGaps(&t.itl, &s)
			return
		}
		first := head(&s, n)
		recordGaps(&t.itl, &first)
	}
}

// hoursMet judges each whole hour of a window, or minute if that is shorter than two hours. It is nil for less than two
// of them. Those without requests are left out, and those that end with requests whose fate is unknown.
func (c summariser) hoursMet(w *window) *report.SLOHours {
	met, length := map[int]bool{}, clock.Duration(0)
	judge := func(k *Collector) {
		h := k.sloHours
		if h == nil {
			return
		}
		length = h.length
		for i := range h.list {
			start := clock.Time(int64(i) * int64(h.length))
			part := window{start: start, end: start.Add(h.length), until: start.Add(h.length), sketched: true}
			if t := &h.list[i]; part.start >= w.start && part.until <= w.until && t.arrivals > 0 {
				d := detail{itl: t.itl, sketch: &t.sketch}
				yes, known := judged(summariser{k}.limitResults(&part, &t.bucket, &d))
				if before, ok := met[i]; known && (before || !ok) {
					met[i] = yes
				}
			}
		}
	}
	for _, k := range c.classes {
		judge(k)
	}
	if length == 0 { // no class is held to an objective
		judge(c.Collector)
	}
	if len(met) < 2 {
		return nil
	}
	s := &report.SLOHours{Of: len(met), HorizonS: length.Seconds()}
	for _, yes := range met {
		if yes {
			s.Met++
		}
	}
	return s
}

// judged says whether all limits are met, and whether that is known.
func judged(limits []report.LimitResult) (met, known bool) {
	met, known = true, true
	for i := range limits {
		if m := limits[i].Met; m == nil {
			known = false
		} else {
			met = met && *m
		}
	}
	return met, known || !met
}
