package experiments

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// decoder fills Go values from nodes and collects every fault on the way. What the nodes do not
// mention keeps its value, so that one decodes over the defaults. Null means the default.
//
// Keys are the json tags of struct fields. Further tags say what is allowed, and the JSON Schema is made
// from the same: range:"[1,)" in the notation of intervals, one:"fcfs priority" for names, and only:"1" for a key of which
// no more than one value is available yet.
type decoder struct {
	places map[string]place // of dotted keys
	faults Faults
	lines  []byte // the file, for excerpts
	file   string
}

// selfDecoder is a type with a syntax of its own.
type selfDecoder interface {
	decode(d *decoder, n *node, key string)
}

// ranged is a selfDecoder whose range is one of seconds.
type ranged interface{ Seconds() float64 }

// defaulter is a type that has defaults of its own where it stands in the place of nothing.
type defaulter interface{ setDefaults() }

// checker is a type whose fields depend on each other. It is asked after they have been decoded.
type checker interface {
	check(d *decoder, n *node, key string)
}

// variant is a map whose keys depend on the value of one of them.
type variant interface {
	// variants names the deciding key and the keys that go with each of its values; under "" those
	// of a map without it, under "*" those that go with all.
	variants() (decider string, keys map[string]variantKeys)
}

type variantKeys struct{ required, optional []string }

func (d *decoder) fault(at place, key, problem, hint string) {
	f := &Fault{Where: at.String(), Key: key, Problem: problem, Hint: hint}
	if at.origin == d.file {
		f.Excerpt = excerpt(d.lines, at)
	}
	d.faults = append(d.faults, f)
}

// wrong reports a value of another type than wanted.
func (d *decoder) wrong(n *node, key, want string) {
	d.fault(n.at, key, fmt.Sprintf("%s (want %s)", n.describe(), want), "")
}

// refuse reports a value of the right type that is not allowed.
func (d *decoder) refuse(n *node, key, want string) {
	d.fault(n.at, key, fmt.Sprintf("%s is not allowed (want %s)", short(n.text), want), "")
}

// newDecoder makes a decoder of the values of a file, whose lines are for excerpts.
func newDecoder(file string, lines []byte) *decoder {
	return &decoder{places: map[string]place{}, lines: lines, file: file}
}

// value decodes n into what the pointer points to. The tag says what is allowed, as those of struct fields do.
func (d *decoder) value(n *node, key string, pointer any, tag reflect.StructTag) {
	d.into(n, key, reflect.ValueOf(pointer).Elem(), tag)
}

// into decodes n into v.
func (d *decoder) into(n *node, key string, v reflect.Value, tag reflect.StructTag) {
	d.places[key] = n.at
	if n.kind == isNull {
		return
	}
	if only := tag.Get("only"); only != "" && !n.says(only) {
		d.fault(n.at, key, fmt.Sprintf("%s is not available (want %s)", n.brief(), only), "")
		return
	}
	if v.Kind() == reflect.Pointer {
		d.pointer(n, key, v, tag)
		return
	}
	if s, ok := v.Addr().Interface().(selfDecoder); ok {
		before := len(d.faults)
		s.decode(d, n, key)
		if x, ok := s.(ranged); ok && len(d.faults) == before && !parseRange(tag.Get("range")).holds(x.Seconds()) {
			d.refuse(n, key, parseRange(tag.Get("range")).String())
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, key, v)
	case reflect.Slice:
		d.slice(n, key, v, tag)
	case reflect.String:
		d.text(n, key, v, tag)
	case reflect.Bool:
		if n.kind != isBool {
			d.wrong(n, key, "true or false")
			return
		}
		v.SetBool(n.truth)
	case reflect.Int, reflect.Uint64:
		d.integer(n, key, v, tag)
	case reflect.Float64:
		d.float(n, key, v, tag)
	default:
		panic("experiments: no decoding for " + v.Type().String())
	}
}

// pointer decodes n into what v points to. Of a value with a fault nothing is known, so that nothing else is held against it.
func (d *decoder) pointer(n *node, key string, v reflect.Value, tag reflect.StructTag) {
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
		if x, ok := v.Interface().(defaulter); ok {
			x.setDefaults()
		}
	}
	faults := len(d.faults)
	if d.into(n, key, v.Elem(), tag); len(d.faults) > faults && v.Type().Elem().Kind() != reflect.Struct {
		v.SetZero()
	}
}

