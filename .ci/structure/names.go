package structure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"strconv"
	"strings"
)

// exported is measure 9: exported names of packages that no other package uses. Not counted are types that a user of
// other names meets, constants of such types, programs, the root package and simtest, which is for users outside.
func exported(m *module, f *figures) error {
	used, err := m.used()
	if err != nil {
		return err
	}
	f.set(9, all, "names", 0)
	for _, p := range m.packages {
		if p.Name == "main" || p.short == "." || p.within("sim/simtest/...") {
			continue
		}
		n := 0
		for _, name := range p.Types.Scope().Names() {
			if o := p.Types.Scope().Lookup(name); o.Exported() && !used[p.short+"."+name] {
				n++
				f.detail(9, p.short, m.position(o.Pos())+": "+name)
			}
		}
		f.add(9, p, "names", n)
	}
	return nil
}

// used returns the names "package.Name" that another package uses or meets.
func (m *module) used() (map[string]bool, error) {
	used, own := map[string]bool{}, map[*types.Package]*pkg{}
	for _, p := range m.packages {
		own[p.Types] = p
	}
	for _, p := range m.packages {
		for _, o := range p.TypesInfo.Uses {
			if q := own[o.Pkg()]; q != nil && q != p && o.Parent() == o.Pkg().Scope() {
				used[q.short+"."+o.Name()] = true
			}
		}
		for _, file := range p.IgnoredFiles { // of another platform
			if err := m.selected(file, used); err != nil {
				return nil, err
			}
		}
	}
	r := reacher{own, used, map[types.Type]bool{}}
	for _, p := range m.packages {
		for _, name := range p.Types.Scope().Names() {
			if used[p.short+"."+name] {
				r.meet(p.Types.Scope().Lookup(name).Type())
			}
		}
	}
	for _, p := range m.packages {
		for _, name := range p.Types.Scope().Names() {
			if c, ok := p.Types.Scope().Lookup(name).(*types.Const); ok && r.seen[c.Type()] {
				used[p.short+"."+name] = true
			}
		}
	}
	return used, nil
}

// selected adds the names that a file selects from packages of the module. The file is parsed only.
func (m *module) selected(file string, used map[string]bool) error {
	if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
		return nil
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	packages := map[string]string{} // by local name
	for _, spec := range parsed.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if short, ok := strings.CutPrefix(imported, m.path+"/"); ok {
			name := path.Base(imported)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			packages[name] = short
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && packages[x.Name] != "" {
				used[packages[x.Name]+"."+s.Sel.Name] = true
			}
		}
		return true
	})
	return nil
}

// reacher follows the types of used names to those that a user of them meets.
type reacher struct {
	own  map[*types.Package]*pkg
	used map[string]bool
	seen map[types.Type]bool
}

// meet adds a type, and those in its exported fields, parameters and results, and interfaces that it embeds.
func (r *reacher) meet(t types.Type) {
	if r.seen[t] {
		return
	}
	r.seen[t] = true
	switch t := t.(type) {
	case *types.Named:
		for a := range t.TypeArgs().Types() {
			r.meet(a)
		}
		p := r.own[t.Obj().Pkg()]
		if p == nil {
			return
		}
		r.used[p.short+"."+t.Obj().Name()] = true
		for method := range t.Methods() {
			if method.Exported() {
				r.meet(method.Type())
			}
		}
		r.meet(t.Underlying())
	case *types.Alias:
		r.meet(types.Unalias(t))
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() || f.Embedded() {
				r.meet(f.Type())
			}
		}
	case *types.Interface:
		for method := range t.Methods() {
			r.meet(method.Type())
		}
		for embedded := range t.EmbeddedTypes() {
			r.meet(embedded)
		}
	case *types.Signature:
		for v := range t.Params().Variables() {
			r.meet(v.Type())
		}
		for v := range t.Results().Variables() {
			r.meet(v.Type())
		}
	case *types.Map:
		r.meet(t.Key())
		r.meet(t.Elem())
	case interface{ Elem() types.Type }:
		r.meet(t.Elem())
	}
}
