package workload

import (
	"errors"
	"math"
	"strings"
	"testing"

	"clifftop/sim/clock"
)

func mustNew(t *testing.T, s Spec, seed uint64) Source {
	t.Helper()
	src, err := New(s, seed)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// drain takes all requests, up to n, each completed service after its arrival.
func drain(src Source, n int, service clock.Duration) []Request {
	var list []Request
	for len(list) < n {
		at, ok := src.Peek()
		if !ok {
			break
		}
		r := src.Next()
		if r.Arrival != at {
			panic("Peek and Next disagree")
		}
		list = append(list, r)
		src.Done(&r, End{At: at.Add(service)})
	}
	return list
}

func TestOpenLoop(t *testing.T) {
	s := chat()
	s.Requests = 1000
	a, b := drain(mustNew(t, s, 5), 5000, 0), drain(mustNew(t, s, 5), 5000, clock.Second)
	if len(a) != 1000 {
		t.Fatalf("%d requests, want 1000", len(a))
	}
	for i := range a {
		if a[i] != b[i] || a[i].ID != int64(i) {
			t.Fatalf("request %d: %+v and %+v", i, a[i], b[i])
		}
	}
	s.Requests, s.Duration = 0, 2*clock.Second
	for _, r := range drain(mustNew(t, s, 5), 5000, 0) {
		if r.Arrival >= clock.Time(2*clock.Second) {
			t.Fatalf("arrival at %v after the end", r.Arrival)
		}
	}
}

// TestCommonRandomNumbers: a change of one part of the traffic does not change the others.
func TestCommonRandomNumbers(t *testing.T) {
	s := chat()
	base := drain(mustNew(t, s, 5), 500, 0)
	s.Output = LengthsSpec{Distribution: "gamma", Mean: 20, CV: 2} // rejection: a variable number of draws
	s.Arrivals = []Phase{{Process: "gamma", Rate: 3, CV: 3}}
	for i, r := range drain(mustNew(t, s, 5), 500, 0) {
		if r.InputTokens != base[i].InputTokens {
			t.Fatalf("request %d has %d input tokens, had %d", i, r.InputTokens, base[i].InputTokens)
		}
	}
	if other := drain(mustNew(t, chat(), 6), 500, 0); other[3].InputTokens == base[3].InputTokens &&
		other[4].InputTokens == base[4].InputTokens {
		t.Error("another seed gives the same requests")
	}
}

func TestStages(t *testing.T) {
	s := chat()
	s.Arrivals = []Phase{
		{Name: "warm", Duration: 10 * clock.Second, Process: "poisson", Rate: 5},
		{Duration: 20 * clock.Second, Process: "constant", Rate: 50},
		{Name: "tail", Process: "poisson", Rate: 1},
	}
	s.Requests = 1100
	w := s.Windows()
	if w[1].Name != "phase 2" || w[1].Start != clock.Time(10*clock.Second) || w[1].End != clock.Time(30*clock.Second) ||
		w[2].End != clock.Never {
		t.Errorf("windows %+v", w)
	}
	var n [3]int
	for _, r := range drain(mustNew(t, s, 1), 2000, 0) {
		for i := range w {
			if r.Arrival >= w[i].Start && r.Arrival < w[i].End {
				n[i]++
			}
		}
	}
	if n[0] < 30 || n[0] > 70 || n[1] != 1000 || n[0]+n[1]+n[2] != 1100 {
		t.Errorf("%v requests in the stages", n)
	}
	if r := s.Rate(); r != 1 {
		t.Errorf("rate %v, want that of the endless stage", r)
	}
	s.Arrivals = s.Arrivals[:2]
	if r := s.Rate(); math.Abs(r-35) > 1e-12 {
		t.Errorf("rate %v, want 35", r)
	}
	faster, err := s.WithRate(70)
	if err != nil || math.Abs(faster.Rate()-70) > 1e-9 || faster.Arrivals[0].Rate != 10 || s.Arrivals[0].Rate != 5 {
		t.Errorf("WithRate: %v, %+v", err, faster.Arrivals)
	}
}

// TestClosedLoop: the k-th request of a user does not depend on the speed of the service.
func TestClosedLoop(t *testing.T) {
	s := chat()
	s.Arrivals = []Phase{{Process: "closed", Users: 7,
		ThinkTime: Delay{Distribution: "exponential", Mean: 3 * clock.Second}, Ramp: 14 * clock.Second}}
	s.Prefix = PrefixSpec{Groups: 2, PromptsPerGroup: 3, SharedTokens: 50}
	type key struct {
		user int32
		k    int
	}
	collect := func(service clock.Duration) map[key]Request {
		m, sent := map[key]Request{}, map[int32]int{}
		last := clock.Time(0)
		for i, r := range drain(mustNew(t, s, 5), 700, service) {
			if r.Arrival < last || r.ID != int64(i) {
				t.Fatalf("request %d at %v after %v", r.ID, r.Arrival, last)
			}
			last = r.Arrival
			m[key{r.User, sent[r.User]}] = r
			sent[r.User]++
		}
		return m
	}
	slow, quick := collect(20*clock.Second), collect(clock.Millisecond)
	for u := range int32(7) {
		if at := slow[key{u, 0}].Arrival; at != clock.Time(u)*clock.Time(2*clock.Second) {
			t.Errorf("user %d begins at %v", u, at)
		}
		for k := range 40 {
			a, b := slow[key{u, k}], quick[key{u, k}]
			if a.InputTokens != b.InputTokens || a.OutputTokens != b.OutputTokens ||
				a.Content.Segments[0] != b.Content.Segments[0] {
				t.Fatalf("request %d of user %d: %+v and %+v", k, u, a, b)
			}
			if k > 0 {
				thinkA := a.Arrival.Sub(slow[key{u, k - 1}].Arrival) - 20*clock.Second
				thinkB := b.Arrival.Sub(quick[key{u, k - 1}].Arrival) - clock.Millisecond
				if thinkA != thinkB {
					t.Fatalf("think time %v and %v", thinkA, thinkB)
				}
			}
		}
	}
}

func TestClosedLoopWaits(t *testing.T) {
	s := chat()
	s.Arrivals = []Phase{{Process: "closed", Users: 2}}
	s.Requests = 3
	src := mustNew(t, s, 1)
	a, b := src.Next(), src.Next()
	if _, ok := src.Peek(); ok || a.User != 0 || b.User != 1 {
		t.Fatal("a user sends while it waits")
	}
	src.Done(&b, End{At: 5})
	if at, ok := src.Peek(); !ok || at != 5 {
		t.Fatalf("next at %v, %v", at, ok)
	}
	src.Done(&a, End{At: 4})
	if c := src.Next(); c.User != 0 || c.Arrival != 4 {
		t.Fatalf("next is %+v", c)
	}
	if _, ok := src.Peek(); ok {
		t.Fatal("more requests than the limit")
	}
}

func TestAllAtOnce(t *testing.T) {
	s := chat()
	s.Arrivals = []Phase{{Process: "all-at-once"}}
	if _, err := New(s, 1); err == nil ||
		err.Error() != "run.requests: is missing (want the number of requests that arrive at once)" {
		t.Errorf("error %v", err)
	}
	s.Requests = 50
	list := drain(mustNew(t, s, 1), 100, 0)
	if len(list) != 50 || list[49].Arrival != 0 {
		t.Errorf("%d requests", len(list))
	}
}

// TestPrefix: the prompts repeat in a cycle, keep their length, and share the tokens of their group.
func TestPrefix(t *testing.T) {
	s := chat()
	s.Input = LengthsSpec{Distribution: "uniform", Min: 40, Max: 400}
	s.Prefix = PrefixSpec{Groups: 3, PromptsPerGroup: 4, SharedTokens: 100}
	list := drain(mustNew(t, s, 2), 60, 0)
	s.Prefix = PrefixSpec{}
	plain := drain(mustNew(t, s, 2), 60, 0)
	for i, r := range list {
		j := i % 12
		if r.InputTokens != plain[j].InputTokens {
			t.Fatalf("request %d has %d tokens, prompt %d was drawn with %d", i, r.InputTokens, j, plain[j].InputTokens)
		}
		if r.Content != list[j].Content || r.Content.Tokens() != int64(r.InputTokens) {
			t.Fatalf("content of request %d: %+v", i, r.Content)
		}
		if g := r.Content.Segments[0]; g.Tokens != min(100, r.InputTokens) ||
			(g.ID == list[0].Content.Segments[0].ID) != (j/4 == 0) {
			t.Fatalf("request %d leads with %+v", i, g)
		}
		if r.OutputTokens != plain[i].OutputTokens {
			t.Fatalf("request %d: prompts changed output lengths", i)
		}
	}
	src := mustNew(t, Spec{Arrivals: s.Arrivals, Input: s.Input, Output: s.Output,
		Prefix: PrefixSpec{Groups: 3, PromptsPerGroup: 4}}, 2)
	if n := testing.AllocsPerRun(1000, func() { src.Next() }); n != 0 {
		t.Errorf("%v allocations per request", n)
	}
}

// TestPrefixByUser: the prompts of one user share a prefix and differ after it. Prompts of other users do not share it.
func TestPrefixByUser(t *testing.T) {
	s := chat()
	s.Arrivals = []Phase{{Process: "closed", Users: 3}}
	s.Input = LengthsSpec{Distribution: "uniform", Min: 40, Max: 400}
	plain := drain(mustNew(t, s, 2), 60, clock.Second)
	s.Prefix = PrefixSpec{By: "user", SharedTokens: 160}
	list := drain(mustNew(t, s, 2), 60, clock.Second)
	keys := func(r *Request) (list []uint64) {
		k := NewBlockKeys(r, 16)
		for range (r.InputTokens) / 16 {
			key, _ := k.Next()
			list = append(list, key)
		}
		return list
	}
	for i := range list {
		r, first := &list[i], &list[i%3]
		if r.User != int32(i%3) || r.InputTokens != plain[i].InputTokens || r.OutputTokens != plain[i].OutputTokens {
			t.Fatalf("request %d is %+v, without texts %+v", i, r, plain[i])
		}
		own, others := keys(r), keys(&list[(i+1)%3])
		for k := range min(len(own), len(keys(first)), len(others)) {
			if (own[k] == keys(first)[k]) != (k < 10 || i < 3) || own[k] == others[k] {
				t.Fatalf("block %d of request %d: %x, of the user's first %x, of another's %x", k, i, own[k],
					keys(first)[k], others[k])
			}
		}
	}
	for want, p := range map[string]PrefixSpec{
		`workload.prefix.by: "cat" is not known (want group or user)`: {By: "cat"},
		"groups and prompts_per_group do not apply to by: user":       {By: "user", Groups: 2, SharedTokens: 3},
		"workload.prefix.shared_tokens: -1 is not allowed":            {By: "user", SharedTokens: -1},
	} {
		s.Prefix = p
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", p, err, want)
		}
	}
	s = chat()
	s.Prefix = PrefixSpec{By: "user", SharedTokens: 3}
	if err := s.Validate(); err == nil ||
		!strings.Contains(err.Error(), "workload.prefix.by: user needs a closed loop") {
		t.Errorf("error %v", err)
	}
}

