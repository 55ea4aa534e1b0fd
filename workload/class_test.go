package workload

import (
	"math"
	"strings"
	"testing"

	"clifftop/sim/clock"
)

// threeClasses returns a mix of single requests, conversations of four turns, and prompts that repeat.
func threeClasses() Spec {
	fixed := func(n int32) LengthsSpec { return LengthsSpec{Distribution: "fixed", Value: n} }
	return Spec{
		Arrivals: []Phase{{Process: "poisson", Rate: 5}},
		Requests: 20000,
		Classes: []ClassSpec{
			{Name: "single", Weight: 2, Input: LengthsSpec{Distribution: "lognormal", Mean: 300, CV: 1},
				Output: fixed(10), Priority: 3},
			{Name: "talk", Weight: 1, Output: fixed(20), Sessions: &SessionSpec{
				Turns: fixed(4), SystemPrompt: SystemPrompt{Tokens: []int32{100}}, FirstPrompt: fixed(50),
				LaterUserTokens: fixed(5),
				TurnGap:         Delay{Mean: 10 * clock.Second},
			}},
			{Name: "lookup", Weight: 1, Input: fixed(200), Output: fixed(30),
				Prefix: PrefixSpec{Groups: 2, PromptsPerGroup: 1, SharedTokens: 90}},
		},
	}
}

func shares(list []Request, n int) []float64 {
	s := make([]float64, n)
	for _, r := range list {
		s[r.Class] += 1 / float64(len(list))
	}
	return s
}

// TestClassShares: weights are shares of requests, of starts, or of users.
func TestClassShares(t *testing.T) {
	s := threeClasses()
	check := func(what string, list []Request, want ...float64) {
		t.Helper()
		for i, x := range shares(list, 3) {
			if math.Abs(x-want[i]) > 0.02 {
				t.Errorf("%s: class %d has %v, want %v", what, i, x, want[i])
			}
		}
	}
	list := drain(mustNew(t, s, 7), 1e6, 0)
	check("requests", list, 0.5, 0.25, 0.25)
	if rate := float64(len(list)) / list[len(list)-1].Arrival.Seconds(); math.Abs(rate-5) > 0.15 {
		t.Errorf("%v requests per second, want 5", rate)
	}
	for _, r := range list[:1000] {
		if (r.Session != 0) != (r.Class == 1) || (r.Priority == 3) != (r.Class == 0) ||
			r.OutputTokens != 10*int32(r.Class+1) {
			t.Fatalf("%+v", r)
		}
	}
	s.ClassWeights = OfStarts
	list = drain(mustNew(t, s, 7), 1e6, 0)
	check("starts", list, 2/7., 4/7., 1/7.)
	if rate := float64(len(list)) / list[len(list)-1].Arrival.Seconds(); math.Abs(rate-5) > 0.15 {
		t.Errorf("%v requests per second, want 5", rate)
	}
	s.ClassWeights, s.Requests = "", 4000
	s.Arrivals = []Phase{{Process: "closed", Users: 100, ThinkTime: Delay{Mean: 30 * clock.Second}}}
	s.Classes[1].Sessions.TurnGap, s.Classes[1].Sessions.ThinkTime = Delay{}, Delay{Mean: 30 * clock.Second}
	check("users", drain(mustNew(t, s, 7), 1e6, 0), 0.5, 0.25, 0.25)
	in, out, err := threeClasses().MeanTokens()
	if err != nil || math.Abs(out-17.5) > 0.1 || math.Abs(in-(0.5*300+0.25*(150+1.5*25)+0.25*200)) > 5 {
		t.Errorf("mean tokens %v and %v, %v", in, out, err)
	}
}

// TestClassesAreApart: a class's requests stay as they are when another changes, and share no text with it.
func TestClassesAreApart(t *testing.T) {
	of := func(s Spec, class uint16) (list []Request) {
		for _, r := range drain(mustNew(t, s, 7), 1000, 0) {
			if r.Class == class {
				list = append(list, r)
			}
		}
		return list
	}
	s := threeClasses()
	before := of(s, 0)
	s.Classes[1].Output.Value = 77
	s.Classes = append(s.Classes, ClassSpec{Name: "another", Weight: 3, Input: s.Classes[0].Input,
		Output: s.Classes[0].Output})
	for i, r := range of(s, 0) {
		if r.InputTokens != before[i].InputTokens {
			t.Fatalf("request %d of the class has %d tokens, had %d", i, r.InputTokens, before[i].InputTokens)
		}
	}
	s = threeClasses()
	s.Classes[0] = s.Classes[2]
	s.Classes[0].Name = "other"
	a, b := of(s, 0)[0], of(s, 2)[0]
	if a.Content.Segments[0].ID == b.Content.Segments[0].ID {
		t.Error("two classes share a prefix")
	}
}

