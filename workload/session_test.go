package workload

import (
	"math"
	"slices"
	"testing"

	"clifftop/sim/clock"
)

// talks returns a specification of conversations of three turns with round numbers.
func talks() Spec {
	fixed := func(n int32) LengthsSpec { return LengthsSpec{Distribution: "fixed", Value: n} }
	return Spec{
		Arrivals: []Phase{{Process: "constant", Rate: 3}},
		Output:   fixed(100),
		Sessions: &SessionSpec{
			Turns: fixed(3), SystemPrompt: SystemPrompt{Tokens: []int32{1000}}, FirstPrompt: fixed(50),
			LaterUserTokens: fixed(20),
			ThinkTime:       Delay{Mean: 10 * clock.Second}, Begin: "empty",
		},
	}
}

// keysOf returns the keys of the whole blocks of a request's prompt.
func keysOf(r *Request, size int32) []uint64 {
	k := NewBlockKeys(r, size)
	var keys []uint64
	for range r.InputTokens / size {
		key, _ := k.Next()
		keys = append(keys, key)
	}
	return keys
}

// turnsOf returns the requests of each session.
func turnsOf(list []Request) map[int32][]Request {
	m := map[int32][]Request{}
	for _, r := range list {
		m[r.Session] = append(m[r.Session], r)
	}
	return m
}

// TestTurnsGrow: input(k) = input(k−1) + output(k−1) + new tokens. A prompt begins with the previous prompt and output.
func TestTurnsGrow(t *testing.T) {
	s := talks()
	s.Requests = 300
	seen := 0
	for _, turns := range turnsOf(drain(mustNew(t, s, 1), 1000, clock.Second)) {
		for i, r := range turns {
			if want := 1050 + int32(i)*120; r.InputTokens != want || r.Turn != int32(i) ||
				r.Content.Tokens() != int64(want) {
				t.Fatalf("turn %d: %+v with %d tokens of content, want %d", i, r, r.Content.Tokens(), want)
			}
			if i == 0 {
				continue
			}
			last := turns[i-1]
			if gap := r.Arrival.Sub(last.Arrival); gap != 11*clock.Second {
				t.Fatalf("turn %d comes %v after the one before, want 11 s", i, gap)
			}
			whole := last
			whole.InputTokens += last.OutputTokens // prompt and output
			whole.Content = &Content{Segments: append(slices.Clone(last.Content.Segments),
				Segment{OutputID(last.Session, last.Turn), last.OutputTokens})}
			if a, b := keysOf(&whole, 10), keysOf(&r, 10); !slices.Equal(a, b[:len(a)]) {
				t.Fatalf("turn %d does not repeat the one before", i)
			}
			seen++
		}
	}
	if seen < 150 {
		t.Errorf("%d later turns", seen)
	}
}

// TestSessionRate: conversations start at the request rate divided by the turns. In the steady state both rates are
// met.
func TestSessionRate(t *testing.T) {
	for _, begin := range []string{"steady", "empty"} {
		s := talks()
		s.Arrivals = []Phase{{Process: "poisson", Rate: 6}}
		s.Sessions.Turns = LengthsSpec{Distribution: "geometric", Mean: 4}
		s.Sessions.ThinkTime, s.Sessions.TurnGap = Delay{}, Delay{Distribution: "exponential", Mean: 100 * clock.Second}
		s.Sessions.Begin = begin
		s.Duration = 2000 * clock.Second
		src := mustNew(t, s, 3)
		list := drain(src, 1e6, 0)
		counts := src.(*classMix).Sessions()
		var early, late float64
		for _, r := range list {
			if r.Arrival < clock.Time(200*clock.Second) {
				early += 1. / 200
			} else if r.Arrival >= clock.Time(1000*clock.Second) {
				late += 1. / 1000
			}
		}
		if math.Abs(late-6) > 0.5 {
			t.Errorf("%s: %v requests per second in the second half, want 6", begin, late)
		}
		if begin == "steady" && math.Abs(early-6) > 1 || begin == "empty" && early > 4 {
			t.Errorf("%s: %v requests per second at the beginning", begin, early)
		}
		if int(counts.Turns) != len(list) || counts.Overlaps != 0 {
			t.Errorf("%+v for %d requests", counts, len(list))
		}
	}
}

// TestSessionsOfUsers: a user has one conversation at a time, and each turn waits for the previous output.
func TestSessionsOfUsers(t *testing.T) {
	s := talks()
	s.Arrivals = []Phase{{Process: "closed", Users: 5, ThinkTime: Delay{Mean: 60 * clock.Second}}}
	s.Requests = 200
	turns := map[int32]int32{}
	last := map[int32]Request{}
	for _, r := range drain(mustNew(t, s, 1), 1000, 2*clock.Second) {
		if r.Turn != turns[r.User] {
			t.Fatalf("user %d sends turn %d, want %d", r.User, r.Turn, turns[r.User])
		}
		turns[r.User] = (r.Turn + 1) % 3
		if before, ok := last[r.User]; ok {
			want := 12 * clock.Second
			if r.Turn == 0 {
				want = 62 * clock.Second
			}
			if gap := r.Arrival.Sub(before.Arrival); gap != want || (r.Session == before.Session) != (r.Turn > 0) {
				t.Fatalf("%+v comes %v after %+v, want %v", r, gap, before, want)
			}
		}
		last[r.User] = r
	}
}

