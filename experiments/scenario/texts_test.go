package scenario

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestErrorTextsAreShort reads the texts of all faults and warnings from the source: each, with typical values in it,
// fits two lines of a terminal, and avoids phrases that readers stumble over.
func TestErrorTextsAreShort(t *testing.T) {
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
					if n := len([]rune(formatted(text))); n > longestMessage {
						t.Errorf("%v: %d characters (at most %d): %s", set.Position(call.Pos()), n, longestMessage, text)
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

// formatted is a text in which typical values stand for the verbs.
func formatted(text string) string {
	return verb.ReplaceAllStringFunc(text, func(v string) string {
		switch v[len(v)-1] {
		case '%':
			return "%"
		case 'd', 'g':
			return "12345"
		case 'q':
			return `"a-name-of-usual-length"`
		}
		return "a-usual-name"
	})
}

// verb is a verb of a format.
var verb = regexp.MustCompile(`%[-+ #0-9.*]*[a-zA-Z%]`)

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
