package structure

import (
	"fmt"
	"go/ast"
	"go/types"
)

// Limits of the surface of a type.
const (
	maxMethods = 40
	maxFields  = 25
)

// surfaces is measure 4: for each struct type T the methods of *T, with promoted ones, and the distinct names of its
// fields, with the fields of embedded structs. The fields of a record, which are all exported, are not limited.
func surfaces(m *module, f *figures) {
	over, most, widest := 0, 0, 0
	for _, p := range m.packages {
		for _, o := range p.structs() {
			methods := types.NewMethodSet(types.NewPointer(o.Type())).Len()
			names := map[string]bool{}
			fieldNames(o.Type().Underlying().(*types.Struct), names, map[types.Type]bool{})
			fields := len(names)
			if record(names) {
				fields = 0
			}
			if methods <= maxMethods && fields <= maxFields {
				continue
			}
			over, most, widest = over+1, max(most, methods), max(widest, fields)
			place := p.short + "." + o.Name()
			if methods > maxMethods {
				f.set(4, place, "methods", methods)
			}
			if fields > maxFields {
				f.set(4, place, "fields", fields)
			}
			f.detail(4, p.short, fmt.Sprintf("%s: %s has %d methods and %d fields", m.position(o.Pos()), o.Name(),
				methods, len(names)))
		}
	}
	f.set(4, all, "types over", over)
	f.set(4, all, "most methods", most)
	f.set(4, all, "most fields", widest)
}

// fieldNames adds the names of the fields of a struct and of the structs that it embeds, by value or pointer.
func fieldNames(s *types.Struct, names map[string]bool, seen map[types.Type]bool) {
	for f := range s.Fields() {
		names[f.Name()] = true
		if !f.Embedded() {
			continue
		}
		t := f.Type()
		if p, ok := t.(*types.Pointer); ok {
			t = p.Elem()
		}
		if in, ok := t.Underlying().(*types.Struct); ok && !seen[t] {
			seen[t] = true
			fieldNames(in, names, seen)
		}
	}
}

func record(fields map[string]bool) bool {
	for name := range fields {
		if !ast.IsExported(name) {
			return false
		}
	}
	return true
}
