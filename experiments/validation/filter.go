package validation

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model/catalog"
)

// Filter chooses rows. Conditions on one column are alternatives; those on several columns must all hold.
type Filter struct {
	columns []string
	wanted  map[string][]string
}

// ParseFilter reads conditions: KEY=VALUE, where KEY is a column of [Row] or load (open or closed), or a
// text, which stands for run_id=TEXT. Names match where the text is a part of them, or as a pattern with *
// and ?; case does not matter.
func ParseFilter(conditions []string) (*Filter, error) {
	f := &Filter{wanted: map[string][]string{}}
	known, _ := columns()
	for _, text := range conditions {
		key, value, ok := strings.Cut(text, "=")
		if !ok {
			key, value = "run_id", text
		}
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.ToLower(strings.TrimSpace(value))
		switch {
		case key != "load" && !slices.Contains(known, key):
			return nil, filterFault(fmt.Sprintf("%q is no column (want load, %s …)", yamldoc.Short(key),
				strings.Join(known[:12], ", ")),
				yamldoc.DidYouMean(key, append(known, "load")))
		case value == "" && !ok:
			return nil, filterFault("the condition is empty (want KEY=VALUE, or a part of a run's name)", "")
		}
		if _, err := path.Match(value, ""); err != nil {
			return nil, filterFault(fmt.Sprintf("%q is no pattern: %v", yamldoc.Short(value), err), "")
		}
		if f.wanted[key] == nil {
			f.columns = append(f.columns, key)
		}
		f.wanted[key] = append(f.wanted[key], value)
	}
	return f, nil
}

func filterFault(problem, hint string) error {
	return yamldoc.Faults{{Where: "--only", Problem: problem, Hint: hint}}
}

// Keeps reports whether a row is chosen.
func (f *Filter) Keeps(r *Row) bool {
	for _, key := range f.columns {
		if !slices.ContainsFunc(f.wanted[key], func(value string) bool { return r.matches(key, value) }) {
			return false
		}
	}
	return true
}

// matches reports whether a cell, or the catalog's name for it, matches a value in lower case.
func (r *Row) matches(key, value string) bool {
	switch key {
	case "load":
		return (value == "closed") == r.Closed() && (value == "closed" || value == "open")
	case "gpu":
		if g, err := catalog.GPU(r.GPU); err == nil && matches(g.Name, value, false) {
			return true
		}
		return matches(r.GPU, value, false)
	case "model":
		if m, err := catalog.LLM(r.Model); err == nil && matches(m.Name, value, true) {
			return true
		}
	}
	text, isText := r.cell(key)
	if !isText && !strings.ContainsAny(value, "*?") {
		a, errA := strconv.ParseFloat(text, 64)
		b, errB := strconv.ParseFloat(value, 64)
		return text == value || errA == nil && errB == nil && a == b
	}
	partly := key == "run_id" || key == "model" || key == "source" || key == "experiment" || key == "workload" ||
		key == "flags"
	return matches(text, value, partly)
}

func matches(text, value string, partly bool) bool {
	text = strings.ToLower(text)
	if strings.ContainsAny(value, "*?") {
		ok, _ := path.Match(strings.ReplaceAll(value, "/", "\x00"), strings.ReplaceAll(text, "/", "\x00"))
		return ok
	}
	return text == value || partly && strings.Contains(text, value)
}

// cell is a column's value as text, and whether it is text by nature.
func (r *Row) cell(name string) (text string, isText bool) {
	_, byName := schema()
	switch v := reflect.ValueOf(r).Elem().FieldByIndex(byName[name].index).Interface().(type) {
	case string:
		return v, true
	case *int:
		if v != nil {
			return strconv.Itoa(*v), false
		}
	case *float64:
		if v != nil {
			return strconv.FormatFloat(*v, 'g', -1, 64), false
		}
	}
	return "", false
}

// Choose is the cases with a row that keep lets through. The stages of a run are simulated together, so that the
// others come along.
func Choose(cases []*Case, keep func(*Row) bool) []*Case {
	var chosen []*Case
	for _, c := range cases {
		if slices.ContainsFunc(c.Rows, keep) {
			chosen = append(chosen, c)
		}
	}
	return chosen
}
