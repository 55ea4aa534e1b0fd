package workload

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestBeginning(t *testing.T) {
	content := func(ids ...uint64) *Content {
		c := &Content{}
		for _, id := range ids {
			c.Segments = append(c.Segments, Segment{ID: id, Tokens: 20})
		}
		return c
	}
	a := Request{ID: 1, InputTokens: 50, OutputTokens: 4, Content: content(1, 2)}
	b := Request{ID: 2, InputTokens: 60, OutputTokens: 4, Content: content(1, 2, 3)}
	c := Request{ID: 3, InputTokens: 50, OutputTokens: 4, Content: content(1, 3)}
	for _, tokens := range []int32{1, 20, 21, 40, 41} {
		if got, want := a.PrefixHash(tokens) == b.PrefixHash(tokens), tokens <= 40; got != want {
			t.Errorf("%d tokens of prompts that share 40 are alike: %v", tokens, got)
		}
		if got, want := a.PrefixHash(tokens) == c.PrefixHash(tokens), tokens <= 20; got != want {
			t.Errorf("%d tokens of prompts that share 20 are alike: %v", tokens, got)
		}
	}
}

func TestText(t *testing.T) {
	content := &Content{Segments: []Segment{{ID: 1, Tokens: 30}, {ID: 2, Tokens: 20}}}
	for _, c := range []struct {
		name string
		r    Request
		want []Segment
	}{
		{"no content", Request{ID: 7, InputTokens: 10, OutputTokens: 4},
			[]Segment{{UniqueID(7), 10}, {^UniqueID(7), 4}}},
		{"content and more", Request{ID: 7, InputTokens: 60, OutputTokens: 4, Content: content, Session: 3, Turn: 1},
			[]Segment{{1, 30}, {2, 20}, {UniqueID(7), 10}, {OutputID(3, 1), 4}}},
		{"prompt ends in the content", Request{ID: 7, InputTokens: 30, OutputTokens: 4, Content: content, Session: 3},
			[]Segment{{1, 30}, {OutputID(3, 0), 4}}},
		{"prompt cuts the content", Request{ID: 7, InputTokens: 40, OutputTokens: 4, Content: content, Session: 3},
			[]Segment{{1, 30}, {2, 10}, {OutputID(3, 0), 4}}},
	} {
		if got := c.r.Text(nil); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestBlockKeysTellTexts: blocks of two requests have the same key if and only if all tokens up to their ends are
// equal.
func TestBlockKeysTellTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 4
		type token struct {
			segment uint64
			at      int32
		}
		seen := map[uint64]string{} // the texts of keys
		keys := map[string]uint64{}
		for id := range int64(rapid.IntRange(1, 6).Draw(t, "requests")) {
			r := Request{ID: id, Session: 1, Turn: rapid.Int32Range(0, 2).Draw(t, "turn"), Content: &Content{}}
			for range rapid.IntRange(0, 4).Draw(t, "segments") {
				r.Content.Segments = append(r.Content.Segments, Segment{
					ID: rapid.SampledFrom([]uint64{1, 2, OutputID(1, 0), OutputID(1, 1)}).Draw(t, "segment"),
					Tokens: rapid.SampledFrom([]int32{0, 1, 3, 4, 5, 8, 9, size * BlockRun, size*BlockRun + 1,
						700}).Draw(t, "tokens"),
				})
			}
			r.InputTokens = rapid.Int32Range(1, 1500).Draw(t, "prompt")
			r.OutputTokens = rapid.Int32Range(0, 600).Draw(t, "answer")
			var text []token
			for _, s := range r.Text(nil) {
				for at := range s.Tokens {
					text = append(text, token{s.ID, at})
				}
			}
			walk, several := NewBlockKeys(&r, size), NewBlockKeys(&r, size)
			var list []uint64
			prefix := ""
			for end := size; end <= len(text); end += size {
				prefix = fmt.Sprint(prefix, text[end-size:end])
				key, private := walk.Next()
				if k := end/size - 1; k == len(list) {
					first, blocks, all := several.NextRun(rapid.Int32Range(1, 100).Draw(t, "keys"))
					for i := range uint64(blocks) {
						list = append(list, first+i)
					}
					if all != private {
						t.Fatalf("request %d: block %d is private: %v, of several: %v", id, k, private, all)
					}
				} else if k < len(list) && list[k] != key {
					t.Fatalf("request %d: block %d has key %x, of several %x", id, k, key, list[k])
				}
				if old, ok := seen[key]; ok && old != prefix {
					t.Fatalf("request %d: key %x of two texts:\n%s\n%s", id, key, old, prefix)
				}
				if old, ok := keys[prefix]; ok && old != key {
					t.Fatalf("request %d: keys %x and %x of the text %s", id, old, key, prefix)
				}
				seen[key], keys[prefix] = prefix, key
			}
		}
	})
}

// TestBlockKeysRun: neighbouring blocks of a segment have consecutive keys. A run begins at a multiple of its length.
func TestBlockKeysRun(t *testing.T) {
	r := Request{InputTokens: 16 * 150}
	walk := NewBlockKeys(&r, 16)
	var first uint64
	for i := range uint64(150) {
		key, _ := walk.Next()
		if i%BlockRun == 0 {
			if key%BlockRun != 0 || first == key {
				t.Fatalf("block %d has key %x after the run of %x", i, key, first)
			}
			first = key
		}
		if key != first+i%BlockRun {
			t.Fatalf("block %d has key %x in the run of %x", i, key, first)
		}
	}
}
