// Command own-policy compares a new batching policy with vLLM's. It is the example of
// README.md:
//
//	go run ./experiments/own-policy
package main

import (
	"context"
	_ "embed"
	"fmt"
	"log"
	"os"

	"clifftop/experiments/compare"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/policy"
	"clifftop/sim/sched"
)

//go:embed scenario.yaml
var scenarioText []byte

func main() {
	log.SetFlags(0)
	s, err := scenario.Parse("scenario.yaml", scenarioText)
	if err != nil {
		log.Fatal(err)
	}
	use(s)
	variants, err := compare.Vary(s, "engine.policy=vllm,polite")
	if err != nil {
		log.Fatal(err)
	}
	verdict, err := compare.Run(context.Background(), variants, compare.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := verdict.WriteTable(os.Stdout); err != nil {
		log.Fatal(fmt.Errorf("printing: %w", err))
	}
}

// use makes the policy known to a scenario.
func use(s *scenario.Scenario) {
	s.Use(policy.Policy{
		Name: "polite",
		New:  func(*policy.Engine) sched.Scheduler { return &Polite{Share: 512} },
	})
}
