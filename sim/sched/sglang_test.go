package sched

import (
	"math"
	"testing"
)

func newSGLang(t *testing.T, p SGLang) *SGLang {
	t.Helper()
	if p.MaxPrefillTokens == 0 {
		p.MaxPrefillTokens = 16384
	}
	if err := p.Validate(Limits{MaxNumSeqs: 100, MaxNumBatchedTokens: 100_000, MaxModelLen: 100_000,
		BlockSize: 1}); err != nil {
		t.Fatal(err)
	}
	return &p
}

// TestSGLangAdmissionEstimate: two sequences use 370 of 1000 tokens of KV. How much of the rest is open depends on what
// is reserved for their outputs.
func TestSGLangAdmissionEstimate(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps int64
		want  string
		why   Cause
	}{
		{"at the first ratio, 0.7", 0, "[N1 150 N2 10]", LacksKV},
		{"at the lowest ratio, 0.098", 600, "[N1 150 N2 10 N3 10]", NotBlocked},
	} {
		v := &fake{page: 1, budget: 8192, free: 630, seats: 10, steps: c.steps}
		v.decoding("R1", 200, 300, 50)
		v.decoding("R2", 100, 200, 20)
		v.wait("N1 ", 150, 150)
		v.wait("N2 ", 10, 10)
		v.wait("N3 ", 10, 5)
		p := newSGLang(t, SGLang{ChunkedPrefillSize: 8192})
		p.Schedule(v)
		if got := v.done(); got != c.want || v.why != c.why {
			t.Errorf("%s: %s, blocked by %v, want %s, %v", c.name, got, v.why, c.want, c.why)
		}
		if c.why == NotBlocked {
			continue
		}
		// The batch is full now: no request is tried until a sequence has left.
		v.free = 900
		p.Schedule(v)
		if got := v.done(); got != "[decode 4]" {
			t.Errorf("%s: then %s, want a decode", c.name, got)
		}
		// After the end of a sequence there is another decode iteration, which clears the flag.
		p.Ended(Progress{Request: 1000, Prompt: 10, Generated: 5, MaxTokens: 5})
		p.Schedule(v)
		if got := v.done(); got != "[decode 4]" {
			t.Errorf("%s: after an end %s, want a decode", c.name, got)
		}
		p.Schedule(v)
		if got := v.done(); got != "[N3 10]" {
			t.Errorf("%s: after the decode %s, want N3", c.name, got)
		}
	}
}

func TestNewTokenRatio(t *testing.T) {
	var r newTokenRatio
	r.start(0)
	for _, c := range []struct {
		steps int64
		want  float64
	}{{0, 0.7}, {1, 0.7 - 0.0010033}, {100, 0.5997}, {600, 0.098}, {5000, 0.098}} {
		if got := r.at(c.steps); math.Abs(got-c.want) > 5e-5 {
			t.Errorf("ratio after %d steps: %v, want %v", c.steps, got, c.want)
		}
	}
	r.reset(5000)
	r.skip() // a decode that rides with a prefill
	if got := r.at(5001); got != 0.7 {
		t.Errorf("ratio after idling: %v, want 0.7", got)
	}
	var bold newTokenRatio
	bold.start(2)
	if got := bold.at(0); got != 1 {
		t.Errorf("ratio of conservativeness 2: %v, want 1", got)
	}
}

