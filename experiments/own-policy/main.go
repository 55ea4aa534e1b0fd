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
	"clifftop/sim/rule"
	"clifftop/sim/sched"
)

//go:embed scenario.yaml
var scenarioText []byte

func main() {
	log.SetFlags(0)
	s, err := rules().Parse("scenario.yaml", scenarioText)
	if err != nil {
		log.Fatal(err)
	}
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

// rules has the policy of this program, and then the rules of Clifftop.
func rules() *scenario.Rules {
	r := scenario.BuiltIn()
	r.Policies = append(rule.List[sched.Options]{politeRule}, r.Policies...)
	return r
}
