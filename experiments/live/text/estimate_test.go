package text

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// split returns the pieces of a text.
func split(s string) (out []string) {
	for p := (pieces{text: s}); p.next(); {
		out = append(out, s[p.start:p.end])
	}
	return out
}

func TestEstimatePieces(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"Hello, world! It's here.", "Hello|,| world|!| It|'s| here|."},
		{"internationalization internationalization", "inter|nat|ion|ali|zat|ion| internati|ona|liz|ati|on"},
		{"fooBarBaz HTTPServer getURL(x)", "foo|Bar|Baz| HTTPServe|r| get|URL|(x|)"},
		{"a+1==12345 67", "a|+|1|==|123|45| |67"},
		{"if x:\n\n\treturn  y\n", "if| x|:\n\n|\tretu|rn| | y|\n"},
		{"    x\r\n\r\n  ", "   | x|\r\n\r\n|  "},
		{"你好世界，再见", "你好|世|界|，|再见"},
		{"Grüße zur Straßenverkehrsordnung", "Grü|ße| zur| Straßenv|erk|ehr|sor|dnu|ng"},
		{`{"id": [1, "--------------------"]}`, `{"|id|":| [|1|,| "--|----------------|--"|]}`},
		{"a\xff\xfe b\U0001f600\U0001f600", "a|\xff|\xfe| b|\U0001f600|\U0001f600"},
		{"", ""},
	} {
		if got := strings.Join(split(c.text), "|"); got != c.want {
			t.Errorf("%q: pieces %q, want %q", c.text, got, c.want)
		}
	}
}

// TestEstimateStablePrefix: a text that ends where a word, a number, punctuation or white space of a longer one ends
// has a prefix of its tokens.
func TestEstimateStablePrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text string
		var ends []int
		for range rapid.IntRange(1, 12).Draw(t, "words") {
			text += rapid.SampledFrom([]string{" word", " Another", " internationally", ".", " 你好吗", " größer", "\n\n",
				" {", " --", " 😀"}).Draw(t, "word")
			ends = append(ends, len(text))
		}
		whole := split(text)
		at := ends[rapid.IntRange(0, len(ends)-1).Draw(t, "end")]
		a, b := text[:at], text[at:]
		if n := len(split(a)); n > len(whole) || strings.Join(whole[:n], "") != a {
			return // the border joins two words to one piece, such as a line break after punctuation
		}
		if got := append(Estimate{}.Encode(a), Estimate{}.Encode(b)...); !slices.Equal(got, Estimate{}.Encode(text)) {
			t.Fatalf("%q and %q have other tokens apart: %q, %q, whole %q", a, b, split(a), split(b), whole)
		}
	})
}

// FuzzEstimate: the pieces are not empty, do not cut characters, and join to the text.
func FuzzEstimate(f *testing.F) {
	for _, s := range []string{"Hello, world", "a\xff\xc3", "  \n x", "你好 Größe 12345", "\u3000\u3000x", "́a", " \xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at := 0
		for p := (pieces{text: s}); p.next(); {
			if p.start != at || p.end <= at || p.end-p.start > 80 {
				t.Fatalf("%q: a piece from %d to %d after %d", s, p.start, p.end, at)
			}
			if at = p.end; utf8.ValidString(s) && !utf8.ValidString(s[p.start:at]) {
				t.Fatalf("%q: the piece %q cuts a character", s, s[p.start:at])
			}
		}
		if n := (Estimate{}).Count(s); at != len(s) || n != len(Estimate{}.Encode(s)) {
			t.Fatalf("%q: %d tokens counted, pieces up to %d", s, n, at)
		}
	})
}

// source returns the Go source of this package: real text for tests.
func source(t testing.TB) string {
	_, file, _, _ := runtime.Caller(0)
	names, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return string(all)
}

func BenchmarkEstimate(b *testing.B) {
	s := source(b)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		Estimate{}.Encode(s)
	}
}
