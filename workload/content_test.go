package workload

import (
	"slices"
	"testing"
)

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
