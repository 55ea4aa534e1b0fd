package experiments

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxFileBytes limits a scenario file; real ones have a few kilobytes.
// The parser's time grows with the square of the opening brackets.
const (
	maxFileBytes = 64 << 10
	maxBrackets  = 2000
)

// maxDepth limits the nesting of values.
const maxDepth = 32

// node is a value in a scenario file, or one given by a flag, with its place.
type node struct {
	at     place
	kind   nodeKind
	text   string  // of a text; of a scalar as it was written
	number float64 // of a number
	whole  bool    // the number was written as an integer
	truth  bool
	items  []*node
	fields []field
}

// field is a key of a map with its value.
type field struct {
	name  string
	at    place
	value *node
}

type nodeKind uint8

const (
	isNull nodeKind = iota
	isBool
	isNumber
	isText
	isList
	isMap
)

// get returns the value under a key, or nil.
func (n *node) get(name string) *node {
	for i := range n.fields {
		if n.fields[i].name == name {
			return n.fields[i].value
		}
	}
	return nil
}

// put sets the value under a key, or removes the key when v is nil.
func (n *node) put(name string, at place, v *node) {
	kept := n.fields[:0:0]
	done := v == nil
	for _, f := range n.fields {
		switch {
		case f.name != name:
			kept = append(kept, f)
		case !done:
			kept = append(kept, field{name, at, v})
			done = true
		}
	}
	if !done {
		kept = append(kept, field{name, at, v})
	}
	n.fields = kept
}

// describe says what a value is, for messages.
func (n *node) describe() string {
	switch n.kind {
	case isNull:
		return "null"
	case isBool:
		return fmt.Sprintf("%v is a truth value", n.truth)
	case isNumber:
		return short(n.text) + " is a number"
	case isText:
		return strconv.Quote(short(n.text)) + " is a text"
	case isList:
		return "this is a list"
	}
	return "this is a map"
}

// brief is a value as a message repeats it.
func (n *node) brief() string {
	switch n.kind {
	case isText:
		return strconv.Quote(short(n.text))
	case isList:
		return "a list"
	case isMap:
		return "a map"
	}
	return short(n.text)
}

// short cuts a text to what a message can carry.
func short(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// parseYAML reads one YAML document into nodes. An empty document is an empty map.
func parseYAML(origin string, data []byte, flag bool) (n *node, err error) {
	r := reader{origin: origin, flag: flag}
	if len(data) > maxFileBytes {
		return nil, Faults{{Where: origin, Problem: fmt.Sprintf("the file is too long (want at most %d bytes)", maxFileBytes)}}
	}
	// The parser is a library for arbitrary YAML; a slip in it must not end the program.
	defer func() {
		if recover() != nil {
			n, err = nil, Faults{{Where: origin, Problem: "this is not valid YAML"}}
		}
		var fs Faults
		if errors.As(err, &fs) && !flag {
			addExcerpt(fs[0], origin, data)
		}
	}()
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, Faults{{Where: origin, Problem: "this is not text (want YAML in UTF-8)"}}
	}
	if n := bytes.Count(data, []byte("[")) + bytes.Count(data, []byte("{")); n > maxBrackets {
		return nil, Faults{{Where: origin, Problem: fmt.Sprintf("the file has %d opening brackets (want at most %d)", n, maxBrackets)}}
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, Faults{r.syntax(err)}
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			return nil, Faults{{Where: r.place(doc.Body).String(), Problem: "a second document starts here (want one)"}}
		}
		body = doc.Body
	}
	if body == nil {
		return &node{at: place{origin: origin}}, nil
	}
	n = r.node(body, 0)
	if r.faults != nil {
		return nil, r.faults
	}
	return n, nil
}

// plainNumber matches YAML 1.2's numbers, of which the parser reads 1e6, or an integer of more than 64 bits,
// as a text.
var plainNumber = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// reader turns the parser's tree into nodes.
type reader struct {
	origin string
	flag   bool
	faults Faults
}

func (r *reader) place(n ast.Node) place {
	p := place{origin: r.origin}
	if t := n.GetToken(); t != nil && t.Position != nil && !r.flag {
		p.line, p.column = t.Position.Line, t.Position.Column
	}
	return p
}

func (r *reader) fault(n ast.Node, format string, args ...any) {
	r.faults = append(r.faults, &Fault{Where: r.place(n).String(), Problem: fmt.Sprintf(format, args...)})
}

// syntax turns the parser's error into a fault.
func (r *reader) syntax(err error) *Fault {
	f := &Fault{Where: r.origin, Problem: "this is not valid YAML"}
	var s *yaml.SyntaxError
	if errors.As(err, &s) {
		f.Problem += ": " + strings.ReplaceAll(s.Message, "\n", " ")
		if s.Token != nil && s.Token.Position != nil && !r.flag {
			f.Where = place{r.origin, s.Token.Position.Line, s.Token.Position.Column}.String()
		}
	}
	return f
}