// TestFaults: every fault is reported under its key.
func TestFaults(t *testing.T) {
	s := Spec{
		Arrivals: []Phase{{Process: "poisson", Rate: -1, CV: 2}},
		Input:    LengthsSpec{Distribution: "lognormal", Mean: math.NaN(), CV: math.Inf(1)},
		Output:   LengthsSpec{Distribution: "zipf"},
		Prefix:   PrefixSpec{Groups: 1, SharedTokens: -1},
		Requests: -1, Duration: -clock.Second,
	}
	want := []string{
		"workload.arrivals.cv: does not apply to poisson (want rate)",
		"workload.arrivals.rate: -1 is not allowed (want more than 0, at most 1e7)",
		"workload.input.mean: NaN is not allowed (want more than 0)",
		"workload.input.cv: +Inf is not allowed (want 0 to 100)",
		`workload.output.distribution: "zipf" is not known (want fixed, uniform, lognormal, gamma, weibull, geometric, log-series, mixture or quantiles)`,
		"workload.prefix.shared_tokens: -1 is not allowed (want 0 to 536870912)",
		"workload.prefix.prompts_per_group: 0 is not allowed (want 1 or more)",
		"run.requests: -1 is not allowed (want 1 or more, or null for no limit)",
		"run.duration: -1s is not allowed (want more than 0, at most 2400h0m0s)",
	}
	err := s.Validate()
	got := strings.Split(err.Error(), "\n")
	for i := range max(len(want), len(got)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("fault %d:\n got %q\nwant %q", i, at(got, i), at(want, i))
		}
	}
	var field *FieldError
	if !errors.As(err, &field) || field.Key != "workload.arrivals.cv" {
		t.Errorf("no field error in %v", err)
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

// TestFault tries faults one at a time.
func TestFault(t *testing.T) {
	inputs := map[string]LengthsSpec{
		"input.value: 0":                {Distribution: "fixed"},
		"input.max: 5 is less than min": {Distribution: "fixed", Value: 1, Min: 9, Max: 5},
		"input.min: 0 is not":           {Distribution: "uniform", Max: 5},
		"one of the pairs":              {Distribution: "lognormal", Mean: 5, CV: 1, Sigma: 1},
		"lognormal has no parameters":   {Distribution: "lognormal"},
		"input.shape: 0 is not":         {Distribution: "weibull", Mean: 4},
		"input.parts: is missing":       {Distribution: "mixture"},
		"parts.0.weight: 0": {Distribution: "mixture",
			Parts: []PartSpec{{LengthsSpec: LengthsSpec{Distribution: "fixed", Value: 1}}}},
		"parts.0.value: 0": {Distribution: "mixture",
			Parts: []PartSpec{{Weight: 1, LengthsSpec: LengthsSpec{Distribution: "fixed"}}}},
		"input.q: 1 values for 2":     {Distribution: "quantiles", P: []float64{0, 1}, Q: []float64{3}},
		"input.p: runs from 0.1 to 1": {Distribution: "quantiles", P: []float64{0.1, 1}, Q: []float64{3, 4}},
		"input.p: 0.5 follows 0.5": {Distribution: "quantiles", P: []float64{0, 0.5, 0.5, 1},
			Q: []float64{3, 4, 5, 6}},
		"input.q: 2 at position 1":        {Distribution: "quantiles", P: []float64{0, 1}, Q: []float64{3, 2}},
		"input.q: NaN at":                 {Distribution: "quantiles", P: []float64{0, 1}, Q: []float64{3, math.NaN()}},
		"input.distribution: is missing":  {},
		`"given-input" is not known`:      {Distribution: "given-input"},
		"input.value: does not apply to ": {Distribution: "gamma", Value: 3, Mean: 1, CV: 1},
	}
	for want, in := range inputs {
		s := chat()
		s.Input = in
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", in, err, want)
		}
	}
	stages := map[string][]Phase{
		"arrivals: is missing":             nil,
		"arrivals.process: is missing":     {{}},
		`process: "posson" is not known`:   {{Process: "posson"}},
		"hourly: 0 values are not allowed": {{Process: "profile", Rate: 3}},
		"users and rate are both set":      {{Process: "closed", Users: 3, Rate: 3}},
		"arrivals.users: 0 is not":         {{Process: "closed"}},
		"think_time.distribution: \"x\"": {{Process: "closed", Users: 1,
			ThinkTime: Delay{Distribution: "x"}}},
		"think_time.cv: 0 is not": {{Process: "closed", Users: 1,
			ThinkTime: Delay{Distribution: "lognormal", Mean: 1}}},
		"rho: 1 is not":           {{Process: "cox", Rate: 1, Sigma: 1, Rho: 1, Step: 1}},
		"step: 0s is not":         {{Process: "cox", Rate: 1, Sigma: 1}},
		"on_mean: 0s is not":      {{Process: "on-off", Rate: 1, CV: 1}},
		"arrivals.0.duration: 0s": {{Process: "poisson", Rate: 1}, {Process: "poisson", Rate: 1}},
		"arrivals.1.process: closed cannot": {{Process: "poisson", Rate: 1, Duration: 1},
			{Process: "closed", Users: 1}},
		"arrivals.rate: does not apply to all-at-on": {{Process: "all-at-once", Rate: 1}},
		"cv: 0 is not allowed (want 0.01 to 100)":    {{Process: "gamma", Rate: 1}},
		"shape: 0 is not":                            {{Process: "weibull", Rate: 1}},
	}
	for want, list := range stages {
		s := chat()
		s.Arrivals = list
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", list, err, want)
		}
	}
}

// TestTooLong: a run past the range of time returns an error.
func TestTooLong(t *testing.T) {
	s := chat()
	s.Arrivals = []Phase{{Process: "poisson", Rate: 1e-6}}
	src := mustNew(t, s, 1)
	drain(src, 1000, 0)
	if err := src.Err(); err == nil || !strings.Contains(err.Error(), "2400h0m0s") {
		t.Errorf("error %v", err)
	}
}
