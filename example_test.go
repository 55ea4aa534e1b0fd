package clifftop_test

import (
	"context"
	"fmt"

	"clifftop"
)

// Simulate one operating point and print two metrics. A statistic over no sample is nil, so check before use.
func Example() {
	s, err := clifftop.Load("", clifftop.Setting{Key: "run.requests", Value: "1000"})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := clifftop.Run(context.Background(), s, clifftop.RunOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Summary.Requests.Completed, "requests completed")
	if p95 := result.Summary.Latency.TTFT.P95; p95 != nil {
		fmt.Println("p95 TTFT below one second:", *p95 < 1000)
	}
	// Output:
	// 1000 requests completed
	// p95 TTFT below one second: true
}

func ExampleParse() {
	_, err := clifftop.Parse("chat.yaml", []byte("engine:\n  max_num_seq: 3\n"))
	fmt.Println(err)
	// Output: chat.yaml:2:3: engine.max_num_seq: unknown key
}

func ExampleSweep() {
	s, err := clifftop.Load("", clifftop.Setting{Key: "run.requests", Value: "300"})
	if err != nil {
		fmt.Println(err)
		return
	}
	curve, err := clifftop.Sweep(context.Background(), s, clifftop.SweepOptions{
		Over: "users", Values: []string{"1", "10", "100"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range curve.Points {
		fmt.Println(p.Value, "users,", p.Summary.Requests.Completed, "requests")
	}
	// Output:
	// 1 users, 300 requests
	// 10 users, 300 requests
	// 100 users, 300 requests
}

func ExampleCompare() {
	variants := make([]clifftop.Variant, 2)
	for i, policy := range []string{"vllm", "static"} {
		s, err := clifftop.Load("",
			clifftop.Setting{Key: "engine.policy", Value: policy},
			clifftop.Setting{Key: "run.requests", Value: "500"})
		if err != nil {
			fmt.Println(err)
			return
		}
		variants[i] = clifftop.Variant{Name: policy, Scenario: s}
	}
	verdict, err := clifftop.Compare(context.Background(), variants, clifftop.CompareOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("static batching passes:", verdict.Pass)
	// Output: static batching passes: false
}

func ExamplePlan() {
	s, err := clifftop.Load("",
		clifftop.Setting{Key: "workload.arrivals.rate", Value: "4"},
		clifftop.Setting{Key: "plan.gpus", Value: "[h100-sxm, l40s]"},
		clifftop.Setting{Key: "plan.max_gpus", Value: "4"},
		clifftop.Setting{Key: "run.requests", Value: "300"})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := clifftop.Plan(context.Background(), s, clifftop.PlanOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("deployments meet the SLO:", len(plan.Candidates) > 0)
	// Output: deployments meet the SLO: true
}