// TestTurnGaps: in an open loop turns do not wait for outputs, and can overlap. In a closed loop they wait for both.
func TestTurnGaps(t *testing.T) {
	s := talks()
	s.Sessions.ThinkTime, s.Sessions.TurnGap = Delay{}, Delay{Mean: 5 * clock.Second}
	s.Requests = 99
	src := mustNew(t, s, 1)
	var list []Request
	for {
		at, ok := src.Peek()
		if !ok {
			break
		}
		r := src.Next() // without any output
		if r.Arrival != at {
			t.Fatal("Peek and Next disagree")
		}
		list = append(list, r)
	}
	later := 0
	for _, turns := range turnsOf(list) {
		for i := 1; i < len(turns); i++ {
			if gap := turns[i].Arrival.Sub(turns[i-1].Arrival); gap != 5*clock.Second {
				t.Errorf("gap of %v", gap)
			}
			later++
		}
	}
	if c := src.(*classMix).Sessions(); c.Overlaps != int64(later) || later < 50 {
		t.Errorf("%d later turns, %+v", later, c)
	}
	s.Arrivals = []Phase{{Process: "closed", Users: 1}}
	for service, want := range map[clock.Duration]clock.Duration{clock.Second: 5 * clock.Second,
		7 * clock.Second: 7 * clock.Second} {
		list := drain(mustNew(t, s, 1), 3, service)
		if gap := list[1].Arrival.Sub(list[0].Arrival); gap != want {
			t.Errorf("outputs after %v: gap %v, want %v", service, gap, want)
		}
	}
}

// TestLongSessions: a conversation that exceeds the model's context ends, loses its oldest messages, or is rejected.
func TestLongSessions(t *testing.T) {
	for _, c := range []struct {
		policy string
		inputs []int32 // of a conversation
		counts SessionCounts
	}{
		// Turns have 1,050, 1,170, 1,290 … input tokens, and 100 of output.
		{"", []int32{1050, 1170, 1290}, SessionCounts{TooLong: 1}},
		{"end", []int32{1050, 1170, 1290}, SessionCounts{TooLong: 1}},
		{"reject", []int32{1050, 1170, 1290, 1410}, SessionCounts{TooLong: 1}},
		// The oldest messages are dropped, of 50 and 100 tokens; then those of 20 and 100.
		{"truncate", []int32{1050, 1170, 1290, 1260, 1260}, SessionCounts{Cut: 2}},
	} {
		s := talks()
		s.MaxModelLen = 1450
		s.Sessions.Turns.Value, s.Sessions.TooLong = 5, c.policy
		s.Arrivals = []Phase{{Process: "closed", Users: 1, ThinkTime: Delay{Mean: 1e6 * clock.Second}}}
		s.Duration = 1e6 * clock.Second
		src := mustNew(t, s, 1)
		var inputs []int32
		for _, r := range drain(src, 100, clock.Second) {
			inputs = append(inputs, r.InputTokens)
			if n := r.Content.Tokens(); n != int64(r.InputTokens) {
				t.Errorf("%s: content of %d tokens for %d", c.policy, n, r.InputTokens)
			}
		}
		got := src.(*classMix).Sessions()
		c.counts.Begun, c.counts.Turns = 1, int64(len(inputs))
		if !slices.Equal(inputs, c.inputs) || got != c.counts {
			t.Errorf("%s: prompts of %v tokens and %+v, want %v and %+v", c.policy, inputs, got, c.inputs, c.counts)
		}
	}
}

// TestThinkingIsDropped: thinking tokens are not in the next prompt, so cached blocks after them cannot be reused.
func TestThinkingIsDropped(t *testing.T) {
	s := talks()
	s.Sessions.Reasoning = []BetaPart{{Weight: 1, Alpha: 3e5, Beta: 1e5}} // three quarters
	s.Requests = 30
	for _, turns := range turnsOf(drain(mustNew(t, s, 1), 100, clock.Second)) {
		for i := 1; i < len(turns); i++ {
			a, b := turns[i-1], turns[i]
			if grown := b.InputTokens - a.InputTokens; grown != 25+20 {
				t.Fatalf("the prompt grows by %d tokens, want 25 of the answer and 20 new ones", grown)
			}
			whole := a
			whole.InputTokens += a.OutputTokens
			whole.Content = &Content{Segments: append(slices.Clone(a.Content.Segments),
				Segment{OutputID(a.Session, a.Turn), a.OutputTokens})}
			shared := 0
			for n, key := range keysOf(&b, 10) {
				if k := keysOf(&whole, 10); n < len(k) && k[n] == key {
					shared++
				}
			}
			if shared != int(a.InputTokens/10) {
				t.Fatalf("%d blocks shared, want the %d of the prompt before", shared, a.InputTokens/10)
			}
		}
	}
}

