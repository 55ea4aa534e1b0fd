package sched

import (
	"math"
	"slices"
	"testing"

	"clifftop/sim/clock"
)

// asked returns a waiting request that has not run.
func asked(id, arrival int64, prompt, answer int32) *Waiting {
	return &Waiting{
		Progress: Progress{Request: id, Prompt: prompt, MaxTokens: answer},
		Known:    prompt, TrueOutput: answer, Urgency: Urgency{Arrival: arrival, Request: id},
	}
}

// ranked returns the requests in the order in which they are scheduled.
func ranked(o Order, list ...*Waiting) []int64 {
	for _, w := range list {
		w.Urgency.Key = 0
		w.Urgency.Key = o.Key(w)
	}
	slices.SortFunc(list, func(a, b *Waiting) int {
		if a.Urgency.Less(b.Urgency) {
			return -1
		}
		return 1
	})
	var ids []int64
	for _, w := range list {
		ids = append(ids, w.Request)
	}
	return ids
}

// TestOrdersByHand ranks four requests that arrived one after the other: 0 long in long out, 1 long in short
// out, 2 short in long out, and 3, which has had 90 of its 100 output tokens and was preempted.
func TestOrdersByHand(t *testing.T) {
	const ms = int64(clock.Millisecond)
	a, b, c, d := asked(0, 0, 1000, 50), asked(1, 1*ms, 800, 5), asked(2, 2*ms, 10, 60), asked(3, 3*ms, 20, 100)
	a.Class, b.Priority, d.Priority = 1, 2, -1
	d.Generated, d.Known, d.Preempted = 90, 110, true
	answer, prompt, both := Size{PerOutput: 1}, Size{PerPrompt: 1}, Size{PerPrompt: 1, PerOutput: 20}
	due := EDF{Within: []clock.Duration{10 * clock.Millisecond, 500 * clock.Microsecond}}
	for _, test := range []struct {
		name  string
		order Order
		want  []int64
	}{
		{"priority", ByPriority{}, []int64{3, 0, 2, 1}},
		{"SJF by output", SJF{answer}, []int64{1, 0, 2, 3}},
		{"SJF by prompt", SJF{prompt}, []int64{2, 3, 1, 0}},
		{"SJF by both", SJF{both}, []int64{1, 2, 0, 3}}, // 900, 1210, 2000, 2020
		{"LJF by output", LJF{answer}, []int64{3, 2, 0, 1}},
		{"SRPT by output", SRPT{answer}, []int64{1, 3, 0, 2}},                            // 5, 10, 50, 60 left
		{"SRPT by both", SRPT{both}, []int64{3, 1, 2, 0}},                                // 110+200, 900, 1210, 2000
		{"EDF", due, []int64{0, 1, 2, 3}},                                                // due at 0.5, 11, 12, 13 ms
		{"EDF with one bound", EDF{Otherwise: 1}, []int64{0, 1, 2, 3}},                   // by arrival
		{"least slack", LeastSlack{due, answer, clock.Millisecond}, []int64{3, 0, 2, 1}}, // from -87, -49.5, -48, 6 ms
		{"SJF aged slowly", Aged{SJF{answer}, clock.Hour}, []int64{1, 0, 2, 3}},          // as SJF
		{"SJF aged fast", Aged{SJF{answer}, clock.Microsecond}, []int64{0, 1, 2, 3}},
		{"priority aged", Aged{ByPriority{}, clock.Millisecond}, []int64{0, 2, 3, 1}}, // 0, 2, 2, 3: 2 arrived before 3
	} {
		if got := ranked(test.order, a, b, c, d); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// TestAgedSaturates: ageing does not overflow with large keys.
func TestAgedSaturates(t *testing.T) {
	late := int64(clock.MaxRun)
	for _, o := range []Aged{{SJF{Size{PerPrompt: 1_000_000}}, clock.Hour},
		{LJF{Size{PerPrompt: 1_000_000}}, clock.Hour}} {
		small, large := o.Key(asked(0, late, 1, 1)), o.Key(asked(1, late, math.MaxInt32, 1))
		if _, longest := o.Order.(LJF); longest != (large < small) {
			t.Errorf("%T: keys %d of a short and %d of a long prompt", o.Order, small, large)
		}
	}
}

// TestPrediction: a prediction is the true length times a lognormal factor of the configured deviation. It depends on
// the seed and the request alone.
func TestPrediction(t *testing.T) {
	z := Size{PerOutput: 1, Error: 0.7, Seed: 3}
	const n, truth = 20_000, 100_000
	var sum, squares float64
	for id := range int64(n) {
		w := asked(id, 0, 1, truth)
		first := z.PredictedOutput(w)
		x := math.Log(float64(first) / truth)
		sum += x
		squares += x * x
		if again := z.PredictedOutput(w); again != first {
			t.Fatalf("predicted %d, then %d", first, again)
		}
	}
	mean := sum / n
	sigma := math.Sqrt(squares/n - mean*mean)
	// Four standard errors: 0.7/√n of the mean, 0.7/√2n of the deviation.
	if math.Abs(mean) > 0.02 || math.Abs(sigma-0.7) > 0.014 {
		t.Errorf("log of the factor: mean %.4f, deviation %.4f; want 0 and 0.7", mean, sigma)
	}
	other := Size{PerOutput: 1, Error: 0.7, Seed: 4}
	if w := asked(1, 0, 1, truth); z.PredictedOutput(w) == other.PredictedOutput(w) {
		t.Error("two seeds predict the same")
	}
	if w := asked(1, 0, 1, 1); z.PredictedOutput(w) < 1 ||
		(Size{PerOutput: 1, Error: 10}).PredictedOutput(asked(2, 0, 1, math.MaxInt32)) < 1 {
		t.Error("an output is predicted to be shorter than a token")
	}
}

func TestOrdersValidate(t *testing.T) {
	for name, err := range map[string]error{
		"weights of 0":     Size{}.Validate(),
		"negative weight":  Size{PerPrompt: -1, PerOutput: 1}.Validate(),
		"huge weight":      Size{PerPrompt: 1 << 40}.Validate(),
		"error not number": Size{PerOutput: 1, Error: math.NaN()}.Validate(),
		"past deadline":    EDF{Within: []clock.Duration{-1}}.Validate(),
		"slack per unit":   LeastSlack{Size: Size{PerOutput: 1}, PerUnit: -1}.Validate(),
		"slack of nothing": LeastSlack{}.Validate(),
		"ageing nothing":   Aged{Per: clock.Second}.Validate(),
		"ageing at once":   Aged{Order: ByPriority{}}.Validate(),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, err := range []error{
		Size{PerPrompt: 1}.Validate(), EDF{}.Validate(), LeastSlack{Size: Size{PerOutput: 1}}.Validate(),
		Aged{Order: ByPriority{}, Per: clock.Second}.Validate(),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}
