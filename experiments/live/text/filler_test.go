package text

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// testFiller checks that the tokenizer encodes outputs, and all their beginnings, as the tokens of the filler.
func testFiller(t *testing.T, tokens Tokenizer) {
	f, err := NewFiller(tokens, 7)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := NewFiller(tokens, 7)
	other, _ := NewFiller(tokens, 8)
	differ := 0
	for request := range int64(50) {
		ids, text := f.Output(request, 64)
		if same, _ := again.Output(request, 64); !slices.Equal(ids, same) {
			t.Fatalf("request %d has two outputs under one seed", request)
		}
		if _, x := other.Output(request, 64); x != text {
			differ++
		}
		whole := ""
		for k := range ids {
			_, piece := f.Token(request, k)
			whole += piece
			if got := tokens.Encode(whole); !slices.Equal(got, ids[:k+1]) || tokens.Count(whole) != k+1 {
				t.Fatalf("request %d: %q has tokens %v, want %v", request, whole, got, ids[:k+1])
			}
		}
		if whole != text || strings.TrimSpace(text) != text {
			t.Fatalf("request %d: pieces %q of the text %q", request, whole, text)
		}
	}
	if differ < 48 {
		t.Errorf("%d of 50 outputs depend on the seed", differ)
	}
}

func TestFillerEstimate(t *testing.T) { testFiller(t, Estimate{}) }

func TestSentences(t *testing.T) {
	for _, s := range sentences {
		if len(s) != 16 || s[0] != 'O' || s[15] != '.' || strings.Trim(s, "Ow,.") != "" {
			t.Errorf("%q is not a form of 16 tokens", s)
		}
	}
}

// TestFillerEnd: an output ends with the first token whose text completes a stop string.
func TestFillerEnd(t *testing.T) {
	f, err := NewFiller(Estimate{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		request := rapid.Int64Range(0, 1000).Draw(t, "request")
		n := rapid.IntRange(1, 60).Draw(t, "tokens")
		_, text := f.Output(request, n)
		from := rapid.IntRange(0, len(text)-1).Draw(t, "from")
		stop := text[from:rapid.IntRange(from+1, len(text)).Draw(t, "to")]
		at := strings.Index(text, stop)
		got := f.End(request, n, 0, []string{"\n", stop}, false)
		_, computed := f.Output(request, got.Tokens)
		_, before := f.Output(request, got.Tokens-1)
		if got.Stop != stop || got.Text != at || len(computed) < at+len(stop) || len(before) >= at+len(stop) {
			t.Fatalf("%q ends %q at %v of tokens %q", stop, text, got, computed)
		}
		if all := f.End(request, n, 0, []string{stop}, true); all.Text != at+len(stop) || all.Tokens != got.Tokens {
			t.Fatalf("with the stop string %v, without %v", all, got)
		}
		if whole := f.End(request, n, n, []string{stop}, false); whole != (Ending{n, len(text), ""}) {
			t.Fatalf("%v under a minimum of %d tokens", whole, n)
		}
	})
}
