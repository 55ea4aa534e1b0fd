package yamldoc

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"clifftop/internal/pattern"
	"clifftop/sim/clock"
)

// Marshal writes a map as a YAML document.
func Marshal(root *Node) []byte {
	if len(root.Fields) == 0 {
		return []byte("{}\n")
	}
	var b strings.Builder
	writeFields(&b, root, 0)
	return []byte(b.String())
}

// writeFields writes a map that is not empty, a key on each line.
func writeFields(b *strings.Builder, n *Node, indent int) {
	for _, f := range n.Fields {
		if f.Value.Comment != "" && !f.Value.short() && len(f.Value.Items)+len(f.Value.Fields) > 0 {
			b.WriteString(strings.Repeat("  ", indent) + "# " + plainComment(f.Value.Comment) + "\n")
		}
		b.WriteString(strings.Repeat("  ", indent) + quoted(f.Name) + ":")
		writeValue(b, f.Value, indent+1)
	}
}

// writeValue writes what follows a key or the dash of an item: on its line where it is a scalar or holds only such.
func writeValue(b *strings.Builder, v *Node, indent int) {
	switch {
	case v.short() || len(v.Items)+len(v.Fields) == 0:
		b.WriteString(" " + v.flow())
		if v.Comment != "" {
			b.WriteString("  # " + plainComment(v.Comment))
		}
		b.WriteByte('\n')
	case v.Kind == Map:
		b.WriteByte('\n')
		writeFields(b, v, indent)
	default:
		b.WriteByte('\n')
		for _, item := range v.Items {
			b.WriteString(strings.Repeat("  ", indent) + "-")
			if item.Kind == Map && len(item.Fields) > 0 && !item.short() {
				var inner strings.Builder
				writeFields(&inner, item, indent+1)
				b.WriteString(" " + strings.TrimLeft(inner.String(), " "))
				continue
			}
			writeValue(b, item, indent+1)
		}
	}
}

// plainComment is a comment on one line without control characters.
func plainComment(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, text)
}

// bare are texts that need no quotes: words that begin with a letter, and durations and shares.
var bare = pattern.New(`^([A-Za-z_][A-Za-z0-9_./-]*|[0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h|%))$`)

// words are texts that some reader of YAML takes for a truth value, null or a number.
var words = pattern.New(`^(?i:true|false|yes|no|on|off|y|n|null|nan|inf|infinity|_+)$`)

// quoted writes a text, in quotes where it needs them.
func quoted(text string) string {
	if bare.Get().MatchString(text) && !words.Get().MatchString(text) {
		return text
	}
	var b strings.Builder
	e := json.NewEncoder(&b) // a JSON string is one of YAML
	e.SetEscapeHTML(false)
	_ = e.Encode(text)
	return strings.TrimSuffix(b.String(), "\n")
}

// maxFlow is the longest list or map on one line, in bytes.
const maxFlow = 90

// short says that a value is written on one line.
func (n *Node) short() bool { return n.flat() && len(n.flow()) <= maxFlow }

// flat says that a value is a scalar, or a list or map of scalars without comments.
func (n *Node) flat() bool {
	scalar := func(v *Node) bool { return len(v.Items) == 0 && len(v.Fields) == 0 && v.Comment == "" }
	for _, v := range n.Items {
		if !scalar(v) {
			return false
		}
	}
	for _, f := range n.Fields {
		if !scalar(f.Value) {
			return false
		}
	}
	return true
}

// flow writes a flat value on one line.
func (n *Node) flow() string {
	var parts []string
	switch n.Kind {
	case Null:
		return "null"
	case Bool:
		if n.Truth {
			return "true"
		}
		return "false"
	case Number:
		return n.Text
	case Text:
		return quoted(n.Text)
	case List:
		for _, v := range n.Items {
			parts = append(parts, v.flow())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	for _, f := range n.Fields {
		parts = append(parts, quoted(f.Name)+": "+f.Value.flow())
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// marshalObject writes the keys of several structs as one JSON object.
func marshalObject(parts ...any) ([]byte, error) {
	out := []byte{'{'}
	for _, part := range parts {
		text, err := json.Marshal(part)
		if err != nil {
			return nil, err
		}
		if text = text[1 : len(text)-1]; len(text) > 0 && len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, text...)
	}
	return append(out, '}'), nil
}

// marshalKeys writes some keys of the struct that the pointer points to as a JSON object, in the order of the struct.
func marshalKeys(pointer any, keys []string) (json.RawMessage, error) {
	var parts []any
	v := reflect.ValueOf(pointer).Elem()
	for _, f := range Fields(v.Type()) {
		field := v.FieldByIndex(f.Index)
		omitted := field.IsZero() && strings.HasSuffix(f.Tag.Get("json"), ",omitempty")
		if name := Key(f); slices.Contains(keys, name) && !omitted {
			value, err := Plain(field, f.Tag)
			if err != nil {
				return nil, err
			}
			parts = append(parts, map[string]any{name: value})
		}
	}
	return marshalObject(parts...)
}

// Unset reports whether a number is 0 although 0 is not allowed, which stands for null.
func Unset(v reflect.Value, tag reflect.StructTag) bool {
	return (v.CanInt() || v.CanFloat()) && v.IsZero() && !ParseRange(tag.Get("range")).holds(0)
}

// Plain is the value of a field with a tag as [encoding/json] is to write it. The field is addressable.
func Plain(v reflect.Value, tag reflect.StructTag) (any, error) {
	switch x := v.Addr().Interface().(type) {
	case *clock.Duration:
		return Duration(*x), nil
	case table:
		numbers := map[string]float64{}
		for _, name := range x.Names() {
			if number, ok := x.Get(name); ok {
				numbers[name] = number
			}
		}
		return numbers, nil
	}
	names := NamesOf(v.Type(), tag)
	switch {
	case Unset(v, tag):
		return nil, nil
	case v.Kind() == reflect.Struct:
		return marshalKeys(v.Addr().Interface(), Keys(v.Type()))
	case len(names) > 0 && v.Kind() == reflect.Bool:
		return names[map[bool]int{true: 1}[v.Bool()]], nil
	case len(names) > 0 && v.CanUint():
		return names[v.Uint()], nil
	}
	return v.Interface(), nil
}

// MarshalFields writes a struct as a JSON object in which the keys of inline fields stand in the place of the field.
// It does not know omitempty.
func MarshalFields(pointer any) ([]byte, error) {
	var parts []any
	v := reflect.ValueOf(pointer).Elem()
	for i := range v.NumField() {
		field := v.Field(i)
		x, ok := field.Addr().Interface().(inline)
		if !ok {
			parts = append(parts, map[string]any{Key(v.Type().Field(i)): field.Interface()})
			continue
		}
		for _, key := range x.Keys() {
			part := x.Part(key)
			own, err := marshalKeys(part, KeysOf(part))
			if err != nil {
				return nil, err
			}
			parts = append(parts, map[string]any{key: own})
		}
	}
	return marshalObject(parts...)
}
