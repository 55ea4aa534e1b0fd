// Package structure measures the inside of Clifftop's packages, and keeps the figures from getting worse.
//
//	go -C .ci test -count=1 ./structure                  # compare with structure.txt
//	go -C .ci test ./structure -update                   # write improvements down, here and in docs/architecture.md
//	go -C .ci test ./structure -v -details sim/engine    # what the figures of a package consist of
//
// Tests, generated files and folders named testdata do not count. The functions that measure define the measures.
package structure

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

// module is a type-checked Go module.
type module struct {
	root     string // absolute folder
	path     string // of imports
	fset     *token.FileSet
	packages []*pkg
}

// pkg is a package of a module.
type pkg struct {
	*packages.Package
	short string // folder below the module, "." for the root
}

// load type-checks a module. Packages outside are read from export data.
func load(root string) (*module, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	m := &module{root: root, fset: token.NewFileSet()}
	loaded, err := packages.Load(&packages.Config{Dir: root, Fset: m.fset, Mode: packages.NeedName |
		packages.NeedFiles | packages.NeedImports | packages.NeedModule | packages.NeedTypes | packages.NeedSyntax |
		packages.NeedTypesInfo}, "./...")
	if err != nil {
		return nil, err
	}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		m.path = p.Module.Path
		short := strings.TrimPrefix(strings.TrimPrefix(p.PkgPath, m.path), "/")
		m.packages = append(m.packages, &pkg{p, path.Clean(short)})
	}
	if len(m.packages) == 0 {
		return nil, fmt.Errorf("%s: no packages", root)
	}
	return m, nil
}

// position is file:line below the module.
func (m *module) position(p token.Pos) string {
	at := m.fset.Position(p)
	return fmt.Sprintf("%s:%d", m.below(at.Filename), at.Line)
}

// below returns a file's path below the module, with slashes.
func (m *module) below(file string) string {
	if name, err := filepath.Rel(m.root, file); err == nil {
		file = name
	}
	return filepath.ToSlash(file)
}

// within reports whether a package lies in one of some folders. A folder that ends in "..." includes those below.
func (p *pkg) within(folders ...string) bool {
	for _, f := range folders {
		if tree, all := strings.CutSuffix(f, "/..."); p.short == tree || all && strings.HasPrefix(p.short, tree+"/") {
			return true
		}
	}
	return false
}

// structs returns the struct types that a package declares, in order of their names.
func (p *pkg) structs() (all []*types.TypeName) {
	for _, name := range p.Types.Scope().Names() {
		o, ok := p.Types.Scope().Lookup(name).(*types.TypeName)
		if !ok || o.IsAlias() {
			continue
		}
		if _, ok := o.Type().Underlying().(*types.Struct); ok {
			all = append(all, o)
		}
	}
	return all
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
