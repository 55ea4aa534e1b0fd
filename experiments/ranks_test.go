package experiments_test

import (
	"slices"
	"testing"

	"clifftop/sim/route"

	"clifftop/experiments"
)

// TestDataParallelRanks wants an engine for each rank, behind vLLM's own balancer; those of a model with experts
// iterate in lock step.
func TestDataParallelRanks(t *testing.T) {
	const experts = "model: mixtral-8x7b\nworkload: {arrivals: {process: poisson, rate: 4}}\nrun: {requests: 300}\n" +
		"deployment: {tensor_parallel_size: 2, data_parallel_size: 2, expert_parallel_size: 4"
	for _, test := range []struct {
		text     string
		lockstep []int
	}{
		{"deployment: {data_parallel_size: 2}\nrun: {requests: 300}", []int{1, 1}},
		{experts + "}", []int{2}},
		{experts + ", replicas: 2}", []int{2, 2}},
	} {
		s := mustParse(t, test.text)
		u, err := s.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		f := u.Fleet(false)
		if !slices.Equal(f.Lockstep, test.lockstep) {
			t.Errorf("%s\ngroups of %v, want %v", test.text, f.Lockstep, test.lockstep)
		}
		if _, ok := f.Routers[0].(*route.VLLMDP); !ok {
			t.Errorf("%s\nthe router is a %T", test.text, f.Routers[0])
		}
		res := mustRun(t, s, experiments.RunOptions{Check: true})
		if n := res.Summary.Requests.Completed; n != 300 {
			t.Errorf("%s\n%d of 300 requests completed", test.text, n)
		}
	}
}

// TestDummiesCost wants ranks in lock step to lose time to padding that ranks of a dense model do not lose.
func TestDummiesCost(t *testing.T) {
	padding := func(text string) float64 {
		sum := mustRun(t, mustParse(t, text+"workload: {arrivals: {process: poisson, rate: 1}}\nrun: {requests: 200}"),
			experiments.RunOptions{}).Summary
		return *sum.System.GPUSeconds.Padding / (*sum.System.GPUSeconds.Useful + *sum.System.GPUSeconds.Padding)
	}
	if p := padding("deployment: {data_parallel_size: 2}\n"); p != 0 {
		t.Errorf("ranks of a dense model lose %.3g of their time to padding", p)
	}
	if p := padding("model: mixtral-8x7b\ndeployment: {tensor_parallel_size: 2, data_parallel_size: 2, expert_parallel_size: 4}\n"); p < .2 || p > .6 {
		t.Errorf("at a low load ranks in lock step lose %.3g of their time to padding, want about half or less", p)
	}
}