// A full pool: those with the shortest outputs leave, of equals the one with the longest prompt, until
// the others' next tokens fit.
func TestSGLangRetraction(t *testing.T) {
	v := &fake{page: 1, budget: 8192, seats: 10, steps: 300}
	v.decoding("A", 100, 100, 50)
	v.decoding("B", 400, 100, 10)
	v.decoding("C", 20, 100, 10)
	v.decoding("D", 50, 100, 30)
	p := newSGLang(t, SGLang{ChunkedPrefillSize: 8192})
	var order []string
	for list := p.retractionOrder(v); len(list) > 0; list = list[:len(list)-1] {
		order = append(order, v.running[list[len(list)-1]].name)
	}
	if got := order; len(got) != 4 || got[0] != "B" || got[1] != "C" || got[2] != "D" || got[3] != "A" {
		t.Errorf("order of retraction %v, want B C D A", got)
	}
	p.Schedule(v)
	if got := v.done(); got != "[-B decode 3]" {
		t.Errorf("%s, want B retracted and the others decoding", got)
	}
	v.steps++
	if got := p.ratio.at(v.steps); math.Abs(got-0.4983) > 5e-5 {
		t.Errorf("ratio %v after the retraction, want 0.4983", got)
	}
	if v.free != 410-3 {
		t.Errorf("%d tokens free, want 407", v.free)
	}
}

func TestSGLangPrefillFirst(t *testing.T) {
	for _, c := range []struct {
		mixed bool
		want  []string
	}{
		{false, []string{"[W1 8192]", "[W1 1808 W2 3000]", "[decode 6]"}},
		{true, []string{"[decode 4 W1 8188]", "[decode 4 W1 1812 W2 3000]", "[decode 6]"}},
	} {
		v := &fake{page: 1, free: 1 << 30, seats: 10}
		for range 4 {
			v.decoding("R", 100, 100, 5)
		}
		v.wait("W1 ", 10000, 100)
		v.wait("W2 ", 3000, 100)
		p := newSGLang(t, SGLang{ChunkedPrefillSize: 8192, MixedChunk: c.mixed})
		for i, want := range c.want {
			v.budget = 100_000
			for _, s := range v.running {
				s.given = false
			}
			p.Schedule(v)
			if got := v.done(); got != want {
				t.Errorf("mixed %v: iteration %d is %s, want %s", c.mixed, i+1, got, want)
			}
		}
	}
}

