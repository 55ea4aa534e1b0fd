package yamldoc

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Decoder fills Go values from nodes and collects every fault on the way. What the nodes do not
// mention keeps its value, so that one decodes over the defaults. Null means the default.
//
// Keys are the json tags of struct fields. Further tags say what is allowed, and the JSON Schema is made from the
// same: range:"[1,)" in the notation of intervals, one:"fcfs priority" for names, and only:"1" for a key of which no
// more than one value is available yet. was:"old_key" and called:"old=new" accept the old name of a key or of a value;
// Renamed lists the ones found.
type Decoder struct {
	Renamed []Renaming
	Places  map[string]Place // of dotted keys
	Faults  Faults
	Source  []byte // the file, for excerpts
	File    string
}

// SelfDecoder is a type with a syntax of its own.
type SelfDecoder interface {
	Decode(d *Decoder, n *Node, key string)
}

// ranged is a SelfDecoder whose range is one of seconds.
type ranged interface{ Seconds() float64 }

// Defaulter is a type that has defaults of its own where it stands in the place of nothing.
type Defaulter interface{ SetDefaults() }

// Checker is a type whose fields depend on each other. It is asked after they have been decoded.
type Checker interface {
	Check(d *Decoder, n *Node, key string)
}

// Variants is a map whose keys depend on the value of one of them.
type Variants interface {
	// Variants names the deciding key and the keys that go with each of its values; under "" those
	// of a map without it, under "*" those that go with all.
	Variants() (decider string, keys map[string]VariantKeys)
}

// VariantKeys are the keys that go with a value of the deciding key.
type VariantKeys struct{ Required, Optional []string }

// Extended is a struct with [Variants] some of whose keys are fields of another struct, one for each value of the
// deciding key: the options of a rule stand beside the rule.
type Extended interface {
	Variants
	// Extension returns a pointer to the struct for a value, into which its keys are decoded; nil where there is
	// none.
	Extension(value string) any
}

// Inline is the type of a field whose keys stand among those of the struct around it. They are not known to that
// struct: each policy adds its own section to the keys of the engine, for example.
type Inline interface {
	// Keys are the keys, in the order in which they are written.
	Keys() []string
	// Part returns a pointer to the value under one of them, which has its default unless it was decoded before.
	Part(key string) any
}

// Named is a type of text that takes certain names only. It is for names that a list of rules gives; the tag one is
// for fixed ones.
type Named interface{ Names() []string }

// Fault adds a fault of a key at a place: what is wrong, and perhaps a hint.
func (d *Decoder) Fault(at Place, key, problem, hint string) {
	f := &Fault{Where: at.String(), Key: key, Problem: problem, Hint: hint}
	if at.Origin == d.File {
		f.Excerpt = Excerpt(d.Source, at)
	}
	d.Faults = append(d.Faults, f)
}

// Wrong reports a value of another type than wanted.
func (d *Decoder) Wrong(n *Node, key, want string) {
	d.Fault(n.At, key, fmt.Sprintf("%s (want %s)", n.Describe(), want), "")
}

// Refuse reports a value of the right type that is not allowed.
func (d *Decoder) Refuse(n *Node, key, want string) {
	d.Fault(n.At, key, fmt.Sprintf("%s is not allowed (want %s)", Short(n.Text), want), "")
}

// Unknown reports a text that is none of the names, with the nearest name as a hint, or another hint if none is near.
func (d *Decoder) Unknown(n *Node, key string, names []string, hint string) {
	d.Fault(n.At, key, fmt.Sprintf("%q is not known (want %s)", Short(n.Text), OneOf(names)),
		cmp.Or(DidYouMean(n.Text, names), hint))
}

// NewDecoder makes a decoder of the values of a file, whose lines are for excerpts.
func NewDecoder(file string, lines []byte) *Decoder {
	return &Decoder{Places: map[string]Place{}, Source: lines, File: file}
}

