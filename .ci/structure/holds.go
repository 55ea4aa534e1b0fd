package structure

import (
	"fmt"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// enginePackages are the parts of an engine, which exchange values and hold no owner.
var enginePackages = []string{"sim/engine", "sim/batch", "sim/queue", "sim/kv", "sim/delivery", "sim/part/..."}

// holders is measures 5 and 6. The graph of a package has an arrow from a struct type to each one that a field holds.
// Measure 5 counts the types in cycles of that graph, measure 6 the methods with a parameter whose type holds the
// receiver's type, directly or not.
func holders(m *module, f *figures) {
	for what, measure := range map[string]int{"types": 5, "methods": 6} {
		f.set(measure, engine, what, 0)
		f.set(measure, all, what, 0)
	}
	for _, p := range m.packages {
		h := holding{in: p.Types, structs: p.structs()}
		h.arrows()
		types, methods := h.cycles(), h.ownerParameters(m)
		for _, c := range types {
			f.detail(5, p.short, fmt.Sprintf("%s: %d types hold each other: %s", p.short, len(c),
				strings.Join(c, ", ")))
		}
		for _, line := range methods {
			f.detail(6, p.short, line)
		}
		f.add(5, p, "types", len(slices.Concat(types...)))
		f.add(6, p, "methods", len(methods))
	}
}

// holding is the graph of the struct types of a package.
type holding struct {
	in      *types.Package
	structs []*types.TypeName
	graph   map[*types.TypeName]map[*types.TypeName]bool
}

func (h *holding) arrows() {
	h.graph = map[*types.TypeName]map[*types.TypeName]bool{}
	for _, o := range h.structs {
		held := map[*types.TypeName]bool{}
		for f := range o.Type().Underlying().(*types.Struct).Fields() {
			h.mentioned(f.Type(), held, map[types.Type]bool{})
		}
		h.graph[o] = held
	}
}

// mentioned adds the struct types of the package that a value of type t holds: by value, pointer, slice, array, map,
// channel or type argument. An interface with a single implementation in the package stands for that type; other
// interfaces and functions hold nothing.
func (h *holding) mentioned(t types.Type, held map[*types.TypeName]bool, seen map[types.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	into := func(t types.Type) { h.mentioned(t, held, seen) }
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		for a := range t.TypeArgs().Types() {
			into(a)
		}
		if t.Obj().Pkg() != h.in {
			return
		}
		switch under := t.Underlying().(type) {
		case *types.Struct:
			held[t.Origin().Obj()] = true
		case *types.Interface:
			if only := h.only(under); only != nil {
				held[only] = true
			}
		default:
			into(under)
		}
	case *types.Pointer:
		into(t.Elem())
	case *types.Slice:
		into(t.Elem())
	case *types.Array:
		into(t.Elem())
	case *types.Chan:
		into(t.Elem())
	case *types.Map:
		into(t.Key())
		into(t.Elem())
	case *types.Struct:
		for f := range t.Fields() {
			into(f.Type())
		}
	}
}

// only returns the one struct type of the package that implements an interface, or nil.
func (h *holding) only(i *types.Interface) (found *types.TypeName) {
	if i.NumMethods() == 0 {
		return nil
	}
	for _, o := range h.structs {
		if o.Type().(*types.Named).TypeParams().Len() > 0 || !types.Implements(types.NewPointer(o.Type()), i) {
			continue
		}
		if found != nil {
			return nil
		}
		found = o
	}
	return found
}

// cycles returns the names of types that hold each other, group by group.
func (h *holding) cycles() (groups [][]string) {
	for _, c := range components(h.structs, func(o *types.TypeName) map[*types.TypeName]bool { return h.graph[o] }) {
		var names []string
		for _, o := range c {
			names = append(names, o.Name())
		}
		slices.Sort(names)
		groups = append(groups, names)
	}
	return groups
}

// reach returns the types that a type holds, directly or not.
func (h *holding) reach(o *types.TypeName) map[*types.TypeName]bool {
	reached := maps.Clone(h.graph[o])
	for todo := slices.Collect(maps.Keys(reached)); len(todo) > 0; todo = todo[1:] {
		for next := range h.graph[todo[0]] {
			if !reached[next] {
				reached[next] = true
				todo = append(todo, next)
			}
		}
	}
	return reached
}

// ownerParameters returns the methods that take a value of a type that holds their receiver's.
func (h *holding) ownerParameters(m *module) (lines []string) {
	owners := map[*types.TypeName]map[*types.TypeName]bool{}
	for _, o := range h.structs {
		owners[o] = h.reach(o)
	}
	for _, o := range h.structs {
		for method := range o.Type().(*types.Named).Methods() {
			for v := range method.Signature().Params().Variables() {
				owner := h.parameter(v.Type())
				if owner != nil && owner != o && owners[owner][o] {
					lines = append(lines, fmt.Sprintf("%s: %s.%s takes %s", m.position(method.Pos()), o.Name(),
						method.Name(), owner.Name()))
					break
				}
			}
		}
	}
	return lines
}

// parameter returns the struct type of the package that a parameter T or *T is, or nil.
func (h *holding) parameter(t types.Type) *types.TypeName {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() != h.in {
		return nil
	}
	if i, ok := named.Underlying().(*types.Interface); ok {
		return h.only(i)
	}
	return named.Origin().Obj()
}
