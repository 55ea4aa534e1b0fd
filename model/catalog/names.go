package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// canonical normalises a name for comparison.
func canonical(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-"), " ", "-")
}

// find returns the record with the given name or alias, or with the part of a Hugging Face ID after the organisation.
func find[T any](kind, name string, all []T, names func(*T) (string, []string)) (found T, err error) {
	want := canonical(name)
	short := want[strings.LastIndexByte(want, '/')+1:]
	byShort := -1
	for i := range all {
		own, aliases := names(&all[i])
		if own == want {
			return all[i], nil
		}
		for _, a := range aliases {
			a = canonical(a)
			if a == want {
				return all[i], nil
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
		return all[byShort], nil
	}
	return found, fmt.Errorf("catalog: no %s %q; nearest: %s", kind, name,
		strings.Join(nearest(short, all, names), ", "))
}

// nearest returns the names of the three records with the fewest edits to want.
func nearest[T any](want string, all []T, names func(*T) (string, []string)) []string {
	type match struct {
		name string
		cost int
	}
	matches := make([]match, 0, len(all))
	cost := func(name string) int {
		if strings.HasPrefix(withoutSeparators(name), withoutSeparators(want)) {
			return 0 // a prefix, such as llama3 of llama-3-8b
		}
		return 1 + distance(want, name)
	}
	for i := range all {
		own, aliases := names(&all[i])
		best := cost(own)
		for _, a := range aliases {
			a = canonical(a)
			best = min(best, cost(a[strings.LastIndexByte(a, '/')+1:]))
		}
		matches = append(matches, match{own, best})
	}
	slices.SortStableFunc(matches, func(a, b match) int { return a.cost - b.cost })
	var out []string
	for _, m := range matches[:min(3, len(all))] {
		out = append(out, m.name)
	}
	return out
}

func withoutSeparators(name string) string {
	return strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(name)
}

// distance returns the Levenshtein distance of two names, of which it compares the first 100 bytes.
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