func (r *reader) node(a ast.Node, depth int) *node {
	n := &node{at: r.place(a)}
	if depth > maxDepth {
		r.fault(a, "values nest more than %d deep", maxDepth)
		return n
	}
	if t := a.GetToken(); t != nil {
		n.text = t.Value
	}
	switch a := a.(type) {
	case *ast.SequenceNode:
		n.kind = isList
		for _, v := range a.Values {
			n.items = append(n.items, r.node(v, depth+1))
		}
	case *ast.MappingNode:
		n.kind = isMap
		for _, v := range a.Values {
			r.field(n, v, depth)
		}
		if len(a.Values) > 0 && !a.IsFlowStyle {
			n.at = n.fields[0].at
		}
	case *ast.MappingValueNode:
		n.kind = isMap
		r.field(n, a, depth)
		n.at = n.fields[0].at
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		r.fault(a, "anchors and aliases are not read; write the value out")
	case *ast.TagNode:
		r.fault(a, "YAML tags are not read")
	default:
		if !n.scalar(a) {
			r.fault(a, "this cannot be read (want a value, a list or a map)")
		}
	}
	return n
}

// scalar takes over the kind and the value of a node of the parser. It reports whether that has a single one.
func (n *node) scalar(a ast.Node) bool {
	switch a := a.(type) {
	case *ast.NullNode:
	case *ast.BoolNode:
		n.kind, n.truth = isBool, a.Value
	case *ast.IntegerNode:
		n.kind, n.whole = isNumber, true
		switch v := a.Value.(type) {
		case int64:
			n.number = float64(v)
		case uint64:
			n.number = float64(v)
		}
	case *ast.FloatNode:
		n.kind, n.number = isNumber, a.Value
	case *ast.InfinityNode:
		n.kind, n.number = isNumber, a.Value
	case *ast.NanNode:
		n.kind, n.number = isNumber, math.NaN()
	case *ast.StringNode:
		n.kind, n.text = isText, a.Value
		if a.Token.Type == token.StringType && plainNumber.MatchString(a.Value) {
			n.kind = isNumber
			n.number, _ = strconv.ParseFloat(a.Value, 64) // infinite where it is too large
		}
	case *ast.LiteralNode:
		n.kind, n.text = isText, a.Value.Value
	default:
		return false
	}
	return true
}

func (r *reader) field(n *node, v *ast.MappingValueNode, depth int) {
	f := field{at: r.place(v.Key)}
	switch key := v.Key.(type) {
	case *ast.StringNode:
		f.name = key.Value
	case *ast.MergeKeyNode:
		r.fault(v.Key, "anchors and aliases are not read; write the value out")
	default:
		f.name = v.Key.GetToken().Value
	}
	if v.Value == nil {
		f.value = &node{at: f.at}
	} else {
		f.value = r.node(v.Value, depth+1)
	}
	n.fields = append(n.fields, f)
}

// clone copies a tree, so that settings can change the copy.
func (n *node) clone() *node {
	if n == nil {
		return nil
	}
	c := *n
	c.items = make([]*node, len(n.items))
	for i, v := range n.items {
		c.items[i] = v.clone()
	}
	c.fields = make([]field, len(n.fields))
	for i, f := range n.fields {
		c.fields[i] = field{f.name, f.at, f.value.clone()}
	}
	return &c
}

// set puts a value at the end of a dotted path, and makes the maps on the way to it that are not there.
func (n *node) set(path string, at place, value *node) error {
	names := strings.Split(path, ".")
	if len(names) > maxDepth {
		return errors.New("the key is too long")
	}
	for i, name := range names {
		last := i == len(names)-1
		if name == "" {
			return errors.New("the key has an empty part")
		}
		switch {
		case n.kind == isList:
			k, err := strconv.Atoi(name)
			if err != nil || k < 0 || k >= len(n.items) {
				return fmt.Errorf("%q is not an index of the list (want 0 to %d)", name, len(n.items)-1)
			}
			if last {
				n.items[k] = value
			} else {
				n = n.items[k]
			}
		case last:
			if n.kind != isMap {
				*n = node{at: at, kind: isMap}
			}
			n.put(name, at, value)
		default:
			n = n.childAt(name, at)
		}
	}
	return nil
}

// childAt is the list or map under a key, made where there is none.
func (n *node) childAt(name string, at place) *node {
	if n.kind != isMap {
		*n = node{at: at, kind: isMap}
	}
	c := n.get(name)
	if c == nil || c.kind != isMap && c.kind != isList {
		c = &node{at: at, kind: isMap}
		n.put(name, at, c)
	}
	return c
}

// mapAt is the map under a key, made where there is none.
func (n *node) mapAt(name string, at place) *node {
	c := n.childAt(name, at)
	if c.kind != isMap {
		*c = node{at: at, kind: isMap}
	}
	return c
}

// lookup walks a dotted path; nil where it ends in nothing.
func (n *node) lookup(names ...string) *node {
	for _, name := range names {
		if n == nil || n.kind != isMap {
			return nil
		}
		n = n.get(name)
	}
	if n != nil && n.kind == isNull {
		return nil
	}
	return n
}
