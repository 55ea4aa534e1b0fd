package trace

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"clifftop/internal/testenv"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// memory returns a trace held in a string.
func memory(text string) Opener {
	return func() (*File, error) { return Open(strings.NewReader(text), "t", Options{}) }
}

// synthetic returns a trace of n rows at 10 requests/s, or in ticks; with sessions of four turns.
func synthetic(t testing.TB, n int64, tick clock.Duration, sessions bool) Opener {
	t.Helper()
	src, err := workload.New(workload.Spec{
		Arrivals: []workload.Phase{{Process: "poisson", Rate: 10}},
		Input:    workload.LengthsSpec{Distribution: "uniform", Min: 10, Max: 1000},
		Output:   workload.LengthsSpec{Distribution: "uniform", Min: 1, Max: 100},
		Requests: n,
	}, 3)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	w := NewWriter(&b, Columns{Full: true}, nil)
	for at, ok := src.Peek(); ok; at, ok = src.Peek() {
		r := src.Next()
		if tick > 0 {
			r.Arrival = at / clock.Time(tick) * clock.Time(tick)
		}
		if sessions {
			r.Session, r.Turn = int32(r.ID/4)+1, int32(r.ID%4)
			c := &workload.Content{Segments: []workload.Segment{{ID: 5, Tokens: 2}}}
			if r.Turn > 0 {
				c.Segments = append(c.Segments, workload.Segment{ID: workload.OutputID(r.Session, r.Turn-1), Tokens: 3})
			}
			r.Content = c
		}
		if err := w.Write(&r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return memory(b.String())
}

// play replays a trace to its end and checks the order.
func play(t testing.TB, open Opener, l Load) ([]workload.Request, *Source) {
	t.Helper()
	s, err := Replay(open, l)
	if err != nil {
		t.Fatal(err)
	}
	var rows []workload.Request
	for at, ok := s.Peek(); ok; at, ok = s.Peek() {
		r := s.Next()
		if r.Arrival != at || r.ID != int64(len(rows)) || len(rows) > 0 && at < rows[len(rows)-1].Arrival {
			t.Fatalf("request %d: %+v at %v", len(rows), r, at)
		}
		rows = append(rows, r)
		s.Done(&r, workload.End{At: at})
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return rows, s
}

func rate(rows []workload.Request) float64 {
	return float64(len(rows)-1) / rows[len(rows)-1].Arrival.Sub(rows[0].Arrival).Seconds()
}

func TestReplayPlain(t *testing.T) {
	open := synthetic(t, 1000, 0, true)
	rows, s := play(t, open, Load{})
	if len(rows) != 1000 || len(s.Applied()) != 0 || rows[999].Turn != 3 {
		t.Errorf("%d rows, %q", len(rows), s.Applied())
	}
	if math.Abs(s.Rate()/rate(rows)-1) > 1e-9 || s.Stats().Sessions != 250 {
		t.Errorf("rate %v and %v, %+v", s.Rate(), rate(rows), s.Stats())
	}
	part, s := play(t, open, Load{From: 20 * clock.Second, To: 40 * clock.Second})
	if got := fmt.Sprint(s.Applied()); got != fmt.Sprintf("[slice: from 20s to 40s, %d rows]", len(part)) ||
		s.File().Counts().Accepted != int64(len(part)) {
		t.Error(got)
	}
	i := slices.IndexFunc(rows, func(r workload.Request) bool { return r.Arrival >= clock.Time(20*clock.Second) })
	if part[0].Arrival != rows[i].Arrival-clock.Time(20*clock.Second) || part[0].InputTokens != rows[i].InputTokens ||
		part[len(part)-1].Arrival >= clock.Time(20*clock.Second) {
		t.Errorf("slice begins with %+v", part[0])
	}
	if few, _ := play(t, open, Load{Duration: 10 * clock.Second}); len(few) < 50 ||
		few[len(few)-1].Arrival >= clock.Time(10*clock.Second) {
		t.Errorf("%d rows in 10 s", len(few))
	}
}

// TestThin keeps whole sessions, the same ones in any slice.
func TestThin(t *testing.T) {
	open := synthetic(t, 4000, 0, true)
	rows, s := play(t, open, Load{Scale: 0.3, Seed: 9})
	turns := map[int32]int{}
	for _, r := range rows {
		turns[r.Session]++
	}
	for id, n := range turns {
		if n != 4 {
			t.Fatalf("session %d has %d turns left", id, n)
		}
	}
	if n := len(turns); n < 250 || n > 350 || fmt.Sprint(s.Applied()) != "[thin: 0.3 of the sessions kept]" {
		t.Errorf("%d sessions of 1000, %q", n, s.Applied())
	}
	part, _ := play(t, open, Load{Scale: 0.3, Seed: 9, From: 100 * clock.Second})
	for _, r := range part {
		if turns[r.Session] == 0 {
			t.Fatalf("session %d is kept in the slice alone", r.Session)
		}
	}
	more, _ := play(t, open, Load{Scale: 0.6, Seed: 9})
	kept := map[int32]bool{}
	for _, r := range more {
		kept[r.Session] = true
	}
	for id := range turns {
		if !kept[id] {
			t.Fatalf("session %d is kept at 0.3 and dropped at 0.6", id)
		}
	}
	plain := synthetic(t, 20000, 0, false)
	if rows, _ := play(t, plain, Load{Rate: 2.5, Seed: 1}); math.Abs(rate(rows)/2.5-1) > 0.05 {
		t.Errorf("rate %.3f, want 2.5", rate(rows))
	}
}

// TestSuperpose multiplies the rate, keeps every row of the whole copies, and keeps copies apart.
func TestSuperpose(t *testing.T) {
	open := synthetic(t, 4000, 0, true)
	base, _ := play(t, open, Load{})
	rows, s := play(t, open, Load{Rate: 2.5 * rate(base), Seed: 2})
	if math.Abs(rate(rows)/rate(base)-2.5) > 0.1 || math.Abs(s.Rate()/rate(base)-2.5) > 1e-9 {
		t.Errorf("rate %.3f, nominal %.3f, want %.3f", rate(rows), s.Rate(), 2.5*rate(base))
	}
	if len(s.Applied()) != 1 || !strings.HasPrefix(s.Applied()[0],
		"superpose: 2 copies and 0.5 of the sessions of another, shifted evenly over ") {
		t.Errorf("%q", s.Applied())
	}
	perCopy, lengths := map[int32]int{}, map[int32]int64{}
	texts := map[uint64]int32{}
	for _, r := range rows {
		c := (r.Session - 1) / 1000
		perCopy[c]++
		lengths[c] += int64(r.InputTokens)
		id := r.Content.Segments[0].ID
		if was, ok := texts[id]; ok && was != c {
			t.Fatalf("copies %d and %d share a text", was, c)
		}
		texts[id] = c
		if r.Turn > 0 && r.Content.Segments[1].ID != workload.OutputID(r.Session, r.Turn-1) {
			t.Fatalf("session %d loses its answer", r.Session)
		}
	}
	if perCopy[0] != 4000 || perCopy[1] != 4000 || perCopy[2] < 1700 || perCopy[2] > 2300 || lengths[0] != lengths[1] {
		t.Errorf("rows %v, tokens %v", perCopy, lengths)
	}
	// Halves of the span have the same load: the shift wraps around.
	half := 0
	for _, r := range rows {
		if r.Arrival.Sub(base[0].Arrival) < s.Stats().Span()/2 {
			half++
		}
	}
	if f := float64(half) / float64(len(rows)); math.Abs(f-0.5) > 0.03 {
		t.Errorf("%.3f of the rows in the first half", f)
	}
}

// TestDequantise spreads rows evenly over their ticks.
func TestDequantise(t *testing.T) {
	open := synthetic(t, 5000, 3*clock.Second, false)
	rows, s := play(t, open, Load{Seed: 4})
	if fmt.Sprint(s.Applied()) != "[de-quantise: rows spread over ticks of 3s]" {
		t.Fatalf("%q", s.Applied())
	}
	var gaps []float64
	for i := range rows[1:] {
		gaps = append(gaps, rows[i+1].Arrival.Sub(rows[i].Arrival).Seconds())
	}
	var sum, sq float64
	for _, g := range gaps {
		sum += g
		sq += g * g
	}
	n := float64(len(gaps))
	if cv := math.Sqrt(sq/n-sum*sum/n/n) / (sum / n); cv < 0.9 || cv > 1.1 {
		t.Errorf("cv of gaps %.3f, want about 1", cv)
	}
	raw, _ := play(t, open, Load{Dequantise: Off})
	if raw[0].Arrival%clock.Time(3*clock.Second) != 0 {
		t.Error("spread although off")
	}
	turns, _ := play(t, synthetic(t, 4000, 3*clock.Second, true), Load{Seed: 4})
	next := map[int32]int32{}
	for _, r := range turns {
		if r.Turn != next[r.Session] {
			t.Fatalf("session %d: turn %d before turn %d", r.Session, r.Turn, next[r.Session])
		}
		next[r.Session]++
	}
}

func TestSpeedupLimitCap(t *testing.T) {
	open := synthetic(t, 1000, 0, false)
	base, _ := play(t, open, Load{})
	fast, s := play(t, open, Load{Speedup: 4, Limit: 100})
	if len(fast) != 100 || fast[50].Arrival != base[50].Arrival/4 || math.Abs(s.Rate()/rate(base)-4) > 1e-9 {
		t.Errorf("%d rows, %v and %v", len(fast), fast[50].Arrival, base[50].Arrival)
	}
	for policy, want := range map[CapPolicy]int{"": 0, TruncateInput: 1000, TruncateOutput: 0} {
		rows, s := play(t, open, Load{MaxTotal: 500, Cap: policy})
		if want > 0 && len(rows) != want || want == 0 && (len(rows) == 1000 || len(rows) < 300) {
			t.Errorf("%s: %d rows", policy, len(rows))
		}
		for _, r := range rows {
			if r.InputTokens+r.OutputTokens > 500 || r.OutputTokens < 1 || r.InputTokens < 1 {
				t.Fatalf("%s: %+v", policy, r)
			}
		}
		if a := s.Applied(); !strings.Contains(a[len(a)-1], "cap: at most 500 tokens, ") ||
			strings.Contains(a[0], " 0 rows") {
			t.Errorf("%q", a)
		}
	}
}

func TestLoadFaults(t *testing.T) {
	open := memory("arrival_s,input_tokens,output_tokens\n1,2,3\n2,2,3\n3,2,3\n")
	same := memory("arrival_s,input_tokens,output_tokens\n1,2,3\n1,2,3\n")
	for want, c := range map[string]struct {
		open Opener
		load Load
	}{
		"workload.trace.scale: NaN":                 {open, Load{Scale: math.NaN()}},
		"workload.trace.rate: -1":                   {open, Load{Rate: -1}},
		"given together":                            {open, Load{Rate: 1, Scale: 1}},
		"is empty":                                  {open, Load{From: 5, To: 5}},
		"the slice from..to has no rows":            {open, Load{From: clock.Minute}},
		"load of the trace is not meaningful":       {open, Load{Scale: 101}},
		"the trace has no rate":                     {same, Load{Rate: 3}},
		"cannot be shifted":                         {same, Load{Scale: 3}},
		`workload.trace.cap: "cut"`:                 {open, Load{Cap: "cut"}},
		`workload.trace.dequantise: "yes"`:          {open, Load{Dequantise: "yes"}},
		"workload.trace.limit: -1":                  {open, Load{Limit: -1}},
		`t:2: TIME: "x" is not a time`:              {memory("arrival_s,input_tokens,output_tokens\nx,2,3\n"), Load{}},
		"t: EMPTY: no rows":                         {memory("arrival_s,input_tokens,output_tokens\n"), Load{}},
		"row 1 arrives after more than 2400h0m0s (": {memory("arrival_s,input_tokens,output_tokens\n0,2,3\n8000000,2,3\n"), Load{Speedup: 0.5}},
	} {
		s, err := Replay(c.open, c.load)
		if err == nil {
			s.Next()
			err = s.Err()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := Replay(open, Load{Scale: 101, AllowLargeScale: true}); err != nil {
		t.Error(err)
	}
}

// counted is a reader that counts its calls of Close.
type counted struct {
	*strings.Reader
	closed *int
}

func (c counted) Close() error {
	*c.closed++
	return nil
}

// TestClosing: after every kind of end of a replay, the trace was closed as often as it was opened.
func TestClosing(t *testing.T) {
	for _, l := range []Load{{}, {Limit: 1}, {Duration: 2 * clock.Second}, {To: 2 * clock.Second}, {Scale: 2},
		{Scale: 0.5, Speedup: 2, Limit: 1}, {Scale: 500}, {Loop: 3}, {Loop: 3, Limit: 4}} {
		opened, closed := 0, 0
		open := func() (*File, error) {
			opened++
			return Open(counted{strings.NewReader("arrival_s,input_tokens,output_tokens\n1,2,3\n2,2,3\n3,2,3\n"),
				&closed}, "t", Options{})
		}
		if s, err := Replay(open, l); err == nil {
			for _, ok := s.Peek(); ok; _, ok = s.Peek() {
				s.Next()
			}
		}
		if opened == 0 || opened != closed {
			t.Errorf("%+v: opened %d times, closed %d times", l, opened, closed)
		}
	}
}

// TestMooncakeReplay: the de-quantised conversation trace is not bursty, and its block hit rate is as published.
func TestMooncakeReplay(t *testing.T) {
	path := testenv.Traces(t, "mooncake_fast25_conversation_trace.jsonl.gz")
	open := func() (*File, error) {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		return Open(file, path, Options{})
	}
	rows, s := play(t, open, Load{Seed: 1})
	t.Log(s.Applied(), len(rows))
	var sum, sq float64
	for i := range rows[1:] {
		g := rows[i+1].Arrival.Sub(rows[i].Arrival).Seconds()
		sum += g
		sq += g * g
	}
	n := float64(len(rows) - 1)
	if cv := math.Sqrt(sq/n-sum*sum/n/n) / (sum / n); cv < 0.97 || cv > 1.05 {
		t.Errorf("cv of gaps %.3f, want 1.01", cv)
	}
	seen := map[uint64]bool{}
	hits, tokens := 0, int64(0)
	blocks := 0
	for _, r := range rows {
		tokens += int64(r.InputTokens)
		blocks += int(r.InputTokens+511) / 512
		if r.Content == nil {
			continue
		}
		for _, g := range r.Content.Segments {
			if seen[g.ID] {
				hits++
			}
			seen[g.ID] = true
		}
	}
	byBlock, byToken := float64(hits)/float64(blocks), float64(hits*512)/float64(tokens)
	t.Logf("infinite cache: %.4f of the blocks, %.4f of the tokens", byBlock, byToken)
	if math.Abs(byBlock-0.3664) > 0.0005 || math.Abs(byToken-0.3736) > 0.0005 {
		t.Errorf("infinite cache hits %.4f of the blocks and %.4f of the tokens, want 0.3664 and 0.3736", byBlock,
			byToken)
	}
}

// TestImpatientConversation: the parts of a session wait for the end of the previous request, not of its first attempt.
func TestImpatientConversation(t *testing.T) {
	replay, err := Replay(memory(`{"session_id": "a", "arrival_time_ns": 1000000000, "sub_requests": [{"input_toks": 10, "output_toks": 20, "tool_duration_ns": 1000000000}, {"input_toks": 40, "output_toks": 5}]}
{"input_toks":22,"output_toks":104,"arrival_time_ns":3000000000}`), Load{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := workload.NewClients(replay, 1, workload.ClientSpec{
		Timeout: 10 * clock.Second, Retries: 1, RetryOn: workload.Retryable,
		Backoff: workload.Backoff{Base: 2 * clock.Second, Cap: 2 * clock.Second, Factor: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	var sent []string
	var busy []workload.Request // in the order in which they end
	for {
		at, ok := s.Peek()
		if len(busy) > 0 {
			r := busy[0]
			end := workload.End{How: workload.TimedOut, At: r.Arrival.Add(10 * clock.Second)}
			if r.Attempt() > 0 {
				end = workload.End{At: r.Arrival.Add(10 * clock.Second)}
			}
			if !ok || end.At <= at {
				busy = busy[1:]
				s.Done(&r, end)
				continue
			}
		}
		if !ok {
			break
		}
		r := s.Next()
		busy = append(busy, r)
		sent = append(sent, fmt.Sprintf("%v:%d.%d", r.Arrival.Seconds(), r.InputTokens, r.Attempt()))
	}
	if got, want := strings.Join(sent, " "), "1:10.0 3:22.0 13:10.1 15:22.1 24:40.0 36:40.1"; got != want ||
		replay.Overlapping() != 0 {
		t.Errorf("%s, want %s", got, want)
	}
}
