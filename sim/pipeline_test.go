package sim_test

import (
	"strings"
	"testing"

	"clifftop/model"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/sched"
)

// What does not go with pipeline stages is refused by name, and by number where it is of the fleet.
func TestPipelineFaults(t *testing.T) {
	good := engine.Config{
		Scheduler: &sched.VLLM{}, Timer: model.NewLinear(clock.Millisecond, 0), MaxNumSeqs: 4, MaxNumBatchedTokens: 64,
		MaxModelLen: 64,
		BlockSize:   16, NumGPUBlocks: 11, PrefixCaching: true, Stages: 2,
	}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spoil func(c *engine.Config)
		want  string
	}{
		{func(c *engine.Config) { c.Stages = -1 }, "pipeline stages: -1 is not allowed"},
		{func(c *engine.Config) { c.Stages = 2000 }, "want 1 to 1024"},
		{func(c *engine.Config) { c.Radix = true }, "a radix cache"},
		{func(c *engine.Config) { c.PrefixCaching, c.HostBlocks = false, 5 }, "swap space"},
		{func(c *engine.Config) { c.Speculative.Tokens = 2 }, "speculative decoding"},
		{func(c *engine.Config) { c.Order = sched.VTC{} }, "shares service"},
		{func(c *engine.Config) { c.Scheduler = &sched.Sarathi{} }, "*sched.Sarathi does not go with them"},
		{func(c *engine.Config) {
			c.Scheduler = &sched.VLLM{Admission: sched.FullLength}
		}, "the full length of requests"},
		{func(c *engine.Config) {
			c.Order, c.Scheduler = sched.ByPriority{}, &sched.Preemptive{VLLM: sched.VLLM{Victim: sched.LeastUrgent}}
		}, "policy preemptive"},
	} {
		bad := good
		c.spoil(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	fleet := sim.Fleet{Replicas: []engine.Config{good, good}, Lockstep: []int{2}}
	if err, want := fleet.Validate(), "lock step: replica 0 has pipeline stages"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