// Value decodes n into what the pointer points to. The tag says what is allowed, as those of struct fields do.
func (d *Decoder) Value(n *Node, key string, pointer any, tag reflect.StructTag) {
	d.into(n, key, reflect.ValueOf(pointer).Elem(), tag)
}

// into decodes n into v.
func (d *Decoder) into(n *Node, key string, v reflect.Value, tag reflect.StructTag) {
	d.Places[key] = n.At
	if n.Kind == Null {
		return
	}
	if only := tag.Get("only"); only != "" && !n.says(only) {
		d.Fault(n.At, key, fmt.Sprintf("%s is not available (want %s)", n.brief(), only), "")
		return
	}
	if v.Kind() == reflect.Pointer {
		d.pointer(n, key, v, tag)
		return
	}
	if s, ok := v.Addr().Interface().(SelfDecoder); ok {
		before := len(d.Faults)
		s.Decode(d, n, key)
		if x, ok := s.(ranged); ok && len(d.Faults) == before && !ParseRange(tag.Get("range")).holds(x.Seconds()) {
			d.Refuse(n, key, ParseRange(tag.Get("range")).String())
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
		if n.Kind != Bool {
			d.Wrong(n, key, "true or false")
			return
		}
		v.SetBool(n.Truth)
	case reflect.Int, reflect.Uint64:
		d.integer(n, key, v, tag)
	case reflect.Float64:
		d.float(n, key, v, tag)
	default:
		panic("experiments: no decoding for " + v.Type().String())
	}
}

// pointer decodes n into what v points to. Of a value with a fault nothing is known, so that nothing else is held
// against it.
func (d *Decoder) pointer(n *Node, key string, v reflect.Value, tag reflect.StructTag) {
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
		if x, ok := v.Interface().(Defaulter); ok {
			x.SetDefaults()
		}
	}
	faults := len(d.Faults)
	if d.into(n, key, v.Elem(), tag); len(d.Faults) > faults && v.Type().Elem().Kind() != reflect.Struct {
		v.SetZero()
	}
}

// says reports whether a value is the one that a text of YAML means.
func (n *Node) says(text string) bool {
	switch n.Kind {
	case Null:
		return text == "null"
	case Bool:
		return text == strconv.FormatBool(n.Truth)
	case Number:
		x, err := strconv.ParseFloat(text, 64)
		return err == nil && x == n.Number
	case Text:
		return text == n.Text && text != "null"
	}
	return false
}

// Fields decodes a map into the struct that the pointer points to, whatever syntax the type has of its own.
func (d *Decoder) Fields(n *Node, key string, pointer any) {
	d.structure(n, key, reflect.ValueOf(pointer).Elem())
}

// structure decodes a map into a struct.
func (d *Decoder) structure(n *Node, key string, v reflect.Value) {
	if n.Kind != Map {
		d.Wrong(n, key, "a map")
		return
	}
	names := Keys(v.Type())
	allowed := names
	var missing func()
	var more reflect.Value
	if u, ok := v.Addr().Interface().(Variants); ok {
		if x, ok := u.(Extended); ok {
			more, names = extension(x, n, names)
		}
		allowed, missing = d.variantFields(n, key, u, names)
	}
	n = d.renameKeys(n, key, v, more)
	seen := map[string]Place{}
	for _, f := range n.Fields {
		full := Join(key, f.Name)
		if first, twice := seen[f.Name]; twice {
			d.Fault(f.At, full, fmt.Sprintf("the key is given twice (first at %v)", first), "")
			continue
		}
		seen[f.Name] = f.At
		i := slices.Index(names, f.Name)
		if i < 0 || !slices.Contains(allowed, f.Name) {
			problem := "unknown key"
			if i >= 0 {
				decider, _ := v.Addr().Interface().(Variants).Variants()
				problem = fmt.Sprintf("this key needs %s", decider)
				if w := n.Get(decider); w != nil && w.Kind == Text {
					problem = fmt.Sprintf("this key is not allowed with %s %s (want %s)", decider, w.Text,
						OneOf(allowed))
				}
			}
			free := slices.DeleteFunc(slices.Clone(allowed), func(s string) bool { return n.Get(s) != nil })
			hint := DidYouMean(f.Name, free)
			if hint == "" && i < 0 && len(free) > 0 {
				hint = keysHint(free)
			}
			d.Fault(f.At, full, problem, hint)
			continue
		}
		field, tag := fieldByName(v, f.Name)
		if !field.IsValid() && more.IsValid() {
			field, tag = fieldByName(more, f.Name)
		}
		if field.IsValid() {
			d.into(f.Value, full, field, tag)
		}
	}
	if missing != nil {
		missing()
	}
	for _, part := range []reflect.Value{v, more} {
		if !part.IsValid() {
			continue
		}
		if c, ok := part.Addr().Interface().(Checker); ok {
			c.Check(d, n, key)
		}
	}
}