// TestSGLangPriorityPreemption: a request of priority 0 needs a seat and 60 tokens: its prompt of 50, which was tried
// before, and 10 for its output. Only sequences whose priority is worse by more than 10 are preempted, and the
// reservations that they release, 63 tokens each, must suffice. A prompt that was never tried counts as nothing.
func TestSGLangPriorityPreemption(t *testing.T) {
	for _, c := range []struct {
		name       string
		free       int
		priorities []int16
		tried      int32 // tokens of the prompt that were to be computed when it was last tried
		want       string
	}{
		{"not worse enough", 100, []int16{10, 5}, 50, "[decode 2]"},
		{"one suffices: the last of the worst", 250, []int16{12, 30, 30, 5}, 50, "[-C W50]"},
		{"two are needed", 160, []int16{12, 30, 11}, 50, "[-B -A W50]"},
		{"they do not suffice", 20, []int16{12, 30}, 50, "[decode 2]"},
		{"never tried", 160, []int16{12, 30, 11}, 0, "[-B W50]"},
	} {
		v := &fake{page: 1, budget: 8192, free: c.free}
		for i, priority := range c.priorities {
			v.decoding(string(rune('A'+i)), 20, 100, 10)
			v.running[i].Priority = priority
		}
		v.wait("W", 50, 10)
		p := newSGLang(t, SGLang{ChunkedPrefillSize: 8192, PreemptByPriority: true, PreemptionThreshold: 10})
		p.matched = map[int64]int32{v.waiting[0].Request: c.tried}
		p.Schedule(v)
		if got := v.done(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// admission returns the order in which a policy admits all that wait.
func admission(t *testing.T, o QueueOrder, v *fake) string {
	t.Helper()
	v.page, v.budget, v.free, v.seats = 1, 100_000, 1<<30, 1000
	p := newSGLang(t, SGLang{ChunkedPrefillSize: 100_000, MaxPrefillTokens: 100_000, QueueOrder: o})
	p.Schedule(v)
	return v.done()
}

func TestLongestPrefix(t *testing.T) {
	v := &fake{}
	v.wait("W1 ", 150, 10).beginning = 1
	v.wait("W2 ", 150, 10).beginning = 1
	v.wait("W3 ", 40, 10).beginning = 2
	if got := admission(t, LongestPrefix, v); got != "[W1 150 W3 40 W2 150]" {
		t.Errorf("with an empty cache: %s, want the second of two alike last", got)
	}

	v = &fake{}
	v.wait("W1 ", 150, 10).beginning = 1
	v.wait("W2 ", 150, 10).beginning = 1
	v.wait("W3 ", 150, 10).beginning = 1
	v.waiting[1].Cached, v.waiting[2].Cached = 33, 90
	if got := admission(t, LongestPrefix, v); got != "[W3 60 W2 117 W1 150]" {
		t.Errorf("with a cache: %s, want the longest prefix first", got)
	}

	v = &fake{}
	for range 129 {
		v.wait("W", 40, 1)
	}
	v.waiting[128].Cached = 20
	if got := admission(t, LongestPrefix, v); got[len(got)-4:] != "W20]" {
		t.Errorf("a long queue is not served first come, first served: %s", got)
	}
}

// The tree forks into a node 1 with three requests, two of them below it, and a node 2 with two.
func TestDFSWeight(t *testing.T) {
	v := &fake{}
	for _, w := range []struct {
		name string
		path []int32
	}{{"a", nil}, {"b", []int32{2}}, {"c", []int32{2}}, {"d", []int32{1}}, {"e", []int32{1, 3}}, {"f", []int32{1, 4}}} {
		v.wait(w.name, 1, 1).path = w.path
	}
	if got := admission(t, DFSWeight, v); got != "[e1 f1 d1 b1 c1 a1]" {
		t.Errorf("order %s, want e f d b c a", got)
	}
}

// Requests whose session runs go first, those of the session with most running requests before the others. Sequences
// that have ended count until a decode iteration. The unfinished prompt of R4 does not count. Where no session runs, the
// order is that of the queue.
func TestRoutingKey(t *testing.T) {
	for _, c := range []struct {
		name           string
		running, ended []int32
		unfinished     bool
		want           string
	}{
		{"session 2 runs twice", []int32{1, 2, 2, 0}, nil, false, "[d1 c1 e1 b1 a1 f1]"},
		{"session 1 has ended twice", []int32{1, 2, 2, 0}, []int32{1, 1, 0}, false, "[c1 e1 d1 b1 a1 f1]"},
		{"as many of 2 and 1", []int32{2, 1}, nil, false, "[c1 e1 d1 b1 a1 f1]"},
		{"only others run", []int32{7}, nil, false, "[b1 c1 e1 d1 a1 f1]"},
		{"none runs", []int32{0, 0}, nil, false, "[a1 b1 c1 d1 e1 f1]"},
		{"an unfinished prompt", []int32{0}, nil, true, "[R99 a1 b1 c1 d1 e1 f1]"},
	} {
		v := &fake{page: 1, budget: 100_000, free: 1 << 30, seats: 1000}
		for _, session := range c.running {
			v.decoding("R", 10, 10, 5)
			v.running[len(v.running)-1].Session = session
		}
		if c.unfinished {
			v.decoding("R", 109, 10, 0)
			r := v.running[len(v.running)-1]
			r.Session, r.computed = 3, 10
		}
		for i, session := range []int32{3, 0, 1, 2, 1, 4} {
			v.wait(string(rune('a'+i)), 1, 1).Session = session
		}
		p := newSGLang(t, SGLang{ChunkedPrefillSize: 100_000, MaxPrefillTokens: 100_000, QueueOrder: RoutingKey})
		for _, session := range c.ended {
			p.Ended(Progress{Request: 1000, Session: session})
		}
		p.Schedule(v)
		if got := v.done(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A random order is a permutation of the queue, another one after each iteration and on each replica, the same in a
// second run, and as likely as any other: of 6,000 orders of three requests each of the six comes 1,000 times, with a
// standard deviation of 29.
func TestRandomOrder(t *testing.T) {
	order := func(seed uint64, replica int, steps int64) string {
		v := &fake{page: 1, budget: 100_000, free: 1 << 30, seats: 1000, steps: steps}
		for _, name := range []string{"a", "b", "c"} {
			v.wait(name, 1, 1)
		}
		p := newSGLang(t, SGLang{ChunkedPrefillSize: 100_000, QueueOrder: RandomOrder, Seed: seed, Replica: replica})
		p.Schedule(v)
		return v.done()
	}
	for name, draw := range map[string]func(k int) string{
		"iterations": func(k int) string { return order(1, 0, int64(k)) },
		"replicas":   func(k int) string { return order(1, k, 0) },
		"seeds":      func(k int) string { return order(uint64(k), 0, 0) },
	} {
		seen := make(map[string]int)
		for k := range 6000 {
			o := draw(k)
			if k < 10 && draw(k) != o {
				t.Errorf("%s: a second run has another order than %s", name, o)
			}
			seen[o]++
		}
		for _, o := range []string{"a1 b1 c1", "a1 c1 b1", "b1 a1 c1", "b1 c1 a1", "c1 a1 b1", "c1 b1 a1"} {
			if n := seen["["+o+"]"]; n < 880 || n > 1120 {
				t.Errorf("%s: order %s came %d times of 6,000", name, o, n)
			}
		}
	}
}

// Each batch has a shuffle of its own: the second of two that take one request each takes an old or a new one alike.
func TestRandomOrderOfBatches(t *testing.T) {
	later := make(map[string]int)
	for seed := range uint64(2000) {
		v := &fake{page: 1, budget: 100_000, free: 1 << 30, seats: 1000}
		for _, name := range []string{"a", "b"} {
			v.wait(name, 10, 1)
		}
		p := newSGLang(t, SGLang{ChunkedPrefillSize: 10, QueueOrder: RandomOrder, Seed: seed})
		p.Schedule(v)
		first := v.done()
		v.wait("c", 10, 1)
		for _, s := range v.running {
			s.computed = s.Prompt
		}
		p.Schedule(v)
		later[first+v.done()]++
	}
	for _, o := range []string{"[a10][b10]", "[a10][c10]", "[b10][a10]", "[b10][c10]"} {
		if later[o] < 430 || later[o] > 570 {
			t.Errorf("%s came %d times of 2,000, want 500: %v", o, later[o], later)
		}
	}
}

// A has 10 tokens to go and holds 60, B has 40 to go and holds 20; 100 tokens are free. The estimate reserves for all
// at once, the look-ahead counts on what ends: with N, of 30 and 80 tokens, 40 are free when A ends, then A's 60 come
// back and 50 are free when B ends, then 20 come back and 70 are free when N ends.
func TestSGLangLookAhead(t *testing.T) {
	for _, c := range []struct {
		name         string
		prompt, most int32
		ignoreEOS    bool
		want         string
	}{
		{"the estimate needs 111 of 96.5", 30, 80, false, "[decode 2]"},
		{"the pool lasts", 30, 80, true, "[N30]"},
		{"4 tokens are free when A and N end", 66, 10, true, "[N66]"},
		{"3 tokens are, which is as many as sequences run", 67, 10, true, "[decode 2]"},
	} {
		v := &fake{page: 1, budget: 8192, free: 100, seats: 10}
		v.decoding("A", 50, 20, 10)
		v.decoding("B", 10, 50, 10)
		v.wait("N", c.prompt, c.most)
		p := newSGLang(t, SGLang{ChunkedPrefillSize: 8192, Conservativeness: 0.1, IgnoreEOS: c.ignoreEOS})
		p.Schedule(v)
		if got := v.done(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
