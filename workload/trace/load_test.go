package trace

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// classedTrace has rows that alternate between two classes, one per second.
const classedTrace = "arrival_s,input_tokens,output_tokens,class\n1,1,1,a\n2,2,1,b\n3,3,1,a\n4,4,1,b\n5,5,1,a\n6,6,1,\n"

func inputs(rows []workload.Request) string {
	var list []int32
	for _, r := range rows {
		list = append(list, r.InputTokens)
	}
	return fmt.Sprint(list)
}

func TestFilter(t *testing.T) {
	rows, s := play(t, memory(classedTrace), Load{Classes: []string{"a"}})
	if inputs(rows) != "[1 3 5]" || s.Stats().Rate() != 0.5 || fmt.Sprint(s.Applied()) != "[filter: class a, 3 rows]" {
		t.Errorf("%s, %v, %q", inputs(rows), s.Stats().Rate(), s.Applied())
	}
	rows, s = play(t, memory(classedTrace),
		Load{From: 2 * clock.Second, To: 5 * clock.Second, Classes: []string{"b", "a"}, Loop: 2, Limit: 5})
	if inputs(rows) != "[2 3 4 2 3]" || fmt.Sprint(s.Applied()) != "[slice: from 2s to 5s, 3 rows filter: class b, a, 3 rows loop: 2 passes of 3s limit: the first 5 rows]" {
		t.Errorf("%s, %q", inputs(rows), s.Applied())
	}
	for text, want := range map[string]string{classedTrace: `"c" is not a class of this trace (want a, b)`,
		"arrival_s,input_tokens,output_tokens\n1,1,1\n": "it has no classes"} {
		if _, err := Replay(memory(text), Load{Classes: []string{"c"}}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestLoop plays a long and a short trace three times: the rate is kept, and passes share no text.
func TestLoop(t *testing.T) {
	for _, n := range []int64{1000, maxBufferedRows + 10} {
		open := synthetic(t, n, 0, true)
		once, one := play(t, open, Load{})
		rows, s := play(t, open, Load{Loop: 3})
		if int64(len(rows)) != 3*n || s.Expected() != 3*n || math.Abs(rate(rows)/one.Rate()-1) > 1e-3 {
			t.Fatalf("%d rows at %v, want %d at %v", len(rows), rate(rows), 3*n, one.Rate())
		}
		sessions, texts := map[int32]int64{}, map[uint64]int64{}
		for i, r := range rows {
			pass := int64(i) / n
			if r.InputTokens != once[int64(i)%n].InputTokens {
				t.Fatalf("row %d has %d tokens", i, r.InputTokens)
			}
			if p, known := sessions[r.Session]; known && p != pass {
				t.Fatalf("session %d is in passes %d and %d", r.Session, p, pass)
			}
			sessions[r.Session] = pass
			for _, g := range r.Content.Segments {
				if p, known := texts[g.ID]; known && p != pass {
					t.Fatalf("row %d shares a text of pass %d", i, p)
				}
				texts[g.ID] = pass
			}
			if r.Turn > 0 && r.Content.Segments[1].ID != workload.OutputID(r.Session, r.Turn-1) {
				t.Fatalf("row %d does not continue its own session", i)
			}
		}
	}
	ticks := synthetic(t, 2000, 3*clock.Second, true)
	rows, s := play(t, ticks, Load{Loop: 2, Scale: 2.5, Speedup: 2, Seed: 4})
	if n := int64(len(rows)); math.Abs(float64(n-s.Expected())) > 400 || len(s.Applied()) != 4 {
		t.Errorf("%d rows, expected %d: %q", n, s.Expected(), s.Applied())
	}
	if _, err := Replay(synthetic(t, 1000, 0, true), Load{Loop: 1 << 30}); err == nil ||
		!strings.Contains(err.Error(), "too many") {
		t.Errorf("endless: %v", err)
	}
}

// TestTimeless: a trace without times takes its arrivals from a rate.
func TestTimeless(t *testing.T) {
	var b strings.Builder
	b.WriteString("num_prefill_tokens,num_decode_tokens\n")
	for i := range 5000 {
		fmt.Fprintf(&b, "%d,1\n", i%100+1)
	}
	open := memory(b.String())
	rows, s := play(t, open, Load{Rate: 10, Seed: 3, Loop: 2})
	var sum, squares float64
	for i := range rows[1:] {
		g := rows[i+1].Arrival.Sub(rows[i].Arrival).Seconds()
		sum, squares = sum+g, squares+g*g
	}
	n := float64(len(rows) - 1)
	if cv := math.Sqrt(n*squares/sum/sum - 1); len(rows) != 10000 || math.Abs(n/sum-10) > 0.5 ||
		math.Abs(cv-1) > 0.05 || s.Rate() != 10 {
		t.Errorf("%d rows at %v per second, CV %v", len(rows), n/sum, cv)
	}
	for _, c := range []struct {
		Load
		want string
	}{{Load{}, "workload.trace.rate"}, {Load{Scale: 2}, "does not apply to a trace without times"}} {
		if _, err := Replay(open, c.Load); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestOverlapping counts turns that the replay sends too early.
func TestOverlapping(t *testing.T) {
	s, err := Replay(memory("arrival_s,input_tokens,output_tokens,session\n0,1,1,a\n1,1,1,b\n2,1,1,a\n9,1,1,a\n9,1,1,\n"), Load{})
	if err != nil {
		t.Fatal(err)
	}
	a := s.Next()
	s.Next()
	again := s.Next()
	s.Done(&a, workload.End{At: clock.Time(3 * clock.Second)})
	s.Done(&again, workload.End{At: clock.Time(3 * clock.Second)})
	s.Next()
	s.Next()
	if s.Overlapping() != 1 {
		t.Errorf("%d turns overlap, want 1", s.Overlapping())
	}
}
