package yamldoc

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"clifftop/sim/clock"
)

// Decoder fills Go values from nodes and collects every fault on the way. What the nodes do not
// mention keeps its value, so that one decodes over the defaults. Null means the default.
//
// Keys are the json tags of struct fields. Further tags say what is allowed, and the JSON Schema is made from the
// same: those of package [rule], and only:"1" for a key of which no more than one value is available yet.
// was:"old_key" and called:"old=new" accept the old name of a key or of a value; Renamed lists the ones found.
type Decoder struct {
	Context any // for types with a syntax of their own: what the document can name
	Renamed []Renaming
	Places  map[string]Place // of dotted keys
	Faults  Faults
	Source  []byte // the file, for excerpts
	File    string
}

// selfDecoder is a type with a syntax of its own.
type selfDecoder interface {
	Decode(d *Decoder, n *Node, key string)
}

// ranged is a SelfDecoder whose range is one of seconds.
type ranged interface{ Seconds() float64 }

// defaulter is a type that has defaults of its own where it stands in the place of nothing.
type defaulter interface{ SetDefaults() }

// checker is a type whose fields depend on each other. It is asked after they have been decoded.
type checker interface {
	Check(d *Decoder, n *Node, key string)
}

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

func (d *Decoder) into(n *Node, key string, v reflect.Value, tag reflect.StructTag) {
	d.Places[key] = n.At
	if n.Kind == Null {
		return
	}
	if only := tag.Get("only"); only != "" && !n.says(only) {
		d.Fault(n.At, key, fmt.Sprintf("%s is not available (want %s)", n.brief(), only), "")
		return
	}
	switch {
	case v.Kind() == reflect.Pointer:
		d.pointer(n, key, v, tag)
		return
	case v.Type() == reflect.TypeFor[clock.Duration]():
		v = v.Addr().Convert(reflect.TypeFor[*Duration]()).Elem()
	case len(NamesOf(v.Type(), tag)) > 0 && v.Kind() != reflect.Slice:
		d.text(n, key, v, tag)
		return
	}
	if s, ok := v.Addr().Interface().(selfDecoder); ok {
		before := len(d.Faults)
		s.Decode(d, n, key)
		if x, ok := s.(ranged); ok && len(d.Faults) == before && !ParseRange(tag.Get("range")).holds(x.Seconds()) {
			d.Refuse(n, key, ParseRange(tag.Get("range")).String())
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if x, ok := v.Addr().Interface().(defaulter); ok && v.IsZero() {
			x.SetDefaults()
		}
		d.structure(n, key, v)
	case reflect.Slice:
		if t, ok := v.Addr().Interface().(table); ok {
			d.table(n, key, t, tag)
			return
		}
		d.slice(n, key, v, tag)
	case reflect.String:
		d.text(n, key, v, tag)
	case reflect.Bool:
		if n.Kind != Bool {
			d.Wrong(n, key, "true or false")
			return
		}
		v.SetBool(n.Truth)
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
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
		if x, ok := v.Interface().(defaulter); ok {
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
	names := d.keys(v)
	allowed := names
	var missing func()
	var more reflect.Value
	decider := ""
	extended, _ := v.Addr().Interface().(Extended)
	if u, ok := v.Addr().Interface().(Variants); ok {
		decider, _ = u.Variants()
		if extended != nil {
			more, names = extension(extended, n, names)
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
		if ofResults(v.Type(), f.Name) {
			continue // so that the scenario of a result can be run again; it is computed anew
		}
		i := slices.Index(names, f.Name)
		if i < 0 || !slices.Contains(allowed, f.Name) {
			d.notAllowed(n, f, full, i >= 0, decider, allowed)
			continue
		}
		field, tag := fieldByName(v, f.Name)
		if !field.IsValid() && more.IsValid() {
			if field, tag = fieldByName(more, f.Name); field.IsValid() && f.Value.Kind != Null {
				extended.Given(f.Name)
			}
		}
		if extended != nil && f.Name == decider && len(extended.Names()) > 0 {
			tag = reflect.StructTag(fmt.Sprintf("one:%q", strings.Join(extended.Names(), " ")))
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
		if c, ok := part.Addr().Interface().(checker); ok {
			c.Check(d, n, key)
		}
	}
}

// notAllowed reports a key of a map that is unknown, or that does not go with the deciding key.
func (d *Decoder) notAllowed(n *Node, f Field, full string, known bool, decider string, allowed []string) {
	problem := "unknown key"
	if known {
		problem = fmt.Sprintf("this key needs %s", decider)
		if w := n.Get(decider); w != nil && w.Kind == Text {
			problem = fmt.Sprintf("this key is not allowed with %s %s (want %s)", decider, w.Text, OneOf(allowed))
		}
	}
	free := slices.DeleteFunc(slices.Clone(allowed), func(s string) bool { return n.Get(s) != nil })
	hint := DidYouMean(f.Name, free)
	if hint == "" && !known && len(free) > 0 {
		hint = keysHint(free, len(free) < len(allowed))
	}
	d.Fault(f.At, full, problem, hint)
}

// keysHint names the keys of a map, or the first of many. With given, the map has others already.
func keysHint(keys []string, given bool) string {
	text, others := firstOf(keys, 120)
	switch {
	case others > 0:
		return "some of the keys here are " + text
	case given:
		return "the other keys here are " + text
	}
	return "the keys here are " + text
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
		setName(v, names, now)
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
		setName(v, names, n.Text)
	}
}

// setName sets a text, or the place of a name among the names.
func setName(v reflect.Value, names []string, name string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(slices.Index(names, name) == 1)
	default:
		v.SetUint(uint64(slices.Index(names, name)))
	}
}

func (d *Decoder) table(n *Node, key string, t table, tag reflect.StructTag) {
	if n.Kind != Map || len(n.Fields) == 0 {
		d.Wrong(n, key, "a map of "+t.Example())
		return
	}
	t.Clear()
	for _, f := range n.Fields {
		full := Join(key, f.Name)
		if names := t.Names(); !slices.Contains(names, f.Name) {
			d.Fault(f.At, full, "unknown key (want "+OneOf(names)+")", DidYouMean(f.Name, names))
			continue
		}
		x := 0.0
		d.Value(f.Value, full, &x, tag)
		t.Put(f.Name, x)
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