// keysHint names the keys of a map, or the first of many.
func keysHint(keys []string) string {
	text, others := firstOf(keys, 120)
	if others > 0 {
		return fmt.Sprintf("some of the keys here are %s", text)
	}
	return "the keys here are " + text
}

// Renaming is an old name in a file of a key or a value that has a new name.
type Renaming struct {
	At       Place
	Key      string // dotted key, with its new name
	Old, New string
}

// String says what to write instead.
func (r Renaming) String() string {
	at := ""
	if r.At.Line > 0 { // of a file, not of a flag
		at = fmt.Sprintf(" line %d:", r.At.Line)
	}
	return fmt.Sprintf("%s:%s %s is now called %s; the old name works in this release only", r.Key, at, r.Old, r.New)
}

// renameKeys returns map n with the current names of keys. The tag was of a struct field is the old name of its key.
func (d *Decoder) renameKeys(n *Node, key string, parts ...reflect.Value) *Node {
	renamed := n
	for _, part := range parts {
		if !part.IsValid() {
			continue
		}
		for _, f := range fieldsOf(part.Type()) {
			old, now := f.Tag.Get("was"), Key(f)
			if old == "" || n.Get(old) == nil || n.Get(now) != nil {
				continue
			}
			if renamed == n {
				renamed = new(*n)
				renamed.Fields = slices.Clone(n.Fields)
			}
			i := slices.IndexFunc(n.Fields, func(x Field) bool { return x.Name == old })
			renamed.Fields[i].Name = now
			d.Renamed = append(d.Renamed, Renaming{n.Fields[i].At, Join(key, now), old, now})
		}
	}
	return renamed
}

