package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// MaxBytes limits a scenario file; real ones have a few kilobytes.
// The parser's time grows with the square of the opening brackets.
const (
	MaxBytes    = 64 << 10
	maxBrackets = 2000
)

// maxDepth limits the nesting of values.
const maxDepth = 32

// Node is a value in a scenario file, or one given by a flag, with its place.
type Node struct {
	At     Place
	Kind   Kind
	Text   string  // of a text; of a scalar as it was written
	Number float64 // of a number
	Whole  bool    // the number was written as an integer
	Truth  bool
	Items  []*Node
	Fields []Field
	// Comment stands after the value, or above it where it takes several lines, when [Marshal] writes it.
	Comment string
}

// Field is a key of a map with its value.
type Field struct {
	Name  string
	At    Place
	Value *Node
}

// Kind is the type of a YAML node.
type Kind uint8

// The kinds of YAML nodes.
const (
	Null Kind = iota
	Bool
	Number
	Text
	List
	Map
)

// Get returns the value under a key, or nil.
func (n *Node) Get(name string) *Node {
	for i := range n.Fields {
		if n.Fields[i].Name == name {
			return n.Fields[i].Value
		}
	}
	return nil
}

// Put sets the value under a key, or removes the key when v is nil.
func (n *Node) Put(name string, at Place, v *Node) {
	kept := n.Fields[:0:0]
	done := v == nil
	for _, f := range n.Fields {
		switch {
		case f.Name != name:
			kept = append(kept, f)
		case !done:
			kept = append(kept, Field{name, at, v})
			done = true
		}
	}
	if !done {
		kept = append(kept, Field{name, at, v})
	}
	n.Fields = kept
}

// Describe says what a value is, for messages.
func (n *Node) Describe() string {
	switch n.Kind {
	case Null:
		return "null"
	case Bool:
		return fmt.Sprintf("%v is a truth value", n.Truth)
	case Number:
		return Short(n.Text) + " is a number"
	case Text:
		return strconv.Quote(Short(n.Text)) + " is a text"
	case List:
		return "this is a list"
	}
	return "this is a map"
}

// brief is a value as a message repeats it.
func (n *Node) brief() string {
	switch n.Kind {
	case Text:
		return strconv.Quote(Short(n.Text))
	case List:
		return "a list"
	case Map:
		return "a map"
	}
	return Short(n.Text)
}

// Short cuts a text to what a message can carry.
func Short(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Blank reports whether a text holds no YAML value: nothing, or only white space, comments and document marks.
func Blank(data []byte) bool {
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\ufeff"))) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) && !bytes.Equal(line, []byte("...")) {
			return false
		}
	}
	return true
}

// Parse reads one YAML document into nodes. An empty document is an empty map.
func Parse(origin string, data []byte, flag bool) (n *Node, err error) {
	if len(data) > MaxBytes {
		return nil, Faults{{Where: origin,
			Problem: fmt.Sprintf("the file is too long (want at most %d bytes)", MaxBytes)}}
	}
	r := reader{origin: origin, flag: flag}
	return r.read(data)
}

func (r *reader) read(data []byte) (n *Node, err error) {
	origin := r.origin
	// The parser is a library for arbitrary YAML; a slip in it must not end the program.
	defer func() {
		if recover() != nil {
			n, err = nil, Faults{{Where: origin, Problem: "this is not valid YAML"}}
		}
		var fs Faults
		if errors.As(err, &fs) && !r.flag && !r.lenient {
			addExcerpt(fs[0], origin, data)
		}
	}()
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, Faults{{Where: origin, Problem: "this is not text (want YAML in UTF-8)"}}
	}
	most := maxBrackets
	if r.lenient {
		most = maxBracketsOfOthers
	}
	if n := bytes.Count(data, []byte("[")) + bytes.Count(data, []byte("{")); n > most {
		return nil, Faults{{Where: origin,
			Problem: fmt.Sprintf("the file has %d opening brackets (want at most %d)", n, most)}}
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
		return &Node{At: Place{Origin: origin}}, nil
	}
	n = r.node(body, 0)
	if r.faults != nil {
		return nil, r.faults
	}
	return n, nil
}

