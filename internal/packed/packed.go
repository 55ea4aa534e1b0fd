// Package packed stores records, which are Go structs, as bytes that decode quickly. A [Table] is a file of such
// records with their names. The program embeds tables that are generated from YAML: to decode a record takes about a
// hundredth of the time of its YAML.
//
// A record has no keys: a table must be generated anew when a type changes. The test of a table compares it with the
// records of its source.
package packed

import (
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Table is a list of records. The embedded file is the value: go:embed can fill a variable of this type.
type Table string

// NewTable returns a table of records, which are pointers to structs, in the order of their names.
func NewTable(records map[string]any) Table {
	names := slices.Sorted(maps.Keys(records))
	index, bodies := binary.AppendUvarint(nil, uint64(len(names))), []byte(nil)
	for _, name := range names {
		body := appendValue(nil, reflect.ValueOf(records[name]).Elem())
		index = appendString(index, name)
		index = binary.AppendUvarint(index, uint64(len(body)))
		bodies = append(bodies, body...)
	}
	return Table(append(index, bodies...))
}

// Has reports whether the table has a record.
func (t Table) Has(name string) bool { return t.body(name) != "" }

// Read decodes a record into the struct that into points to. It reports whether the table has it. Fields that are
// zero in the record stay as they are.
func (t Table) Read(name string, into any) bool {
	body := t.body(name)
	if body == "" {
		return false
	}
	d := decoder{string(body)}
	d.value(reflect.ValueOf(into).Elem())
	return true
}

// Names returns the names that begin with a prefix, in order.
func (t Table) Names(prefix string) []string {
	var names []string
	for name := range t.all() {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names
}

// Stale returns the names of the records in which two tables differ, or that only one of them has.
func (t Table) Stale(other Table) []string {
	differ := map[string]bool{}
	for _, pair := range [][2]Table{{t, other}, {other, t}} {
		for name, body := range pair[0].all() {
			if pair[1].body(name) != body {
				differ[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(differ))
}

// body returns the bytes of a record; empty if there is none.
func (t Table) body(name string) Table {
	for n, body := range t.all() {
		if n == name {
			return body
		}
	}
	return ""
}

// all returns the names and bytes of the records.
func (t Table) all() iter.Seq2[string, Table] {
	return func(yield func(string, Table) bool) {
		if t == "" {
			return
		}
		scan := decoder{string(t)}
		count := scan.uint()
		index, bodies := scan, scan
		for range count {
			bodies.string()
			bodies.uint()
		}
		for range count {
			name := index.string()
			if !yield(name, Table(bodies.next(index.uint()))) {
				return
			}
		}
	}
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendValue encodes a value. Structs begin with a bit for each field: only fields that are not zero follow. It
// panics for types that no record has.
func appendValue(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return binary.AppendVarint(b, v.Int())
	case reflect.Uint64:
		return binary.AppendUvarint(b, v.Uint())
	case reflect.Float64:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Float()))
	case reflect.String:
		return appendString(b, v.String())
	case reflect.Pointer:
		return appendValue(b, v.Elem())
	case reflect.Interface: // a value of YAML
		kind := slices.Index(scalars[:], v.Elem().Type())
		return appendValue(append(b, byte(kind)), v.Elem())
	case reflect.Slice:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			b = appendValue(b, v.Index(i))
		}
		return b
	case reflect.Map:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		keys := v.MapKeys()
		slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
		for _, k := range keys {
			b = appendValue(appendValue(b, k), v.MapIndex(k))
		}
		return b
	case reflect.Struct:
		return appendStruct(b, v)
	}
	panic("packed: " + v.Type().String() + " is not supported")
}

func appendStruct(b []byte, v reflect.Value) []byte {
	mask := len(b)
	b = append(b, make([]byte, (v.NumField()+7)/8)...)
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() {
			if !v.Type().Field(i).IsExported() {
				panic("packed: " + v.Type().String() + " has a private field that is not zero")
			}
			b[mask+i/8] |= 1 << (i % 8)
			b = appendValue(b, f)
		}
	}
	return b
}

// scalars are the types that a field of type any may have.
var scalars = [...]reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[float64](), reflect.TypeFor[uint64](),
	reflect.TypeFor[int64]()}

// decoder reads values from the front of its bytes. It panics if they end early, which is a bug in the program.
type decoder struct{ rest string }

func (d *decoder) next(n uint64) string {
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) uint() uint64 {
	x, shift := uint64(0), 0
	for i := 0; ; i++ {
		c := d.rest[i]
		x |= uint64(c&0x7f) << shift
		if c < 0x80 {
			d.rest = d.rest[i+1:]
			return x
		}
		shift += 7
	}
}

func (d *decoder) string() string { return d.next(d.uint()) }

func (d *decoder) float() float64 {
	var bits uint64
	for i, c := range []byte(d.next(8)) {
		bits |= uint64(c) << (8 * i)
	}
	return math.Float64frombits(bits)
}

func (d *decoder) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(d.uint() == 1)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		x := d.uint()
		v.SetInt(int64(x>>1) ^ -int64(x&1))
	case reflect.Uint64:
		v.SetUint(d.uint())
	case reflect.Float64:
		v.SetFloat(d.float())
	case reflect.String:
		v.SetString(d.string())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(v.Elem())
	case reflect.Interface:
		x := reflect.New(scalars[d.uint()]).Elem()
		d.value(x)
		v.Set(x)
	case reflect.Slice:
		n := int(d.uint())
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			d.value(v.Index(i))
		}
	case reflect.Map:
		d.entries(v)
	case reflect.Struct:
		mask := d.next(uint64(v.NumField()+7) / 8)
		for i := range v.NumField() {
			if mask[i/8]&(1<<(i%8)) != 0 {
				d.value(v.Field(i))
			}
		}
	}
}

func (d *decoder) entries(v reflect.Value) {
	n := int(d.uint())
	t := v.Type()
	v.Set(reflect.MakeMapWithSize(t, n))
	key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
	for range n {
		value.SetZero()
		d.value(key)
		d.value(value)
		v.SetMapIndex(key, value)
	}
}
