package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"
)

// schemaFile is the schema that scenarios are drawn from.
const schemaFile = "../../../experiments/scenario.schema.json"

// schema reads the schema once.
var schema = sync.OnceValue(func() *jsonschema.Schema {
	data, err := os.ReadFile(schemaFile)
	if err != nil {
		panic(err)
	}
	s := new(jsonschema.Schema)
	if err := json.Unmarshal(data, s); err != nil {
		panic(err)
	}
	return s
})

// A share is a whole number that is drawn uniformly from 0 to shares-1. The numbers of package rapid are biased towards
// small ones.
const (
	shareBits = 10
	shares    = 1 << shareBits
)

var share = rapid.Custom(func(t *rapid.T) int {
	v := 0
	for range shareBits {
		v <<= 1
		if rapid.Bool().Draw(t, "bit") {
			v++
		}
	}
	return v
})

// drawer draws a value of the schema.
type drawer struct{ *rapid.T }

// chance is true with a probability. It is false in the smallest case.
func (d drawer) chance(p float64) bool {
	return share.Draw(d.T, "chance") >= int(math.Round(shares*(1-p)))
}

// fraction is uniform in [0, 1).
func (d drawer) fraction() float64 { return float64(share.Draw(d.T, "fraction")) / shares }

// index is uniform in [0, n).
func (d drawer) index(n int) int { return share.Draw(d.T, "index") * n / shares }

// one is one of several values.
func one[T any](d drawer, values ...T) T { return values[d.index(len(values))] }

// between is a number between two others; on a logarithmic scale if both are positive. It has three digits.
func (d drawer) between(low, high float64) float64 {
	f := d.fraction()
	v := low + f*(high-low)
	if low > 0 {
		v = low * math.Pow(high/low, f)
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	return min(max(v, low), high)
}

// whole is a whole number between two others, both included.
func (d drawer) whole(low, high float64) int {
	return int(min(math.Floor(d.between(low, high+1)), high))
}

// duration is a duration between two numbers of seconds.
func (d drawer) duration(low, high float64) any {
	v := d.between(low, high)
	switch d.index(4) {
	case 0:
		return strconv.FormatFloat(v, 'f', 6, 64) + "s"
	case 1:
		return strconv.FormatFloat(v*1e6, 'f', 0, 64) + "us"
	}
	return strconv.FormatFloat(v*1e3, 'f', 3, 64) + "ms"
}

// value draws a value of a schema. The path is that of the value, with [] for an item of a list.
func (d drawer) value(path string, s *jsonschema.Schema) any {
	if strings.HasSuffix(path, ".parts[]") {
		return d.part(strings.TrimSuffix(path, ".parts[]"))
	}
	if s.Ref != "" {
		name := strings.TrimPrefix(s.Ref, "#/$defs/")
		if name == "duration" {
			r := rangeOf(path, durations, bounds{.001, 20})
			return d.duration(r.low, r.high)
		}
		s = definition(s.Ref)
	}
	if list := alternatives(s); len(list) > 0 {
		return d.value(path, one(d, list...))
	}
	switch {
	case s.Const != nil:
		return *s.Const
	case len(s.Enum) > 0:
		return one(d, s.Enum...)
	}
	switch s.Type {
	case "string":
		return d.text(path)
	case "boolean":
		return d.chance(.5)
	case "integer":
		r := clip(s, rangeOf(path, numbers, bounds{1, 200}), 1)
		return d.whole(r.low, r.high)
	case "number":
		r := clip(s, rangeOf(path, numbers, bounds{.05, 10}), .001)
		return d.between(r.low, r.high)
	case "array":
		return d.list(path, s)
	case "object":
		return d.object(path, s)
	}
	if len(s.Types) > 0 {
		return d.text(path)
	}
	panic(fmt.Sprintf("no rule draws %s of type %q", path, s.Type))
}

// definition is the schema that a reference names: #/$defs/NAME, or the path of a property.
func definition(ref string) *jsonschema.Schema {
	if name, ok := strings.CutPrefix(ref, "#/$defs/"); ok {
		return schema().Defs[name]
	}
	s := schema()
	for _, step := range strings.Split(strings.TrimPrefix(ref, "#/properties/"), "/properties/") {
		s = s.Properties[step]
	}
	return s
}

// alternatives are the schemas of anyOf, without null: a key that is null is like one that is not there.
func alternatives(s *jsonschema.Schema) []*jsonschema.Schema {
	return slices.DeleteFunc(slices.Clone(s.AnyOf), func(a *jsonschema.Schema) bool { return a.Type == "null" })
}

// clip narrows a range to the limits of a schema, which are excluded by a margin where the schema excludes them.
func clip(s *jsonschema.Schema, r bounds, margin float64) bounds {
	for _, l := range []struct {
		limit  *float64
		margin float64
	}{{s.Minimum, 0}, {s.ExclusiveMinimum, margin}} {
		if l.limit != nil {
			r.low = max(r.low, *l.limit+l.margin)
		}
	}
	for _, l := range []struct {
		limit  *float64
		margin float64
	}{{s.Maximum, 0}, {s.ExclusiveMaximum, margin}} {
		if l.limit != nil {
			r.high = min(r.high, *l.limit-l.margin)
		}
	}
	r.high = max(r.high, r.low)
	return r
}

// list draws one to three items, or the number that the schema wants.
func (d drawer) list(path string, s *jsonschema.Schema) any {
	low, high := 1, 3
	if s.MinItems != nil {
		low, high = max(low, *s.MinItems), max(high, *s.MinItems)
	}
	items := make([]any, d.whole(float64(low), float64(high)))
	for i := range items {
		items[i] = d.value(path+"[]", s.Items)
	}
	return items
}

// object draws the required keys of a map and some of the others.
func (d drawer) object(path string, s *jsonschema.Schema) any {
	o := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
		below := join(path, key)
		if slices.Contains(s.Required, key) || d.chance(optional(below)) {
			o[key] = d.value(below, s.Properties[key])
		}
	}
	for _, pattern := range slices.Sorted(maps.Keys(s.PatternProperties)) {
		if d.chance(.4) {
			o[d.matching(pattern)] = d.value(join(path, pattern), s.PatternProperties[pattern])
		}
	}
	if a := s.AdditionalProperties; a != nil && a.Not == nil && (a.Type != "" || len(a.AnyOf) > 0) {
		o[one(d, gpuNames()...)] = d.value(join(path, "*"), a)
	}
	if s.MinProperties != nil && len(o) == 0 {
		key := one(d, slices.Sorted(maps.Keys(s.Properties))...)
		o[key] = d.value(join(path, key), s.Properties[key])
	}
	return o
}

