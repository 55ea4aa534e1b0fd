package experiments_test

import (
	"context"
	"fmt"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/sweep"
)

func ExampleRun() {
	s, err := scenario.Parse("chat.yaml", []byte(`
workload: {arrivals: {process: poisson, rate: 8}}
run: {requests: 1000}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := experiments.Run(context.Background(), s, experiments.RunOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Summary.Requests.Completed, "requests completed")
	// Output: 1000 requests completed
}

func ExampleParse() {
	_, err := scenario.Parse("chat.yaml", []byte("engine:\n  max_num_seq: 0\nrun: {duration: 60}\n"))
	fmt.Println(err)
	// Output:
	// chat.yaml:2:3: engine.max_num_seq: unknown key
	// chat.yaml:3:17: run.duration: 60 has no unit (want a duration with a unit of ns, us, ms, s, m or h, such as 60s)
}

func Example_sweep() {
	s, err := scenario.Load("", scenario.Setting{Key: "run.requests", Value: "500"})
	if err != nil {
		fmt.Println(err)
		return
	}
	curve, err := sweep.Run(context.Background(), s, sweep.Options{
		Over: scenario.UsersKey, Values: []string{"1", "10", "100"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range curve.Points {
		fmt.Println(p.Value, "users,", p.Summary.Requests.Completed, "requests")
	}
	// Output:
	// 1 users, 500 requests
	// 10 users, 500 requests
	// 100 users, 500 requests
}
