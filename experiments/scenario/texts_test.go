package scenario

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestErrorTextsAreShort reads the texts of all faults and warnings from the source: each fits two lines of a
// terminal, and avoids phrases that readers stumble over.
func TestErrorTextsAreShort(t *testing.T) {
	const most = 160
	says := map[string]bool{"Fault": true, "Refuse": true, "Wrong": true, "Require": true, "Warn": true, "unused": true,
		"Errorf": true, "New": true}
	odd := []string{"nobody", "everybody", "who ", "for ever", "of what", "goes by", "comes to", "does not go with",
		"beside a"}
	seen := 0
	for _, pattern := range []string{"*.go", "*/*.go"} {
		files, _ := filepath.Glob(pattern)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				method, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || !says[method.Sel.Name] {
					return true
				}
				for _, text := range textsOf(call) {
					seen++
					if len(text) > most {
						t.Errorf("%v: %d characters (at most %d): %s", set.Position(call.Pos()), len(text), most, text)
					}
					for _, phrase := range odd {
						if strings.Contains(text, phrase) {
							t.Errorf("%v: %q in %s", set.Position(call.Pos()), phrase, text)
						}
					}
				}
				return true
			})
		}
	}
	if seen < 300 {
		t.Errorf("only %d texts seen", seen)
	}
}

// textsOf are the string literals among the arguments of a call.
func textsOf(call *ast.CallExpr) (texts []string) {
	for _, arg := range call.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, _ := strconv.Unquote(lit.Value)
				texts = append(texts, text)
			}
			return true
		})
	}
	return texts
}
