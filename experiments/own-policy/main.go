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

	"clifftop/experiments"
	"clifftop/sim/sched"
)

//go:embed scenario.yaml
var scenario []byte

func main() {
	log.SetFlags(0)
	s, err := experiments.Parse("scenario.yaml", scenario)
	if err != nil {
		log.Fatal(err)
	}
	use(s)
	variants, err := experiments.Vary(s, "engine.policy=vllm,polite")
	if err != nil {
		log.Fatal(err)
	}
	verdict, err := experiments.Compare(context.Background(), variants, experiments.CompareOptions{})
	if err != nil {
		log.Fatal(err)
	}
	if err := verdict.WriteTable(os.Stdout); err != nil {
		log.Fatal(fmt.Errorf("printing: %w", err))
	}
}

// use makes the policy known to a scenario.
func use(s *experiments.Scenario) {
	s.Use(experiments.Policy{
		Name: "polite",
		New:  func(*experiments.Engine) sched.Scheduler { return &Polite{Share: 512} },
	})
}