// plainNumber reports whether a text is a number of YAML 1.2. The parser reads some of these as a text: 1e6, or an
// integer of more than 64 bits.
func plainNumber(text string) bool {
	text = withoutSign(text)
	rest := strings.TrimLeft(text, digits)
	written := len(text) - len(rest)
	if fraction, ok := strings.CutPrefix(rest, "."); ok {
		rest = strings.TrimLeft(fraction, digits)
		written += len(fraction) - len(rest)
	}
	if rest != "" && (rest[0] == 'e' || rest[0] == 'E') {
		exponent := withoutSign(rest[1:])
		rest = strings.TrimLeft(exponent, digits)
		if len(rest) == len(exponent) {
			return false
		}
	}
	return written > 0 && rest == ""
}

const digits = "0123456789"

// withoutSign is a text without one sign at its beginning.
func withoutSign(text string) string {
	if text != "" && (text[0] == '-' || text[0] == '+') {
		return text[1:]
	}
	return text
}

// reader turns the parser's tree into nodes.
type reader struct {
	origin string
	flag   bool
	faults Faults

	// lenient reads what other programs' files have, and scenarios do not: anchors, aliases, tags and octal numbers.
	lenient bool
	skipped int                 // lines of the file before the document
	anchors map[string]anchored // of the document
	nodes   int                 // with those that aliases repeat
}

func (r *reader) place(n ast.Node) Place {
	p := Place{Origin: r.origin}
	if t := n.GetToken(); t != nil && t.Position != nil && !r.flag {
		p.Line, p.Column = t.Position.Line+r.skipped, t.Position.Column
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
			f.Where = Place{r.origin, s.Token.Position.Line + r.skipped, s.Token.Position.Column}.String()
		}
	}
	return f
}

func (r *reader) node(a ast.Node, depth int) *Node {
	n := &Node{At: r.place(a)}
	if depth > maxDepth {
		r.fault(a, "values nest more than %d deep", maxDepth)
		return n
	}
	if r.lenient {
		if v, ok := r.reference(a, depth); ok {
			return v
		}
	}
	if t := a.GetToken(); t != nil {
		n.Text = t.Value
	}
	switch a := a.(type) {
	case *ast.SequenceNode:
		n.Kind = List
		for _, v := range a.Values {
			n.Items = append(n.Items, r.node(v, depth+1))
		}
	case *ast.MappingNode:
		n.Kind = Map
		for _, v := range r.mergesLast(a.Values) {
			r.field(n, v, depth)
		}
		if len(n.Fields) > 0 && !a.IsFlowStyle {
			n.At = n.Fields[0].At
		}
	case *ast.MappingValueNode:
		n.Kind = Map
		r.field(n, a, depth)
		if len(n.Fields) > 0 {
			n.At = n.Fields[0].At
		}
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		r.fault(a, "anchors and aliases are not read; write the value out")
	case *ast.TagNode:
		r.fault(a, "YAML tags are not read")
	default:
		if !n.scalar(a) {
			r.fault(a, "this cannot be read (want a value, a list or a map)")
		} else if t := a.GetToken(); n.Kind == Number && t != nil && octal(t.Value) && !r.lenient {
			r.fault(a, "%s is ambiguous: some readers of YAML take it for an octal number (want %s)", Short(t.Value),
				withoutZeros(t.Value))
		}
	}
	return n
}

// octal reports whether YAML 1.1 reads a number to base 8, or not at all, and YAML 1.2 to base 10.
func octal(text string) bool {
	text = withoutSign(text)
	return len(text) > 1 && text[0] == '0' && strings.Trim(text, digits+"_") == ""
}

// withoutZeros is a number without the zeros at its beginning.
func withoutZeros(text string) string {
	sign := text[:len(text)-len(strings.TrimLeft(text, "-+"))]
	digits := strings.TrimLeft(text[len(sign):], "0_")
	if digits == "" {
		digits = "0"
	}
	return Short(sign + digits)
}