// TestEditedHistory: an edited turn shares a part of the conversation, and always the system prompt.
func TestEditedHistory(t *testing.T) {
	s := talks()
	s.Sessions.EditedHistory = 0.25
	s.Requests = 9000
	later, edited, kept := 0, 0, 0.0
	for _, turns := range turnsOf(drain(mustNew(t, s, 1), 10000, clock.Second)) {
		for i := 1; i < len(turns); i++ {
			later++
			whole := turns[i-1].InputTokens + turns[i-1].OutputTokens
			if cut := turns[i].InputTokens - 20; cut < whole {
				edited++
				kept += float64(cut-1000) / float64(whole-1000)
				if cut < 1000 {
					t.Fatal("the system prompt is edited")
				}
			}
		}
	}
	if share := float64(edited) / float64(later); math.Abs(share-0.25) > 0.02 ||
		math.Abs(kept/float64(edited)-0.5) > 0.03 {
		t.Errorf("%v of %d later turns are edited, and keep %v", share, later, kept/float64(edited))
	}
}

// TestSystemPrompts: each group has its configured share of requests and its own text.
func TestSystemPrompts(t *testing.T) {
	s := talks()
	s.Sessions.SystemPrompt = SystemPrompt{Tokens: []int32{100, 300}, Weights: []float64{3, 1}, Share: 0.8}
	s.Sessions.Turns.Value = 1
	s.Requests = 10000
	n := map[uint64]float64{}
	for _, r := range drain(mustNew(t, s, 1), 20000, 0) {
		first := r.Content.Segments[0]
		if len(r.Content.Segments) == 2 {
			n[first.ID] += 1e-4
			if r.InputTokens != first.Tokens+50 {
				t.Fatalf("%+v", r)
			}
		}
	}
	var shares []float64
	for _, x := range n {
		shares = append(shares, x)
	}
	slices.Sort(shares)
	if len(shares) != 2 || math.Abs(shares[0]-0.2) > 0.02 || math.Abs(shares[1]-0.6) > 0.02 {
		t.Errorf("shares of system prompts %v, want 0.2 and 0.6", shares)
	}
}

// TestSessionsStayAsTheyAre: the content of a conversation does not depend on arrival times and service times.
func TestSessionsStayAsTheyAre(t *testing.T) {
	s := talks()
	s.Sessions.FirstPrompt = LengthsSpec{Distribution: "lognormal", Mean: 100, CV: 2}
	s.Sessions.LaterUserTokens = LengthsSpec{Distribution: "gamma", Mean: 50, CV: 2}
	s.Sessions.EditedHistory = 0.3
	s.Requests = 600
	a := turnsOf(drain(mustNew(t, s, 1), 1000, clock.Second))
	s.Arrivals[0].Process = "poisson"
	b := turnsOf(drain(mustNew(t, s, 1), 1000, 100*clock.Second))
	compared := 0
	for n, turns := range a {
		for i := 0; i < min(len(turns), len(b[n])); i++ {
			if x, y := turns[i], b[n][i]; x.InputTokens != y.InputTokens ||
				!slices.Equal(x.Content.Segments, y.Content.Segments) {
				t.Fatalf("session %d turn %d: %+v and %+v", n, i, x, y)
			}
			compared++
		}
	}
	if compared < 300 {
		t.Errorf("%d turns compared", compared)
	}
}

// TestRefusedUsersAskAgain: a user whose server is away learns it no sooner than a connection takes, and goes on.
// Without that, refusals that take no time stop the clock.
func TestRefusedUsersAskAgain(t *testing.T) {
	closed := Spec{
		Arrivals: []Phase{{Process: "closed", Users: 2}}, Duration: clock.Second,
		Input:  LengthsSpec{Distribution: "fixed", Value: 10},
		Output: LengthsSpec{Distribution: "fixed", Value: 10},
	}
	sessions := talks()
	sessions.Arrivals, sessions.Duration = closed.Arrivals, clock.Second
	for name, s := range map[string]Spec{"requests": closed, "conversations": sessions} {
		src := mustNew(t, s, 1)
		sent := 0
		for _, ok := src.Peek(); ok; _, ok = src.Peek() {
			r := src.Next()
			if sent++; sent > 10_000 {
				t.Fatalf("%s: the clock stands still at %v", name, r.Arrival)
			}
			src.Done(&r, End{How: Disconnected, At: r.Arrival, First: clock.Never})
		}
		if src.Err() != nil || sent != 2000 {
			t.Errorf("%s: 2 users sent %d requests in 1 s, %v; want one each in 1 ms", name, sent, src.Err())
		}
	}
}
