package workload

import (
	"slices"
	"testing"
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
		if got, want := a.Beginning(tokens) == b.Beginning(tokens), tokens <= 40; got != want {
			t.Errorf("%d tokens of prompts that share 40 are alike: %v", tokens, got)
		}
		if got, want := a.Beginning(tokens) == c.Beginning(tokens), tokens <= 20; got != want {
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
		{"no content", Request{ID: 7, InputTokens: 10, OutputTokens: 4}, []Segment{{UniqueID(7), 10}, {^UniqueID(7), 4}}},
		{"content and more", Request{ID: 7, InputTokens: 60, OutputTokens: 4, Content: content, Session: 3, Turn: 1},
			[]Segment{{1, 30}, {2, 20}, {UniqueID(7), 10}, {AnswerID(3, 1), 4}}},
		{"prompt ends in the content", Request{ID: 7, InputTokens: 30, OutputTokens: 4, Content: content, Session: 3},
			[]Segment{{1, 30}, {AnswerID(3, 0), 4}}},
		{"prompt cuts the content", Request{ID: 7, InputTokens: 40, OutputTokens: 4, Content: content, Session: 3},
			[]Segment{{1, 30}, {2, 10}, {AnswerID(3, 0), 4}}},
	} {
		if got := c.r.Text(nil); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
