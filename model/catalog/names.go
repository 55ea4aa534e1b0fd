package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// canonical brings a name to the form in which names are compared.
func canonical(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-"), " ", "-")
}

// find is the index of the record that goes by the name: exactly, or by the part of a Hugging Face id
// behind the organisation.
func find(kind, name string, n int, names func(i int) (string, []string)) (int, error) {
	want := canonical(name)
	short := want[strings.LastIndexByte(want, '/')+1:]
	byShort := -1
	for i := range n {
		own, aliases := names(i)
		if own == want {
			return i, nil
		}
		for _, a := range aliases {
			a = canonical(a)
			if a == want {
				return i, nil
			}
			if a[strings.LastIndexByte(a, '/')+1:] == short {
				byShort = i
			}
		}
		if own == short {
			byShort = i
		}
	}
	if byShort >= 0 && short != "" {
		return byShort, nil
	}
	return 0, fmt.Errorf("catalog: no %s %q; nearest: %s", kind, name, strings.Join(nearest(short, n, names), ", "))
}

// nearest lists the names of the three records that need the fewest edits to be called want.
func nearest(want string, n int, names func(i int) (string, []string)) []string {
	type match struct {
		name string
		cost int
	}
	matches := make([]match, 0, n)
	cost := func(name string) int {
		if strings.HasPrefix(withoutSeparators(name), withoutSeparators(want)) {
			return 0 // what was begun, such as llama3 for llama-3-8b
		}
		return 1 + distance(want, name)
	}
	for i := range n {
		own, aliases := names(i)
		best := cost(own)
		for _, a := range aliases {
			a = canonical(a)
			best = min(best, cost(a[strings.LastIndexByte(a, '/')+1:]))
		}
		matches = append(matches, match{own, best})
	}
	slices.SortStableFunc(matches, func(a, b match) int { return a.cost - b.cost })
	var out []string
	for _, m := range matches[:min(3, n)] {
		out = append(out, m.name)
	}
	return out
}

// withoutSeparators is a name without its separators.
func withoutSeparators(name string) string {
	return strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(name)
}

// distance is the number of insertions, deletions and replacements between two names. Names of
// unreasonable length are cut.
func distance(a, b string) int {
	a, b = a[:min(len(a), 100)], b[:min(len(b), 100)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
