package workload

import (
	"testing"

	"clifftop/sim/clock"
)

// TestMaxTokens: the limit of the clients cuts longer outputs and leaves the rest of the traffic as it was.
func TestMaxTokens(t *testing.T) {
	lengths := LengthsSpec{Distribution: "lognormal", Mean: 200, CV: 1.5}
	given := LengthsSpec{Distribution: "given-input", Edges: []int32{1, 100, 1000}, P: []float64{0, 1},
		Rows: [][]float64{{1, 500}, {20, 2000}}}
	for name, s := range map[string]Spec{
		"single":      {Input: lengths, Output: lengths},
		"given input": {Input: lengths, Output: given},
		"classes": {Classes: []ClassSpec{{Name: "a", Weight: 1, Input: lengths, Output: lengths},
			{Name: "b", Weight: 2, Input: lengths, Output: given}}},
	} {
		s.Arrivals = []Phase{{Process: "poisson", Rate: 5}}
		s.Requests = 500
		free, limited := s, s
		limited.MaxTokens = 60
		all, cut := requestsOf(t, free), requestsOf(t, limited)
		shorter := 0
		for i := range all {
			if want := min(all[i].OutputTokens, 60); cut[i].OutputTokens != want ||
				cut[i].InputTokens != all[i].InputTokens || cut[i].Arrival != all[i].Arrival {
				t.Fatalf("%s: request %d is %+v (want an output of %d tokens of %+v)", name, i, cut[i], want, all[i])
			}
			if all[i].OutputTokens > 60 {
				shorter++
			}
		}
		if shorter < 50 {
			t.Errorf("%s: only %d outputs were cut", name, shorter)
		}
		_, mean, err := limited.MeanTokens()
		if err != nil || mean > 60 {
			t.Errorf("%s: a mean of %v tokens, %v", name, mean, err)
		}
	}
	sessions := Spec{Output: lengths, Sessions: &SessionSpec{
		Turns:       LengthsSpec{Distribution: "fixed", Value: 4},
		FirstPrompt: LengthsSpec{Distribution: "fixed", Value: 20}, LaterUserTokens: LengthsSpec{Distribution: "fixed", Value: 20},
		ThinkTime: Delay{Mean: clock.Second},
	}, Arrivals: []Phase{{Process: "closed", Users: 3}}, Requests: 100, MaxTokens: 60}
	for _, r := range requestsOf(t, sessions) {
		if most := 20 + r.Turn*80; r.OutputTokens > 60 || r.InputTokens > most {
			t.Fatalf("turn %d has %d + %d tokens (want at most %d + 60: its history has cut outputs)", r.Turn,
				r.InputTokens, r.OutputTokens, most)
		}
	}
}

// TestShortPrompts finds shared prefixes that are longer than prompts.
func TestShortPrompts(t *testing.T) {
	at := func(shared int32) []ShortPrompts {
		return Spec{Input: LengthsSpec{Distribution: "uniform", Min: 1, Max: 100},
			Prefix: PrefixSpec{Groups: 1, PromptsPerGroup: 1, SharedTokens: shared}}.ShortPrompts()
	}
	if list := at(50); len(list) != 1 || list[0].Share < 0.489 || list[0].Share > 0.491 ||
		list[0].Key != "workload.prefix.shared_tokens" {
		t.Errorf("50 shared tokens: %+v (want 49 %% of the prompts)", list)
	}
	if list := at(1); list != nil {
		t.Errorf("1 shared token: %+v", list)
	}
}

// requestsOf returns all requests of a source whose outputs take no time.
func requestsOf(t *testing.T, s Spec) (list []Request) {
	t.Helper()
	src, err := New(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, ok := src.Peek(); !ok {
			return list
		}
		r := src.Next()
		list = append(list, r)
		src.Done(&r, End{At: r.Arrival, How: Answered})
	}
}
