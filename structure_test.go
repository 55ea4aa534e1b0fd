package clifftop

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Limits of size. .ci/structure has the others.
const (
	maxInterfaceMethods = 5 // declared by an exported interface; embedded ones count for themselves
	maxColumns          = 120
)

// sourceFile is a parsed Go file.
type sourceFile struct {
	name string // path with slashes, below the module
	ast  *ast.File
	fset *token.FileSet
}

// sources parses all Go files of the module, without tests and modules below it.
func sources(t *testing.T) []sourceFile {
	t.Helper()
	var files []sourceFile
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." {
			_, isModule := os.Stat(filepath.Join(name, "go.mod"))
			if strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata" ||
				isModule == nil {
				return filepath.SkipDir
			}
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		files = append(files, sourceFile{filepath.ToSlash(name), f, fset})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 100 {
		t.Fatalf("only %d files seen", len(files))
	}
	return files
}

// TestInterfaces fails when an exported interface, which others implement, has too many methods, or when no comment of
// an interface names one of its methods. A single method needs no comment beside the interface's.
func TestInterfaces(t *testing.T) {
	for name, f := range exportedTypes(t) {
		x, ok := f.spec.Type.(*ast.InterfaceType)
		if !ok {
			continue
		}
		n, comments := 0, ""
		for _, m := range x.Methods.List {
			n += len(m.Names)
			comments += m.Doc.Text() + m.Comment.Text()
		}
		for _, m := range x.Methods.List {
			if len(m.Names) > 0 && n > 1 && m.Comment == nil && !strings.Contains(comments, m.Names[0].Name) {
				t.Errorf("%s: %s.%s has no doc comment", f.fset.Position(m.Pos()), f.spec.Name.Name, m.Names[0].Name)
			}
		}
		if n > maxInterfaceMethods && !provided[name] {
			t.Errorf("%s: interface %s has %d methods (want at most %d; group them)", f.name, f.spec.Name.Name, n,
				maxInterfaceMethods)
		}
	}
}

// exportedType is a declaration of a type.
type exportedType struct {
	sourceFile
	spec *ast.TypeSpec
	doc  bool
}

// exportedTypes returns the exported types of the module by "folder.Name".
func exportedTypes(t *testing.T) map[string]exportedType {
	types := map[string]exportedType{}
	for _, f := range sources(t) {
		for _, decl := range f.ast.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() {
					types[path.Dir(f.name)+"."+s.Name.Name] = exportedType{f, s, s.Doc != nil || d.Doc != nil}
				}
			}
		}
	}
	return types
}

// provided are interfaces that Clifftop implements and authors of policies and routers only call.
var provided = map[string]bool{"sim/engine.Host": true, "sim/route.View": true, "sim/sched.Batch": true,
	"sim/sched.Walk": true}

// TestDocComments fails when a package or an exported type has no doc comment.
func TestDocComments(t *testing.T) {
	packages := map[string]bool{}
	for _, f := range sources(t) {
		dir := path.Dir(f.name)
		packages[dir] = packages[dir] || f.ast.Doc != nil
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		if !packages[dir] {
			t.Errorf("package %s has no package comment", dir)
		}
	}
	for _, f := range exportedTypes(t) {
		if !f.doc {
			t.Errorf("%s: %s has no doc comment", f.fset.Position(f.spec.Pos()), f.spec.Name.Name)
		}
	}
}