// scalar takes over the kind and the value of a node of the parser. It reports whether that has a single one.
func (n *Node) scalar(a ast.Node) bool {
	switch a := a.(type) {
	case *ast.NullNode:
	case *ast.BoolNode:
		n.Kind, n.Truth = Bool, a.Value
	case *ast.IntegerNode:
		n.Kind, n.Whole = Number, true
		switch v := a.Value.(type) {
		case int64:
			n.Number = float64(v)
		case uint64:
			n.Number = float64(v)
		}
	case *ast.FloatNode:
		n.Kind, n.Number = Number, a.Value
	case *ast.InfinityNode:
		n.Kind, n.Number = Number, a.Value
	case *ast.NanNode:
		n.Kind, n.Number = Number, math.NaN()
	case *ast.StringNode:
		n.Kind, n.Text = Text, a.Value
		if a.Token.Type == token.StringType && plainNumber(a.Value) {
			n.Kind = Number
			n.Number, _ = strconv.ParseFloat(a.Value, 64) // infinite where it is too large
		}
	case *ast.LiteralNode:
		n.Kind, n.Text = Text, a.Value.Value
	default:
		return false
	}
	return true
}

func (r *reader) field(n *Node, v *ast.MappingValueNode, depth int) {
	f := Field{At: r.place(v.Key)}
	if _, merge := v.Key.(*ast.MergeKeyNode); merge && r.lenient {
		r.merge(n, v.Value, depth)
		return
	}
	switch key := v.Key.(type) {
	case *ast.StringNode:
		f.Name = key.Value
	case *ast.MergeKeyNode:
		r.fault(v.Key, "anchors and aliases are not read; write the value out")
	default:
		f.Name = v.Key.GetToken().Value
	}
	if v.Value == nil {
		f.Value = &Node{At: f.At}
	} else {
		f.Value = r.node(v.Value, depth+1)
	}
	n.Fields = append(n.Fields, f)
}

// Clone copies a tree, so that settings can change the copy.
func (n *Node) Clone() *Node {
	if n == nil {
		return nil
	}
	c := *n
	c.Items = make([]*Node, len(n.Items))
	for i, v := range n.Items {
		c.Items[i] = v.Clone()
	}
	c.Fields = make([]Field, len(n.Fields))
	for i, f := range n.Fields {
		c.Fields[i] = Field{f.Name, f.At, f.Value.Clone()}
	}
	return &c
}

// Set puts a value at the end of a dotted path, and makes the maps on the way to it that are not there.
func (n *Node) Set(path string, at Place, value *Node) error {
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
		case n.Kind == List:
			k, err := strconv.Atoi(name)
			if err != nil || k < 0 || k >= len(n.Items) {
				return fmt.Errorf("%q is not an index of the list (want 0 to %d)", name, len(n.Items)-1)
			}
			if last {
				n.Items[k] = value
			} else {
				n = n.Items[k]
			}
		case last:
			if n.Kind != Map {
				*n = Node{At: at, Kind: Map}
			}
			n.Put(name, at, value)
		default:
			n = n.childAt(name, at)
		}
	}
	return nil
}

// childAt is the list or map under a key, made where there is none.
func (n *Node) childAt(name string, at Place) *Node {
	if n.Kind != Map {
		*n = Node{At: at, Kind: Map}
	}
	c := n.Get(name)
	if c == nil || c.Kind != Map && c.Kind != List {
		c = &Node{At: at, Kind: Map}
		n.Put(name, at, c)
	}
	return c
}

// MapAt is the map under a key, made where there is none.
func (n *Node) MapAt(name string, at Place) *Node {
	c := n.childAt(name, at)
	if c.Kind != Map {
		*c = Node{At: at, Kind: Map}
	}
	return c
}

// Lookup walks a dotted path; nil where it ends in nothing.
func (n *Node) Lookup(names ...string) *Node {
	for _, name := range names {
		if n == nil || n.Kind != Map {
			return nil
		}
		n = n.Get(name)
	}
	if n != nil && n.Kind == Null {
		return nil
	}
	return n
}
