package sim_test

import (
	"math"
	"testing"

	"clifftop/internal/testenv"
	"clifftop/sim/engine"
	"clifftop/sim/sched"
)

// byAnswer is a single server with one seat, lengths in milliseconds, under an order by the output's length.
func byAnswer(order func(z sched.Size) sched.Order, z sched.Size, policy func() sched.Scheduler) func() engine.Config {
	return func() engine.Config {
		cfg := server(1, 1e-3, 0)
		z.PerOutput = 1
		cfg.Order, cfg.Scheduler = order(z), policy()
		return cfg
	}
}

func shortest(z sched.Size) sched.Order  { return sched.SJF{Size: z} }
func remaining(z sched.Size) sched.Order { return sched.SRPT{Size: z} }

func plain() sched.Scheduler { return new(sched.VLLM) }
func preemptive() sched.Scheduler {
	return &sched.Preemptive{VLLM: sched.VLLM{Victim: sched.LeastUrgent}}
}

// M/M/1 at ρ = 0.8, shortest job first: a job of size x waits λE[S²]/2(1-ρ(x))², where ρ(x) is the load of jobs that
// need at most x (Phipps). Shortest remaining processing time by Schrage and Miller: a job of size x stays
// λ(∫₀ˣt²f + x²(1-F(x)))/2(1-ρ(x))² + ∫₀ˣdt/(1-ρ(t)). A preempted request computes its tokens again, which costs
// nothing here. Under SRPT an arrival waits for half a token of the running one.
func TestTheoryShortestFirst(t *testing.T) {
	const lambda, dx = 0.8, 1e-4
	var waitSJF, staySRPT, squares, slowed float64
	for x := dx / 2; x < 40; x += dx {
		f, tail := math.Exp(-x), math.Exp(-x)
		squares += x * x * f * dx
		load := lambda * (1 - math.Exp(-x)*(1+x))
		slowed += dx / (1 - load)
		waitSJF += f * dx * lambda * 2 / 2 / (1 - load) / (1 - load)
		staySRPT += f * dx * (lambda*(squares+x*x*tail)/2/(1-load)/(1-load) + slowed)
	}
	law := open(lambda, exponential(1000), 30_000)
	ys := replicate(t, byAnswer(shortest, sched.Size{}, plain), law, 2000, 0)
	within(t, "Wq of SJF", ys, meanWait, waitSJF, 1e-3)
	ys = replicate(t, byAnswer(remaining, sched.Size{}, preemptive), law, 2000, 0)
	within(t, "W of SRPT", ys, meanResidence, staySRPT, 1e-3)
}

// The worse the output's length is predicted, the longer shortest job first keeps requests waiting, from the
// oracle's time to that of first come, first served, which is 4.
func TestPredictionErrorCosts(t *testing.T) {
	testenv.NeedsLong(t, "many prediction errors, 2 s")
	last := 0.0
	for _, sigma := range []float64{0, 0.5, 1, 2, 8} {
		ys := replicate(t, byAnswer(shortest, sched.Size{Error: sigma, Seed: 1}, plain),
			open(0.8, exponential(1000), 15_000), 2000, 0)
		mean := 0.0
		for _, y := range ys {
			mean += meanWait(y) / float64(len(ys))
		}
		t.Logf("sigma %v: Wq %.3f", sigma, mean)
		if mean <= last || mean > 4.2 {
			t.Errorf("sigma %v: Wq %.3f after %.3f, want more, up to 4", sigma, mean, last)
		}
		last = mean
	}
	if last < 3.2 {
		t.Errorf("Wq %.3f with useless predictions, want nearly 4", last)
	}
}
