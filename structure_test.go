package clifftop

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Limits of size. They keep a package, a type and an interface small enough to be read as one idea.
const (
	maxFiles            = 60 // of a package, without tests
	maxMethods          = 90 // of a type
	maxFields           = 25 // of a type with methods; a record, whose fields are all exported, may have more
	maxInterfaceMethods = 5  // declared by an exported interface; embedded ones count for themselves
	maxColumns          = 120
)

// sourceFile is a parsed Go file.
type sourceFile struct {
	name string // path with slashes, below the module
	ast  *ast.File
	fset *token.FileSet
}

// sources parses all Go files of the module, without tests.
func sources(t *testing.T) []sourceFile {
	t.Helper()
	var files []sourceFile
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" ||
			d.Name() == "testdata") {
			return filepath.SkipDir
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

// TestSizes fails when a package has too many files, a type too many methods or fields, or an interface too many
// methods.
func TestSizes(t *testing.T) {
	perPackage, methods, fields := map[string]int{}, map[string]int{}, map[string]int{}
	for _, f := range sources(t) {
		dir := path.Dir(f.name)
		perPackage[dir]++
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					methods[dir+"."+receiver(d.Recv.List[0].Type)]++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok {
						sizeOf(t, f, dir, spec, fields)
					}
				}
			}
		}
	}
	over(t, "files in package", perPackage, maxFiles)
	over(t, "methods of", methods, maxMethods)
	maps.DeleteFunc(fields, func(name string, _ int) bool { return methods[name] == 0 })
	over(t, "fields of", fields, maxFields)
}

// sizeOf counts the fields of a struct that has unexported ones, and checks an exported interface.
func sizeOf(t *testing.T, f sourceFile, dir string, spec *ast.TypeSpec, fields map[string]int) {
	switch x := spec.Type.(type) {
	case *ast.StructType:
		n, record := 0, true
		for _, field := range x.Fields.List {
			n += max(1, len(field.Names))
			for _, id := range field.Names {
				record = record && id.IsExported()
			}
		}
		if !record {
			fields[dir+"."+spec.Name.Name] = n
		}
	case *ast.InterfaceType:
		n := 0
		for _, m := range x.Methods.List {
			n += len(m.Names)
		}
		if name := dir + "." + spec.Name.Name; spec.Name.IsExported() && n > maxInterfaceMethods && !provided[name] {
			t.Errorf("%s: interface %s has %d methods (want at most %d; group them)", f.name, spec.Name.Name, n,
				maxInterfaceMethods)
		}
	}
}

// provided are interfaces that Clifftop implements and authors of policies and routers only call.
var provided = map[string]bool{"sim/engine.Host": true, "sim/route.View": true, "sim/sched.Batch": true,
	"sim/sched.Walk": true}

// over reports what exceeds a limit.
func over(t *testing.T, what string, counts map[string]int, limit int) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > limit {
			t.Errorf("%s %s: %d (want at most %d)", what, name, counts[name], limit)
		}
	}
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

// TestDocComments fails when an exported name has no doc comment. A group of constants or variables may share one.
func TestDocComments(t *testing.T) {
	missing := func(f sourceFile, id *ast.Ident) {
		t.Errorf("%s: %s has no doc comment", f.fset.Position(id.Pos()), id.Name)
	}
	packages := map[string]bool{}
	for _, f := range sources(t) {
		dir := path.Dir(f.name)
		packages[dir] = packages[dir] || f.ast.Doc != nil
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				exported := d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type)))
				if exported && d.Doc == nil && !standardMethods[d.Name.Name] {
					missing(f, d.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						if s.Name.IsExported() && s.Doc == nil && d.Doc == nil {
							missing(f, s.Name)
						}
					case *ast.ValueSpec:
						if s.Names[0].IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
							missing(f, s.Names[0])
						}
					}
				}
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		if !packages[dir] {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

// standardMethods need no comment of their own: their interfaces say what they do.
var standardMethods = map[string]bool{
	"Error": true, "Unwrap": true, "String": true, "Len": true, "Less": true, "Swap": true, "MarshalJSON": true,
	"UnmarshalJSON": true, "MarshalText": true, "UnmarshalText": true, "MarshalYAML": true, "UnmarshalYAML": true,
	"Decode": true, "Check": true, "Variants": true, "SetDefaults": true, // of package yamldoc
}
