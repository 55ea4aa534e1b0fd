package curve

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"clifftop/report"
	"clifftop/report/stats"
)

// risen is a result at a load of a system that takes 600 of them, with all that summaries have in bulk.
func risen(load float64) *report.Summary {
	s := point(load, 10*min(load, 600-load/10), 100+load).Summary
	s.Concurrency.InSystem.Mean, s.System.BusyFraction = stats.Finite(1+load), stats.Finite(min(1, load/600))
	s.Throughput.RequestsPerS, s.Throughput.OfferedRequestsPerS = stats.Finite(min(load, 600)), stats.Finite(load)
	s.Window.Stationary = new(bool)
	*s.Window.Stationary = load < 700
	s.Goodput.Met = new(bool)
	*s.Goodput.Met = load < 333
	s.Scenario = bytes.Repeat([]byte("x"), 4000)
	s.Warnings = []report.Warning{{Code: "common", Text: "all have it"}}
	return s
}

func manyLoads(n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[(i*7919)%n] = 1 + 999*float64(i)/float64(n-1)
	}
	return values
}

// A curve of results that are read when they are needed is that of results that are all there, to the byte.
func TestReadCurveIsTheSame(t *testing.T) {
	for _, n := range []int{1, 5, mostPoints, mostPoints + 1} {
		values := manyLoads(max(n, 2))[:n]
		var points []Point
		for _, v := range values {
			points = append(points, Point{Value: v, Summary: risen(v)})
		}
		kept := New("users", points)
		read, err := Read("users", values, func(i int) (*report.Summary, error) { return risen(values[i]), nil })
		if err != nil {
			t.Fatal(err)
		}
		capacity := &Capacity{Over: "users", USDPerMillionOutput: stats.Finite(3)}
		kept.SetCapacity(capacity)
		read.SetCapacity(capacity)
		var whole bytes.Buffer
		e := json.NewEncoder(&whole)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(kept); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*Curve{kept, read} {
			var b bytes.Buffer
			if err := c.WriteJSON(&b); err != nil || !bytes.Equal(b.Bytes(), whole.Bytes()) {
				t.Errorf("%d points: the JSON form differs (%v)", n, err)
			}
		}
		for name, write := range map[string]func(c *Curve, b *bytes.Buffer) error{
			"table": func(c *Curve, b *bytes.Buffer) error { return c.WriteTable(b) },
			"CSV":   func(c *Curve, b *bytes.Buffer) error { return c.WriteCSV(b) },
			"list":  func(c *Curve, b *bytes.Buffer) error { return c.WriteMarkdown(b) },
		} {
			var a, b bytes.Buffer
			if err := errors.Join(write(kept, &a), write(read, &b)); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
				t.Errorf("%d points: the %s differs (%v)", n, name, err)
			}
		}
		if w := read.CommonWarnings(); len(w) != 1 || w[0].Code != "common" {
			t.Errorf("%d points: common warnings %v", n, w)
		}
	}
	lost := errors.New("lost")
	if _, err := Read("users", []float64{1, 2}, func(i int) (*report.Summary, error) {
		return nil, lost
	}); !errors.Is(err, lost) {
		t.Errorf("a result that cannot be read: %v", err)
	}
}

// Of many points people are shown some, with the ends and what findings name.
func TestShownPoints(t *testing.T) {
	values := manyLoads(5000)
	c, err := Read("users", values, func(i int) (*report.Summary, error) { return risen(values[i]), nil })
	if err != nil {
		t.Fatal(err)
	}
	shown, err := c.Downsampled()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(shown.Points); n < mostPoints || n > mostPoints+20 || c.Omits() != "" || shown.Omits() == "" {
		t.Errorf("%d points are shown, %q", n, shown.Omits())
	}
	if !slices.IsSortedFunc(shown.Points, func(a, b Point) int { return int(math.Copysign(1, a.Value-b.Value)) }) {
		t.Error("points are out of order")
	}
	sorted := slices.Sorted(slices.Values(values))
	firstMissed, firstUnsteady := 0., 0.
	for _, v := range slices.Backward(sorted) {
		if v >= 333 {
			firstMissed = v
		}
		if v >= 700 {
			firstUnsteady = v
		}
	}
	for _, want := range []float64{1, 1000, c.Peak.Value, firstMissed, firstUnsteady, c.WarningSigns[0].Value} {
		if !slices.ContainsFunc(shown.Points, func(p Point) bool { return p.Value == want && p.Summary != nil }) {
			t.Errorf("the point at %g is not shown", want)
		}
	}
	if again, _ := shown.Downsampled(); len(again.Points) != len(shown.Points) {
		t.Errorf("shown again, it has %d points of %d", len(again.Points), len(shown.Points))
	}
}

// TestCurveMemory holds what a curve keeps of a result against the result's size, of some 6 kB, while it is made and
// later.
func TestCurveMemory(t *testing.T) {
	live := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	const n = 20_000
	values := manyLoads(n)
	before, during, asked := live(), 0., 0
	c, err := Read("engine.max_num_seqs", values, func(i int) (*report.Summary, error) {
		if asked++; asked == n {
			during = live()
		}
		return risen(values[i]), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	after := live()
	if each := (during - before) / n; each > 700 {
		t.Errorf("%.0f bytes of each point are kept while the curve is made", each)
	}
	if each := (after - before) / n; each > 250 {
		t.Errorf("%.0f bytes of each point are kept", each)
	}
	t.Logf("%.0f bytes of each point while the curve is made, %.0f later", (during-before)/n, (after-before)/n)
	runtime.KeepAlive(c)
	runtime.KeepAlive(values)
}
