package scenario

import (
	"encoding/json"
	"testing"
)

// TestResolvedPrecision: a precision without a number of runs has the largest one, also when the resolved scenario is
// read again. It was written as 1, which is refused.
func TestResolvedPrecision(t *testing.T) {
	for text, want := range map[string]int{
		"run: {precision: 40%}":                     MostReplications,
		"run: {precision: 40%, replications: null}": MostReplications,
		"run: {precision: 40%, replications: 7}":    7,
		"run: {replications: 3}":                    3,
		"run: {}":                                   1,
	} {
		s, err := Parse("test", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		u, err := s.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		written, err := json.Marshal(u.Scenario)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("test", written)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if s.Run.Replications != want || again.Run.Replications != want {
			t.Errorf("%s: %d runs, resolved and read again %d; want %d", text, s.Run.Replications, again.Run.Replications,
				want)
		}
	}
}
