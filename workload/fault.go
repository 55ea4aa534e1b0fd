package workload

import (
	"fmt"
	"math"
	"strings"

	"clifftop/internal/faults"
)

// FieldError is a fault in one field of a [Spec].
type FieldError struct {
	Key     string // dotted path in a scenario file, such as workload.arrivals.rate
	Problem string // what was found and what is wanted
}

func (e *FieldError) Error() string { return e.Key + ": " + e.Problem }

// fieldFaults collects the errors of a Spec, each a [*FieldError].
type fieldFaults struct{ faults.List }

func (f *fieldFaults) add(key, format string, args ...any) {
	f.Add(&FieldError{Key: key, Problem: fmt.Sprintf(format, args...)})
}

// positive checks that a number is finite and above 0.
func (f *fieldFaults) positive(key string, v float64) bool {
	return f.number(key, v, v > 0, "more than 0")
}

// number checks that v is finite and that ok holds.
func (f *fieldFaults) number(key string, v float64, ok bool, want string) bool {
	if ok && !math.IsInf(v, 0) && !math.IsNaN(v) {
		return true
	}
	f.add(key, "%v is not allowed (want %s)", v, want)
	return false
}

// field is an optional field whose meaning depends on a name, such as the distribution; set means that it is not
// zero.
type field struct {
	key string
	set bool
}

// unused reports set fields that do not apply to the named kind.
func (f *fieldFaults) unused(key, kind string, fields []field, known string) {
	for _, x := range fields {
		if x.set && !hasWord(known, x.key) {
			f.add(key+"."+x.key, "does not apply to %s (want %s)", kind, orNothing(known))
		}
	}
}

func hasWord(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

func orNothing(known string) string {
	if known == "" {
		return "no other key"
	}
	return strings.Join(strings.Fields(known), ", ")
}

// nearest returns up to n names that are closest to the given one, closest first: those that contain it or differ
// in few letters.
func nearest(name string, names []string, n int) []string {
	name = strings.ToLower(name)
	type scored struct {
		name string
		d    int
	}
	var near []scored
	for _, c := range names {
		d := editDistance(name, c)
		if name != "" && strings.Contains(c, name) {
			d = min(d, 1)
		}
		if d > max(2, len(name)/2) {
			continue
		}
		i := len(near)
		for i > 0 && near[i-1].d > d {
			i--
		}
		near = append(near, scored{})
		copy(near[i+1:], near[i:])
		near[i] = scored{c, d}
	}
	var out []string
	for i := 0; i < len(near) && i < n; i++ {
		out = append(out, near[i].name)
	}
	return out
}

// editDistance returns the Levenshtein distance in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diag
			if a[i-1] != b[j-1] {
				cost++
			}
			diag = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
