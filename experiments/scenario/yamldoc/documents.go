package yamldoc

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// Limits of files of other programs: documents, values of a document with those that aliases repeat, and brackets, of
// which texts inside the file have many.
const (
	maxDocuments        = 1000
	maxNodes            = 200_000
	maxBracketsOfOthers = 10_000
)

// anchored is a value with an anchor, and how many nodes it has.
type anchored struct {
	value *Node
	nodes int
}

// ParseAll reads a file of another program with any number of YAML documents, such as Kubernetes manifests. Documents
// without a value are left out. Aliases stand for the values of their anchors, merge keys are merged, and tags are
// not looked at, except !!str.
func ParseAll(origin string, data []byte) ([]*Node, error) {
	var docs []*Node
	for _, part := range documents(bytes.TrimPrefix(data, []byte("\ufeff"))) {
		if Blank(part.text) {
			continue
		}
		if len(docs) == maxDocuments {
			return nil, Faults{{Where: Place{origin, part.line, 1}.String(),
				Problem: fmt.Sprintf("there are more than %d documents", maxDocuments)}}
		}
		r := reader{origin: origin, lenient: true, skipped: part.line - 1, anchors: map[string]anchored{}}
		n, err := r.read(part.text)
		if err != nil {
			return nil, err
		}
		docs = append(docs, n)
	}
	return docs, nil
}

// part is a document of a file with its first line.
type part struct {
	text []byte
	line int
}

// documents divides a file at the lines that begin with three dashes. The line stays in the document that it begins.
func documents(data []byte) []part {
	parts := []part{{line: 1}}
	line := 0
	for text := range bytes.Lines(data) {
		line++
		mark := bytes.HasPrefix(text, []byte("---")) &&
			(len(text) == 3 || bytes.IndexByte([]byte(" \t\r\n"), text[3]) >= 0)
		if mark && line > 1 {
			parts = append(parts, part{line: line})
		}
		last := &parts[len(parts)-1]
		last.text = append(last.text, text...)
	}
	return parts
}

// reference reads an anchor, an alias or a tag.
func (r *reader) reference(a ast.Node, depth int) (n *Node, ok bool) {
	if r.nodes++; r.nodes > maxNodes {
		if len(r.faults) == 0 {
			r.fault(a, "there are more than %d values", maxNodes)
		}
		return &Node{At: r.place(a)}, true
	}
	switch a := a.(type) {
	case *ast.AnchorNode:
		before := r.nodes
		v := r.node(a.Value, depth+1)
		r.anchors[a.Name.GetToken().Value] = anchored{v, r.nodes - before}
		return v, true
	case *ast.AliasNode:
		name := a.Value.GetToken().Value
		v, ok := r.anchors[name]
		if !ok {
			r.fault(a, "there is no anchor &%s before this", Short(name))
			return &Node{At: r.place(a)}, true
		}
		r.nodes += v.nodes
		return v.value, true
	case *ast.TagNode:
		if a.Value == nil {
			return &Node{At: r.place(a)}, true
		}
		v := r.node(a.Value, depth+1)
		if a.Start != nil && a.Start.Value == "!!str" && (v.Kind == Number || v.Kind == Bool) {
			v.Kind = Text
		}
		return v, true
	}
	return nil, false
}

// mergesLast are the keys of a map in the order in which they count: those of merged maps only where the map itself
// does not have them.
func (r *reader) mergesLast(values []*ast.MappingValueNode) []*ast.MappingValueNode {
	merge := func(v *ast.MappingValueNode) bool { _, ok := v.Key.(*ast.MergeKeyNode); return ok }
	if !r.lenient || !slices.ContainsFunc(values, merge) {
		return values
	}
	var own, merged []*ast.MappingValueNode
	for _, v := range values {
		if merge(v) {
			merged = append(merged, v)
		} else {
			own = append(own, v)
		}
	}
	return append(own, merged...)
}

// merge adds the fields of a map that a merge key names, or of several. Keys that are there already win.
func (r *reader) merge(n *Node, a ast.Node, depth int) {
	v := r.node(a, depth+1)
	maps := v.Items
	if v.Kind == Map {
		maps = []*Node{v}
	}
	seen := map[string]bool{}
	for _, f := range n.Fields {
		seen[f.Name] = true
	}
	for _, m := range maps {
		for _, f := range m.Fields {
			if !seen[f.Name] {
				seen[f.Name] = true
				n.Fields = append(n.Fields, f)
			}
		}
	}
}
