package collect

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"clifftop/report"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/simtest"
)

// A stage that is the whole window has the numbers of the window, also when the samples are sketched.
func TestStageOfTheWholeWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := simtest.Draw(t)
		cfg := config(&k)
		end := 512 * clock.Time(rapid.Int64Range(1, int64(clock.Second/512)).Draw(t, "end"))
		c := New(Options{End: end, Stages: []StageSpan{{Name: "all", End: end}}})
		c.exact = rapid.SampledFrom([]int{3, ExactSamples}).Draw(t, "exact")
		e, err := sim.New(cfg, k.Source(), c)
		if err != nil {
			t.Fatal(err)
		}
		e.Horizon = end
		if err := e.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		s := c.Summary()
		want := report.Stage{Name: "all", EndS: end.Seconds(), Throughput: s.Throughput, Latency: s.Latency}
		if len(s.Stages) != 1 || marshal(t, s.Stages[0]) != marshal(t, want) {
			t.Fatalf("%s\nwant\n%s", marshal(t, s.Stages), marshal(t, want))
		}
	})
}

// Stages share out what was done and who arrived.
func TestStagesShareOutTheRun(t *testing.T) {
	c := New(Options{Stages: []StageSpan{{"calm", at(10)}, {"rush", at(20)}, {"after", clock.Never}}})
	play(c, served(0, 1, 2, 3, 10), served(1, 9, 11, 12, 10), served(2, 10, 12, 20, 10), served(3, 21, 22, 25, 10))
	s := c.Summary()
	for i, want := range []struct {
		name            string
		start, end, n   float64
		perS, ttftMeanS float64
	}{{"calm", 0, 10, 2, .1, 1.5}, {"rush", 10, 20, 1, .2, 2}, {"after", 20, 25, 1, .2, 1}} {
		g := s.Stages[i]
		if g.Name != want.name || g.StartS != want.start || g.EndS != want.end || float64(g.Latency.TTFT.N) != want.n {
			t.Errorf("%+v, want %+v", g, want)
		}
		near(t, g.Name+" requests per second", g.Throughput.RequestsPerS, want.perS)
		near(t, g.Name+" mean TTFT", g.Latency.TTFT.Mean, 1000*want.ttftMeanS)
	}
	if s.Window.Stationary != nil || s.Window.WarmupS != 0 {
		t.Errorf("a run of stages was taken to be steady: %+v", s.Window)
	}
}

// A run that ends early has the stages that it reached.
func TestStagesNotReached(t *testing.T) {
	c := New(Options{Stages: []StageSpan{{"calm", at(10)}, {"rush", at(20)}}})
	play(c, served(0, 1, 2, 3, 10))
	if s := c.Summary(); len(s.Stages) != 1 || s.Stages[0].EndS != 3 {
		t.Errorf("%+v", s.Stages)
	}
}