// says reports whether a value is the one that a text of YAML means.
func (n *node) says(text string) bool {
	switch n.kind {
	case isNull:
		return text == "null"
	case isBool:
		return text == strconv.FormatBool(n.truth)
	case isNumber:
		x, err := strconv.ParseFloat(text, 64)
		return err == nil && x == n.number
	case isText:
		return text == n.text && text != "null"
	}
	return false
}

// fields decodes a map into the struct that the pointer points to, whatever syntax the type has of its own.
func (d *decoder) fields(n *node, key string, pointer any) {
	d.structure(n, key, reflect.ValueOf(pointer).Elem())
}

// structure decodes a map into a struct.
func (d *decoder) structure(n *node, key string, v reflect.Value) {
	if n.kind != isMap {
		d.wrong(n, key, "a map")
		return
	}
	names := fieldNames(v.Type())
	allowed := names
	var missing func()
	if u, ok := v.Addr().Interface().(variant); ok {
		allowed, missing = d.variantFields(n, key, u, names)
	}
	seen := map[string]place{}
	for _, f := range n.fields {
		full := join(key, f.name)
		if first, twice := seen[f.name]; twice {
			d.fault(f.at, full, fmt.Sprintf("the key is given twice (first at %v)", first), "")
			continue
		}
		seen[f.name] = f.at
		i := slices.Index(names, f.name)
		if i < 0 || !slices.Contains(allowed, f.name) {
			problem := "unknown key"
			if i >= 0 {
				decider, _ := v.Addr().Interface().(variant).variants()
				problem = fmt.Sprintf("this key does not go without %s", decider)
				if w := n.get(decider); w != nil && w.kind == isText {
					problem = fmt.Sprintf("this key does not go with %s %s (want %s)", decider, w.text, list(allowed))
				}
			}
			free := slices.DeleteFunc(slices.Clone(allowed), func(s string) bool { return n.get(s) != nil })
			hint := DidYouMean(f.name, free)
			if hint == "" && i < 0 && len(free) > 0 {
				hint = "the keys here are " + strings.Join(free, ", ")
			}
			d.fault(f.at, full, problem, hint)
			continue
		}
		field, tag := fieldByName(v, f.name)
		d.into(f.value, full, field, tag)
	}
	if missing != nil {
		missing()
	}
	if c, ok := v.Addr().Interface().(checker); ok {
		c.check(d, n, key)
	}
}

// variantFields finds the keys that go with the deciding key's value, and what to do about missing
// ones. An unknown value allows all keys: its own fault is enough.
func (d *decoder) variantFields(n *node, key string, u variant, names []string) (allowed []string, missing func()) {
	decider, variants := u.variants()
	value := ""
	if w := n.get(decider); w != nil && w.kind == isText {
		value = w.text
	}
	keys, ok := variants[value]
	if !ok {
		return names, nil
	}
	always := variants["*"].optional
	if value != "" {
		allowed = append(allowed, decider)
	}
	allowed = slices.Concat(allowed, keys.required, keys.optional, always)
	why := ""
	if value != "" {
		why = fmt.Sprintf("%s %s needs it", decider, value)
	}
	return allowed, func() { d.require(n, key, why, keys.required...) }
}

// require reports the keys that a map does not have, or has as null, with a remark if that is not empty.
func (d *decoder) require(n *node, key, remark string, names ...string) {
	if remark != "" {
		remark = " (" + remark + ")"
	}
	for _, name := range names {
		if n.lookup(name) == nil {
			d.fault(n.at, key, name+" is missing"+remark, "")
		}
	}
}

func (d *decoder) slice(n *node, key string, v reflect.Value, tag reflect.StructTag) {
	if n.kind != isList {
		d.wrong(n, key, "a list")
		return
	}
	s := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		at := join(key, strconv.Itoa(i))
		if item.kind == isNull {
			d.fault(item.at, at, "null cannot stand in a list", "")
			continue
		}
		d.into(item, at, s.Index(i), tag)
	}
	v.Set(s)
}

