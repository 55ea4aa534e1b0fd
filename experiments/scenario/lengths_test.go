package scenario

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"clifftop/experiments/scenario/yamldoc"
)

// longestMessage is the most characters of an error without its place.
const longestMessage = 160

// TestFaultsAreShort gives every key of the schema wrong values, and measures the messages that come back.
func TestFaultsAreShort(t *testing.T) {
	w := faultWalk{t: t, longest: map[string]bool{}, visited: map[string]int{}}
	if err := json.Unmarshal(schema(t), &w.root); err != nil {
		t.Fatal(err)
	}
	w.walk(w.root, func(value string) string { return value }, 0)
	if w.faults < 4000 {
		t.Errorf("only %d faults seen", w.faults)
	}
}

// faultWalk visits the keys of the schema.
type faultWalk struct {
	t       *testing.T
	root    map[string]any
	faults  int
	visited map[string]int  // by reference
	longest map[string]bool // messages that were reported
}

// walk tries wrong values in the place of one that follows the schema s. wrap puts a value there.
func (w *faultWalk) walk(s map[string]any, wrap func(value string) string, depth int) {
	if ref, ok := s["$ref"].(string); ok {
		if w.visited[ref]++; w.visited[ref] > 2 {
			return
		}
		s = w.at(ref)
	}
	if choices, ok := s["anyOf"].([]any); ok {
		for _, choice := range choices {
			w.walk(choice.(map[string]any), wrap, depth)
		}
		return
	}
	for _, value := range []string{strings.Repeat("long", 100), "true", "1e18", "[zzz]", "{zzz: 1}"} {
		w.parse(wrap(value))
	}
	if items, ok := s["items"].(map[string]any); ok {
		w.walk(items, func(value string) string { return wrap("[" + value + "]") }, depth+1)
	}
	properties, _ := s["properties"].(map[string]any)
	if depth > 6 {
		return
	}
	fixed := ""
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if value, ok := properties[name].(map[string]any)["const"].(string); ok {
			fixed += name + ": " + value + ", "
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if _, ok := properties[name].(map[string]any)["const"]; ok {
			continue
		}
		w.walk(properties[name].(map[string]any), func(value string) string {
			return wrap("{" + fixed + name + ": " + value + "}")
		}, depth+1)
	}
}

// at is the schema at a reference such as #/$defs/duration.
func (w *faultWalk) at(ref string) map[string]any {
	s := w.root
	for _, name := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		s = s[name].(map[string]any)
	}
	return s
}

// parse measures the messages about a scenario.
func (w *faultWalk) parse(text string) {
	_, err := Parse("s.yaml", []byte(text))
	var faults yamldoc.Faults
	if !errors.As(err, &faults) {
		return
	}
	for _, f := range faults {
		for _, said := range []string{f.Problem, f.Hint} {
			w.faults++
			if n := len([]rune(said)); n > longestMessage && !w.longest[said] {
				w.longest[said] = true
				w.t.Errorf("%s\n%s: %d characters (at most %d): %s", text, f.Key, n, longestMessage, said)
			}
		}
	}
}
