package verdict

import (
	"cmp"
	"slices"

	"clifftop/report"
	"clifftop/report/stats"
)

// holm says which of several tests find something, so that the chance of any false find among them is at most 5 %: the
// smallest p of m has to be at most 5 %/m, the next 5 %/(m-1), until one is not.
//
// S. Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6, 1979.
func holm(ps []float64) []bool {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ps[a], ps[b]) })
	found := make([]bool, len(ps))
	for i, k := range order {
		if ps[k] > (1-stats.Confidence)/float64(len(ps)-i) {
			break
		}
		found[k] = true
	}
	return found
}

// MetricGroups are groups of variants, including the baseline, that do not differ significantly in a metric, at 5 % for
// all pairs together (Holm). They are in the order of their means or medians, the best first. A variant between two
// others may be in a group with each.
type MetricGroups struct {
	Path   string     `json:"path"`
	Groups [][]string `json:"groups"`
}

// group finds the groups of every metric that has intervals.
func (v *Result) group(names []string, e *evidence) {
	for _, m := range v.metrics {
		centers := make([]float64, len(names))
		order := make([]int, len(names))
		known := true
		for i := range names {
			order[i], centers[i] = i, e.center(m, i)
			known = known && centers[i] == centers[i]
		}
		if !known {
			continue
		}
		slices.SortStableFunc(order, func(a, b int) int {
			if m.Better == report.Lower {
				return cmp.Compare(centers[a], centers[b])
			}
			return cmp.Compare(centers[b], centers[a])
		})
		differ := e.apart(m, order)
		v.Groups = append(v.Groups, MetricGroups{Path: m.Path, Groups: runsOfAlike(order, differ, names)})
	}
}

// apart[i][j] says whether the variants at places i and j of the order differ.
func (e *evidence) apart(m metric, order []int) [][]bool {
	var ps []float64
	for j := range order {
		for i := range j {
			ps = append(ps, e.between(m, order[i], order[j], less).chance(0))
		}
	}
	found := holm(ps)
	differ := make([][]bool, len(order))
	for j := range order {
		differ[j] = make([]bool, len(order))
		for i := range j {
			differ[j][i], found = found[0], found[1:]
		}
	}
	return differ
}

// runsOfAlike are the longest stretches of the order in which no two differ.
func runsOfAlike(order []int, differ [][]bool, names []string) [][]string {
	groups := [][]string{}
	covered := 0 // places that are in a group
	for from := range order {
		to := from + 1
		for to < len(order) && !slices.Contains(differ[to][from:to], true) {
			to++
		}
		if to <= covered {
			continue
		}
		covered = to
		var group []string
		for _, i := range order[from:to] {
			group = append(group, names[i])
		}
		groups = append(groups, group)
	}
	return groups
}