func (d *decoder) text(n *node, key string, v reflect.Value, tag reflect.StructTag) {
	names := strings.Fields(tag.Get("one"))
	switch {
	case n.kind != isText && len(names) > 0:
		d.wrong(n, key, list(names))
	case n.kind != isText:
		d.wrong(n, key, "a text")
	case len(names) > 0 && !slices.Contains(names, n.text):
		d.fault(n.at, key, fmt.Sprintf("%q is not known (want %s)", short(n.text), list(names)), DidYouMean(n.text, names))
	case n.text == "" && tag.Get("empty") == "":
		d.fault(n.at, key, "the text is empty", "")
	default:
		v.SetString(n.text)
	}
}

func (d *decoder) integer(n *node, key string, v reflect.Value, tag reflect.StructTag) {
	r := parseRange(tag.Get("range"))
	want := "a whole number"
	if s := r.String(); s != "" {
		want += ", " + s
	}
	switch {
	case n.kind != isNumber:
		d.wrong(n, key, want)
	case n.number != math.Trunc(n.number) || math.Abs(n.number) > 1<<53:
		d.refuse(n, key, want)
	case !r.holds(n.number):
		d.refuse(n, key, r.String())
	case v.Kind() == reflect.Uint64:
		v.SetUint(uint64(n.number))
	default:
		v.SetInt(int64(n.number))
	}
}

func (d *decoder) float(n *node, key string, v reflect.Value, tag reflect.StructTag) {
	r := parseRange(tag.Get("range"))
	want := "a number"
	if s := r.String(); s != "" {
		want = "a number, " + s
	}
	switch {
	case n.kind != isNumber:
		d.wrong(n, key, want)
	case math.IsNaN(n.number) || math.IsInf(n.number, 0) || !r.holds(n.number):
		d.refuse(n, key, want)
	default:
		v.SetFloat(n.number)
	}
}

// join appends a key to a dotted key.
func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// fieldNames are the keys of a struct.
func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if name := jsonName(t.Field(i)); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// jsonName is the key of a struct field, or empty when it has none.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" || f.Tag.Get("resolved") != "" {
		return "" // of results only
	}
	return name
}

// fieldOf is a pointer to the field of the struct that the pointer points to, under a key, and the field's tag.
func fieldOf(pointer any, name string) (any, reflect.StructTag) {
	field, tag := fieldByName(reflect.ValueOf(pointer).Elem(), name)
	return field.Addr().Interface(), tag
}

// keysOf are the keys of the struct that the pointer points to.
func keysOf(pointer any) []string { return fieldNames(reflect.TypeOf(pointer).Elem()) }

// fieldByName is the field of a struct under a key, and its tag.
func fieldByName(v reflect.Value, name string) (reflect.Value, reflect.StructTag) {
	for i := range v.NumField() {
		if f := v.Type().Field(i); jsonName(f) == name {
			return v.Field(i), f.Tag
		}
	}
	return reflect.Value{}, ""
}

// interval is a set of allowed numbers.
type interval struct {
	low, high         float64
	lowOpen, highOpen bool
}

// parseRange reads the notation of intervals: "[0,1)". Empty bounds, and an empty text, do not limit.
func parseRange(s string) interval {
	r := interval{low: math.Inf(-1), high: math.Inf(1)}
	if s == "" {
		return r
	}
	low, high, _ := strings.Cut(s[1:len(s)-1], ",")
	if low != "" {
		r.low, _ = strconv.ParseFloat(low, 64)
		r.lowOpen = s[0] == '('
	}
	if high != "" {
		r.high, _ = strconv.ParseFloat(high, 64)
		r.highOpen = s[len(s)-1] == ')'
	}
	return r
}

func (r interval) holds(x float64) bool {
	return (x > r.low || !r.lowOpen && x == r.low) && (x < r.high || !r.highOpen && x == r.high)
}

// String is the interval in words, or empty when it holds every number.
func (r interval) String() string {
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	var parts []string
	switch hasHigh := !math.IsInf(r.high, 1); {
	case math.IsInf(r.low, -1):
	case !r.lowOpen && !r.highOpen && hasHigh:
		return number(r.low) + " to " + number(r.high)
	case r.lowOpen:
		parts = append(parts, "more than "+number(r.low))
	default:
		parts = append(parts, number(r.low)+" or more")
	}
	if !math.IsInf(r.high, 1) {
		if r.highOpen {
			parts = append(parts, "less than "+number(r.high))
		} else {
			parts = append(parts, "at most "+number(r.high))
		}
	}
	return strings.Join(parts, ", ")
}
