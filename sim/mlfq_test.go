package sim_test

import (
	"slices"
	"testing"

	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// byLength is the mean time from arrival to last token, in seconds, of the half of the requests with the shortest
// outputs and of the tenth with the longest ones, and the longest of all.
func byLength(y *trial) (short, long, worst float64) {
	records := slices.Clone(y.Records)
	slices.SortStableFunc(records, func(a, b event.Record) int {
		return int(a.Request.OutputTokens) - int(b.Request.OutputTokens)
	})
	stay := func(list []event.Record) (mean float64) {
		for i := range list {
			d := list[i].LastToken.Sub(list[i].Request.Arrival).Seconds()
			mean += d / float64(len(list))
			worst = max(worst, d)
		}
		return mean
	}
	return stay(records[:len(records)/2]), stay(records[len(records)*9/10:]), worst
}

// TestMLFQ: at high load, short outputs end far sooner under skip-join MLFQ than in order of arrival, without
// the engine knowing that they are short. The longest take longer, but none starves: with a starvation time the
// worst stay is shorter than without.
func TestMLFQ(t *testing.T) {
	load := workload.Spec{
		Arrivals: []workload.Phase{{Process: "poisson", Rate: 11}}, Requests: 1500,
		Input:  workload.LengthsSpec{Distribution: "gamma", Mean: 100, CV: 0.3},
		Output: workload.LengthsSpec{Distribution: "lognormal", Mean: 150, CV: 2, Max: 4000},
	}
	mlfq := func(starvation clock.Duration) sched.Scheduler {
		return &sched.MLFQ{Quantum: 256, Ratio: 2, Levels: 6, Starvation: starvation}
	}
	for seed := range uint64(3) {
		config := func(policy sched.Scheduler) engine.Config {
			cfg := gpu(policy, 16, 2048, 4000)
			cfg.HostBlocks, cfg.HostFemtosPerBlock = 20_000, 4e10
			return cfg
		}
		short, long, worst := byLength(try(t, config(new(sched.VLLM)), load, seed))
		t.Logf("seed %d, in order of arrival: short %.2f s, long %.1f s, worst %.1f s", seed, short, long, worst)
		forever := try(t, config(mlfq(0)), load, seed)
		fs, fl, fw := byLength(forever)
		t.Logf("seed %d, MLFQ: short %.2f s, long %.1f s, worst %.1f s, %d preemptions", seed, fs, fl, fw,
			forever.preemptions)
		raised := try(t, config(mlfq(10*clock.Second)), load, seed)
		rs, rl, rw := byLength(raised)
		t.Logf("seed %d, MLFQ with a starvation time: short %.2f s, long %.1f s, worst %.1f s, %d preemptions", seed,
			rs, rl, rw, raised.preemptions)
		if fs > 0.6*short || rs > 0.6*short {
			t.Errorf("seed %d: short outputs take %.2f and %.2f s, in order of arrival %.2f s", seed, fs, rs, short)
		}
		if rw > 0.9*fw || rw > 4*worst || rl > 2.5*long {
			t.Errorf("seed %d: the worst takes %.1f s, without starvation time %.1f s, in order of arrival %.1f s; long ones %.1f s and %.1f s",
				seed, rw, fw, worst, rl, long)
		}
		if fl < long {
			t.Errorf("seed %d: long outputs take %.1f s, in order of arrival %.1f s; want longer", seed, fl, long)
		}
	}
}
