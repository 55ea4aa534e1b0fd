package simtest

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/simtest/naive"
	"clifftop/workload"
)

// clientSpec draws what clients do, around iterations of some milliseconds.
func (d drawer) clientSpec() workload.ClientSpec {
	some := func(name string) clock.Duration {
		return clock.Duration(d.between(name, 1, 200)) * 2 * clock.Millisecond
	}
	s := workload.ClientSpec{
		Timeout: some("timeout"), Retries: int32(d.between("retries", 0, 3)), RetryOn: workload.Retryable,
		Silent: d.once("silent", 4),
		Backoff: workload.Backoff{Base: some("base"), Cap: clock.Second, Factor: 2,
			Jitter: []string{"none", "full", "equal", "openai"}[d.of("jitter", 4)]},
	}
	if d.once("first", 2) {
		s.FirstTimeout = s.Timeout/2 + 1
	}
	if d.once("cancel", 3) {
		s.Cancel, s.CancelAfter = 0.5, workload.Delay{Distribution: "exponential", Mean: some("after")}
	}
	if d.once("budget", 4) {
		s.RetryBudget = 0.5
	}
	if d.once("reading", 3) {
		s.Reading = float64(d.between("speed", 20, 400))
	}
	return s
}

// TestClients checks that clients get the same results with and without spans and from the naive engine, and that their
// requests and further attempts are the same.
func TestClients(t *testing.T) {
	again := 0
	for _, p := range Policies() {
		t.Run(p.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := p.Draw(t)
				c.retries = Retries{}
				for i := range c.requests {
					c.requests[i].Client = nil
				}
				spec := drawer{t}.clientSpec()
				source := func() workload.Source {
					src, err := workload.NewClients(c.Source(), 7, spec)
					if err != nil {
						t.Fatal(err)
					}
					return src
				}
				reference := new(StepRecorder)
				if err := naive.Run(c.Config(), source(), reference); err != nil {
					t.Fatalf("naive: %v\n%+v\n%v", err, spec, c)
				}
				for i := range reference.Records {
					if reference.Records[i].Again {
						again++
					}
				}
				for _, maxSpan := range []int{1, 0} {
					cfg, recorder := c.Config(), new(Recorder)
					cfg.MaxSpan, cfg.Check = maxSpan, true
					e, err := sim.New(cfg, source(), recorder)
					if err == nil {
						err = e.Run(context.Background())
					}
					if d := Diff(&reference.Recorder, recorder); err != nil || d != "" {
						t.Fatalf("spans of %d: %v, %s\n%+v\n%v", maxSpan, err, d, spec, c)
					}
				}
			})
		})
	}
	if again < 100 {
		t.Errorf("only %d attempts were followed by others", again)
	}
	t.Logf("%d attempts were followed by others", again)
}
