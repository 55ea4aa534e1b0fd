package yamldoc

import (
	"strings"
	"testing"
)

func TestDocumentsKeepTheLinesOfTheFile(t *testing.T) {
	docs, err := ParseAll("m.yaml", []byte("# head\n---\na: 1\n--- # two\n\nb:\n  c: [x]\n---\n\n---\nd: 0644\n"))
	if err != nil || len(docs) != 3 {
		t.Fatal(docs, err)
	}
	for i, want := range []int{3, 7, 11} {
		n := docs[i].Fields[0].Value
		if n.At.Line != want || n.At.Origin != "m.yaml" {
			t.Errorf("document %d: %v, want line %d", i, n.At, want)
		}
	}
}

func TestAliasesAndMergeKeysStandForTheirValues(t *testing.T) {
	docs, err := ParseAll("c.yaml", []byte(`x: &base {image: a, replicas: 1}
y: &more
  env: [E]
s:
  <<: [*base, *more]
  replicas: 2
t: *base
u: !!str 8
v: !reset 9
`))
	if err != nil {
		t.Fatal(err)
	}
	s := docs[0].Get("s")
	if got := s.Get("replicas").Text + s.Get("image").Text + s.Get("env").Items[0].Text; got != "2aE" {
		t.Errorf("%q", got)
	}
	if got := docs[0].Lookup("t", "image").Text; got != "a" {
		t.Errorf("%q", got)
	}
	if docs[0].Get("u").Kind != Text || docs[0].Get("v").Kind != Number {
		t.Error(docs[0].Get("u"), docs[0].Get("v"))
	}
}

func TestFaultsOfDocumentsNameTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\n---\nb: *none\n":       "m.yaml:3:4: there is no anchor &none before this",
		"a: 1\n---\nb: [1\nc: 2\n":    "m.yaml:4:1: this is not valid YAML",
		"a: 1\n---\n---\n\nb: \"x\n":  "m.yaml:5:",
		"a: 1\n---\nb: " + nested(33): "values nest more than 32 deep",
	} {
		if _, err := ParseAll("m.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A text whose aliases multiply: 10 to the power of 8 values in a few lines.
func TestAliasesCannotMultiplyWithoutLimit(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n")
	for i := 1; i < 8; i++ {
		d, e := string(rune('0'+i)), string(rune('0'+i-1))
		b.WriteString("a" + d + ": &a" + d + " [" + strings.TrimSuffix(strings.Repeat("*a"+e+", ", 10), ", ") + "]\n")
	}
	if _, err := ParseAll("bomb.yaml", []byte(b.String())); err == nil || !strings.Contains(err.Error(), "200000 values") {
		t.Error(err)
	}
}

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

func FuzzParseAll(f *testing.F) {
	f.Add([]byte("a: &x 1\n---\nb: {<<: {c: 1}}\n"))
	f.Add([]byte("&a [*a]"))
	f.Add([]byte("<<: *a\n---\n--- !!str"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 1<<14 {
			_, _ = ParseAll("f.yaml", data)
		}
	})
}
