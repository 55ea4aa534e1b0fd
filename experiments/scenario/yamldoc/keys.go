package yamldoc

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// inline is the type of a field whose keys stand among the keys of the struct around it. They are not known to that
// struct: each policy adds its own section to the keys of the engine, for example.
type inline interface {
	// Bind is called before the others by a decoder.
	Bind(d *Decoder)
	// Keys are the keys, in the order in which they are written.
	Keys() []string
	// Part returns a pointer to the value under one of them, which has its default unless it was decoded before.
	Part(key string) any
}

// named is a type that takes certain names only: a text, or the place of the name among them. It is for names that a
// list of rules gives; the tag one is for fixed ones.
type named interface{ Names() []string }

// table is a list of numbers that a document writes as a map from some of the names.
type table interface {
	named
	Example() string // describes the map: "names to numbers such as {a: 1}"
	// Clear removes all numbers.
	Clear()
	// Put sets the number of a name. Get returns it, if there is one.
	Put(name string, x float64)
	Get(name string) (x float64, ok bool)
}

// Join appends a key to a dotted key.
func Join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// Fields are the fields of a struct, with the fields of embedded and inline structs in their place.
func Fields(t reflect.Type) (fields []reflect.StructField) {
	for i := range t.NumField() {
		if f := t.Field(i); !f.Anonymous && f.Tag.Get("json") != ",inline" {
			fields = append(fields, f)
		} else {
			for _, inner := range Fields(f.Type) {
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
	if x, ok := reflect.Zero(t).Interface().(named); ok {
		return x.Names()
	}
	return strings.Fields(tag.Get("one"))
}

// Keys are the keys of a struct, those of embedded structs included.
func Keys(t reflect.Type) []string { return keysOf(reflect.New(t).Elem()) }

func keysOf(v reflect.Value) []string {
	var names []string
	for _, f := range Fields(v.Type()) {
		if reflect.PointerTo(f.Type).Implements(reflect.TypeFor[inline]()) {
			names = append(names, v.FieldByIndex(f.Index).Addr().Interface().(inline).Keys()...)
		} else if name := Key(f); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// KeysWith are the keys of a struct that the pointer points to, as those of a variant: the ones with the tag
// required:"yes", and the others.
func KeysWith(pointer any) (keys VariantKeys) {
	for _, f := range Fields(reflect.TypeOf(pointer).Elem()) {
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
	name := jsonName(f)
	if name == "-" || f.Tag.Get("resolved") != "" {
		return "" // of results only
	}
	return name
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// ofResults reports whether a struct has a field of this name that stands in results only.
func ofResults(t reflect.Type, name string) bool {
	for _, f := range Fields(t) {
		if f.Tag.Get("resolved") != "" && jsonName(f) == name {
			return true
		}
	}
	return false
}

// keys are the keys of a struct that is decoded.
func (d *Decoder) keys(v reflect.Value) []string {
	for _, f := range Fields(v.Type()) {
		if reflect.PointerTo(f.Type).Implements(reflect.TypeFor[inline]()) {
			v.FieldByIndex(f.Index).Addr().Interface().(inline).Bind(d)
		}
	}
	return keysOf(v)
}

// CopyKeys copies the fields under keys from one struct to another of the same type. Both are pointers.
func CopyKeys(to, from any) {
	a, b := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for _, f := range Fields(a.Type()) {
		if Key(f) != "" {
			a.FieldByIndex(f.Index).Set(b.FieldByIndex(f.Index))
		}
	}
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
	for _, f := range Fields(v.Type()) {
		if Key(f) == name {
			return v.FieldByIndex(f.Index), f.Tag
		}
		if !reflect.PointerTo(f.Type).Implements(reflect.TypeFor[inline]()) {
			continue
		}
		if x := v.FieldByIndex(f.Index).Addr().Interface().(inline); slices.Contains(x.Keys(), name) {
			return reflect.ValueOf(x.Part(name)).Elem(), ""
		}
	}
	return reflect.Value{}, ""
}

// NamesOfAll returns the names of values.
func NamesOfAll[T fmt.Stringer](values []T) (names []string) {
	for _, v := range values {
		names = append(names, v.String())
	}
	return names
}

// ValueNamed returns the value of a name; the first one if there is none.
func ValueNamed[T fmt.Stringer](values []T, name string) T {
	for _, v := range values {
		if v.String() == name {
			return v
		}
	}
	return values[0]
}