// extension is the further struct of a map, invalid where there is none, and all keys that some value of the deciding
// key goes with.
func extension(x Extended, n *Node, names []string) (more reflect.Value, all []string) {
	decider, variants := x.Variants()
	if w := n.Get(decider); w != nil && w.Kind == Text {
		if p := x.Extension(w.Text); p != nil {
			more = reflect.ValueOf(p).Elem()
		}
	}
	all = slices.Clone(names)
	for _, value := range slices.Sorted(maps.Keys(variants)) {
		for _, name := range slices.Concat(variants[value].Required, variants[value].Optional) {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return more, all
}

// variantFields finds the keys that go with the deciding key's value, and what to do about missing
// ones. An unknown value allows all keys: its own fault is enough.
func (d *Decoder) variantFields(n *Node, key string, u Variants, names []string) (allowed []string, missing func()) {
	decider, variants := u.Variants()
	value := ""
	if w := n.Get(decider); w != nil && w.Kind == Text {
		value = w.Text
	}
	keys, ok := variants[value]
	if !ok {
		return names, nil
	}
	always := variants["*"].Optional
	if value != "" {
		allowed = append(allowed, decider)
	}
	allowed = slices.Concat(allowed, keys.Required, keys.Optional, always)
	why := ""
	if value != "" {
		why = fmt.Sprintf("%s %s needs it", decider, value)
	}
	return allowed, func() { d.Require(n, key, why, keys.Required...) }
}

// Require reports the keys that a map does not have, or has as null, with a remark if that is not empty.
func (d *Decoder) Require(n *Node, key, remark string, names ...string) {
	if remark != "" {
		remark = " (" + remark + ")"
	}
	for _, name := range names {
		if n.Lookup(name) == nil {
			d.Fault(n.At, key, name+" is missing"+remark, "")
		}
	}
}

func (d *Decoder) slice(n *Node, key string, v reflect.Value, tag reflect.StructTag) {
	if n.Kind != List {
		d.Wrong(n, key, "a list")
		return
	}
	s := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
	for i, item := range n.Items {
		at := Join(key, strconv.Itoa(i))
		if item.Kind == Null {
			d.Fault(item.At, at, "null is not allowed in a list", "")
			continue
		}
		d.into(item, at, s.Index(i), tag)
	}
	v.Set(s)
}

func (d *Decoder) text(n *Node, key string, v reflect.Value, tag reflect.StructTag) {
	names := NamesOf(v.Type(), tag)
	if old, now, ok := strings.Cut(tag.Get("called"), "="); ok && n.Kind == Text && n.Text == old {
		d.Renamed = append(d.Renamed, Renaming{n.At, key, old, now})
		v.SetString(now)
		return
	}
	switch {
	case n.Kind != Text && len(names) > 0:
		d.Wrong(n, key, OneOf(names))
	case n.Kind != Text:
		d.Wrong(n, key, "a text")
	case len(names) > 0 && !slices.Contains(names, n.Text):
		d.Unknown(n, key, names, "")
	case n.Text == "" && tag.Get("empty") == "":
		d.Fault(n.At, key, "the text is empty", "")
	default:
		v.SetString(n.Text)
	}
}

func (d *Decoder) integer(n *Node, key string, v reflect.Value, tag reflect.StructTag) {
	r := ParseRange(tag.Get("range"))
	want := "a whole number"
	if s := r.String(); s != "" {
		want += ", " + s
	}
	switch {
	case n.Kind != Number:
		d.Wrong(n, key, want)
	case n.Number != math.Trunc(n.Number) || math.Abs(n.Number) > 1<<53:
		d.Refuse(n, key, want)
	case !r.holds(n.Number):
		d.Refuse(n, key, r.String())
	case v.Kind() == reflect.Uint64:
		v.SetUint(uint64(n.Number))
	default:
		v.SetInt(int64(n.Number))
	}
}

func (d *Decoder) float(n *Node, key string, v reflect.Value, tag reflect.StructTag) {
	r := ParseRange(tag.Get("range"))
	want := "a number"
	if s := r.String(); s != "" {
		want = "a number, " + s
	}
	switch {
	case n.Kind != Number:
		d.Wrong(n, key, want)
	case math.IsNaN(n.Number) || math.IsInf(n.Number, 0) || !r.holds(n.Number):
		d.Refuse(n, key, want)
	default:
		v.SetFloat(n.Number)
	}
}

// Join appends a key to a dotted key.
func Join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// fieldsOf are the fields of a struct, with those of embedded structs in the place of these.
func fieldsOf(t reflect.Type) (fields []reflect.StructField) {
	for i := range t.NumField() {
		if f := t.Field(i); !f.Anonymous {
			fields = append(fields, f)
		} else {
			for _, inner := range fieldsOf(f.Type) {
				inner.Index = append(slices.Clone(f.Index), inner.Index...)
				fields = append(fields, inner)
			}
		}
	}
	return fields
}

// NamesOf are the names that a text of a type and with a tag may be; none if it may be anything.
func NamesOf(t reflect.Type, tag reflect.StructTag) []string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if x, ok := reflect.Zero(t).Interface().(Named); ok {
		return x.Names()
	}
	return strings.Fields(tag.Get("one"))
}

// Keys are the keys of a struct, those of embedded structs included.
func Keys(t reflect.Type) []string {
	var names []string
	for _, f := range fieldsOf(t) {
		if x, ok := reflect.New(f.Type).Interface().(Inline); ok {
			names = append(names, x.Keys()...)
		} else if name := Key(f); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// KeysWith are the keys of a struct that the pointer points to, as those of a variant: the ones with the tag
// required:"yes", and the others.
func KeysWith(pointer any) (keys VariantKeys) {
	for _, f := range fieldsOf(reflect.TypeOf(pointer).Elem()) {
		switch name := Key(f); {
		case name == "":
		case f.Tag.Get("required") != "":
			keys.Required = append(keys.Required, name)
		default:
			keys.Optional = append(keys.Optional, name)
		}
	}
	return keys
}

// Key is the key of a struct field, or empty when it has none.
func Key(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" || f.Tag.Get("resolved") != "" {
		return "" // of results only
	}
	return name
}

// FieldOf is a pointer to the field of the struct that the pointer points to, under a key, and the field's tag.
func FieldOf(pointer any, name string) (any, reflect.StructTag) {
	field, tag := fieldByName(reflect.ValueOf(pointer).Elem(), name)
	return field.Addr().Interface(), tag
}

// KeysOf are the keys of the struct that the pointer points to.
func KeysOf(pointer any) []string { return Keys(reflect.TypeOf(pointer).Elem()) }

// fieldByName is the field of a struct under a key, and its tag.
func fieldByName(v reflect.Value, name string) (reflect.Value, reflect.StructTag) {
	for _, f := range fieldsOf(v.Type()) {
		if Key(f) == name {
			return v.FieldByIndex(f.Index), f.Tag
		}
		if !reflect.PointerTo(f.Type).Implements(reflect.TypeFor[Inline]()) {
			continue
		}
		if x := v.FieldByIndex(f.Index).Addr().Interface().(Inline); slices.Contains(x.Keys(), name) {
			return reflect.ValueOf(x.Part(name)).Elem(), ""
		}
	}
	return reflect.Value{}, ""
}

// Interval is a set of allowed numbers.
type Interval struct {
	Low, High         float64
	LowOpen, HighOpen bool
}

// ParseRange reads the notation of intervals: "[0,1)". Empty bounds, and an empty text, do not limit.
func ParseRange(s string) Interval {
	r := Interval{Low: math.Inf(-1), High: math.Inf(1)}
	if s == "" {
		return r
	}
	low, high, _ := strings.Cut(s[1:len(s)-1], ",")
	if low != "" {
		r.Low, _ = strconv.ParseFloat(low, 64)
		r.LowOpen = s[0] == '('
	}
	if high != "" {
		r.High, _ = strconv.ParseFloat(high, 64)
		r.HighOpen = s[len(s)-1] == ')'
	}
	return r
}

func (r Interval) holds(x float64) bool {
	return (x > r.Low || !r.LowOpen && x == r.Low) && (x < r.High || !r.HighOpen && x == r.High)
}

// String is the interval in words, or empty when it holds every number.
func (r Interval) String() string {
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	var parts []string
	switch hasHigh := !math.IsInf(r.High, 1); {
	case math.IsInf(r.Low, -1):
	case !r.LowOpen && !r.HighOpen && hasHigh:
		return number(r.Low) + " to " + number(r.High)
	case r.LowOpen:
		parts = append(parts, "more than "+number(r.Low))
	default:
		parts = append(parts, number(r.Low)+" or more")
	}
	if !math.IsInf(r.High, 1) {
		if r.HighOpen {
			parts = append(parts, "less than "+number(r.High))
		} else {
			parts = append(parts, "at most "+number(r.High))
		}
	}
	return strings.Join(parts, ", ")
}