// TestRareClassChangesNoOther: a class that hardly ever sends leaves the conversations of the other where they are,
// those that began before the run included.
func TestRareClassChangesNoOther(t *testing.T) {
	talk := threeClasses().Classes[1]
	talk.Sessions.TurnGap = Delay{Mean: clock.Second, Distribution: "exponential"}
	s := Spec{Arrivals: []Phase{{Process: "poisson", Rate: 5}}, Requests: 500, Classes: []ClassSpec{talk}}
	alone := drain(mustNew(t, s, 7), 500, 0)
	rare := talk
	rare.Name, rare.Weight = "rare", 1e-9
	s.Classes = []ClassSpec{rare, talk}
	for i, r := range drain(mustNew(t, s, 7), 500, 0) {
		a := alone[i]
		if d := r.Arrival.Sub(a.Arrival).Seconds(); math.Abs(d) > 1e-6 || r.Turn != a.Turn || r.Class != 1 {
			t.Fatalf("request %d: %+v beside a rare class, %+v without", i, r, a)
		}
	}
}

func TestClassFaults(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		`workload.classes.1.name: "single" is already the name of another class`: func(s *Spec) {
			s.Classes[1].Name = "single"
		},
		`workload.classes.0.name: is missing`: func(s *Spec) {
			s.Classes[0].Name = ""
		},
		`workload.classes: all weights are 0`: func(s *Spec) {
			for i := range s.Classes {
				s.Classes[i].Weight = 0
			}
		},
		`workload.classes.0.weight: -1 is not allowed`: func(s *Spec) {
			s.Classes[0].Weight = -1
		},
		`workload.classes.2.prefix.groups: 0 is not allowed`: func(s *Spec) {
			s.Classes[2].Prefix.Groups = 0
		},
		`workload.classes.1.sessions.turns.value: 0 is not allowed`: func(s *Spec) {
			s.Classes[1].Sessions.Turns.Value = 0
		},
		`workload.classes.1.sessions.turns: is missing`: func(s *Spec) {
			s.Classes[1].Sessions.Turns = LengthsSpec{}
		},
		`workload.classes.1.sessions.edited_history: 1.5 is not allowed`: func(s *Spec) {
			s.Classes[1].Sessions.EditedHistory = 1.5
		},
		`workload.classes.1.sessions.turn_gap.mean: -1s is not allowed`: func(s *Spec) {
			s.Classes[1].Sessions.TurnGap.Mean = -clock.Second
		},
		`workload.classes.1.sessions.turn_gap: cannot be combined with think_time`: func(s *Spec) {
			s.Classes[1].Sessions.ThinkTime.Mean = clock.Second
		},
		`workload.classes.1.sessions.system_prompt.weights: all weights are 0`: func(s *Spec) {
			s.Classes[1].Sessions.SystemPrompt.Weights = []float64{0, 0}
		},
		`workload.classes.1.sessions.system_prompt.tokens: 2 lengths for 3 groups`: func(s *Spec) {
			s.Classes[1].Sessions.SystemPrompt = SystemPrompt{Tokens: []int32{1, 2}, Groups: 3}
		},
		`workload.classes.1.sessions: cannot be combined with process all-at-once`: func(s *Spec) {
			s.Arrivals = []Phase{{Process: "all-at-once"}}
		},
		`workload.class_weights: "users" is not known`: func(s *Spec) {
			s.ClassWeights = "users"
		},
		`workload.arrivals: users and rate are both set`: func(s *Spec) {
			s.Arrivals = []Phase{{Process: "closed", Users: 3, Rate: 3}}
		},
	} {
		s := threeClasses()
		change(&s)
		if _, err := New(s, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