// words are the alternatives in the pattern of a key, such as (mean|p50).
var words = regexp.MustCompile(`^\^\(([a-z0-9|]+)\)_`)

// matching draws a key of an SLO that matches a pattern.
func (d drawer) matching(pattern string) string {
	metrics := words.FindStringSubmatch(pattern)
	if metrics == nil {
		panic("no rule draws a key like " + pattern)
	}
	return one(d, strings.Split(metrics[1], "|")...) + "_" + one(d, "mean", "p50", "p90", "p95", "p99", "p99_9")
}

// join appends a key to a path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// doc is a scenario.
type doc map[string]any

// bytes is the scenario as JSON, which is YAML too. A key has a line of its own.
func (s doc) bytes() []byte {
	data, err := json.MarshalIndent(map[string]any(s), "", " ")
	if err != nil {
		panic(err)
	}
	return append(data, '\n')
}

// String is the scenario on one line.
func (s doc) String() string {
	var b bytes.Buffer
	if err := json.Compact(&b, s.bytes()); err != nil {
		panic(err)
	}
	return b.String()
}

// clone is a deep copy.
func (s doc) clone() doc {
	var c doc
	if err := json.Unmarshal(s.bytes(), &c); err != nil {
		panic(err)
	}
	return c
}

// get is the value of a dotted key; nil if there is none.
func (s doc) get(key string) any {
	var v any = map[string]any(s)
	for step := range strings.SplitSeq(key, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[step]
	}
	return v
}

// with is a copy with some keys set, given as keys and values in turn. A value of nil removes the key.
func (s doc) with(pairs ...any) doc {
	c := s.clone()
	for i := 0; i < len(pairs); i += 2 {
		m := map[string]any(c)
		steps := strings.Split(pairs[i].(string), ".")
		for _, step := range steps[:len(steps)-1] {
			below, ok := m[step].(map[string]any)
			if !ok {
				below = map[string]any{}
				m[step] = below
			}
			m = below
		}
		if last := steps[len(steps)-1]; pairs[i+1] == nil {
			delete(m, last)
		} else {
			m[last] = pairs[i+1]
		}
	}
	return c.clone() // so that values have the types of JSON
}

// indexed are the indices of lists in the key of a fault, such as pools[0].
var indexed = regexp.MustCompile(`\[(\d+)\]`)

// remove deletes what the key of a fault names, or what of its path exists. It reports whether there was something.
func (s doc) remove(key string) bool {
	var v any = map[string]any(s)
	drop := func() bool { return false }
	for step := range strings.SplitSeq(indexed.ReplaceAllString(key, ".$1"), ".") {
		switch x := v.(type) {
		case map[string]any:
			below, ok := x[step]
			if !ok {
				return drop()
			}
			v, drop = below, func() bool { delete(x, step); return true }
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(x) {
				return drop()
			}
			outer := drop
			drop = func() bool {
				if m, ok := x[i].(map[string]any); ok && len(m) > 0 {
					clear(m)
					return true
				}
				return outer()
			}
			v = x[i]
		default:
			return drop()
		}
	}
	return drop()
}

// keys calls a function with the path of each key of a value, with [] for an item of a list.
func keys(path string, v any, visit func(path string)) {
	switch x := v.(type) {
	case map[string]any:
		for key, below := range x {
			visit(join(path, key))
			keys(join(path, key), below, visit)
		}
	case []any:
		for _, below := range x {
			keys(path+"[]", below, visit)
		}
	}
}
