// Command routers compares all routers on a fleet of eight replicas: on conversations, on a recorded hour if its file
// is given, with old metrics, and with several front ends. It writes tables and pictures.
//
//	go run ./experiments/studies/routers -out experiments/studies/routers
//	go run ./experiments/studies/routers -out experiments/studies/routers -trace conversation_trace.jsonl.gz
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"

	"clifftop/experiments/scenario"
	"clifftop/experiments/studies/paper"
)

func main() {
	trace := flag.String("trace", "",
		"`file` with Mooncake's conversation trace; without it, the recorded hour is left out")
	paper.Main(func(ctx context.Context, out string) error { return run(ctx, out, *trace) })
}

func run(ctx context.Context, out, trace string) error {
	if trace != "" { // it is read last, many minutes later
		if _, err := os.Stat(trace); err != nil {
			return fmt.Errorf("-trace: %w", err)
		}
	}
	talk, err := conversations()
	if err != nil {
		return err
	}
	all, err := routers()
	if err != nil {
		return err
	}
	contests := []*contest{shootout(talk, all), staleness(talk), frontEnds(talk)}
	if trace != "" {
		hour, err := recorded(trace)
		if err != nil {
			return err
		}
		contests = append(contests, shootout(hour, all))
	}
	p, err := paper.New(out, "routers", " with `-trace` and Mooncake's conversation trace"+paper.Meaning)
	if err != nil {
		return err
	}
	p.Text.WriteString(legend)
	for _, c := range contests {
		log.Printf("%s …", c.name)
		if err := c.run(ctx, seeds); err != nil {
			return err
		}
		c.table(&p.Text)
		if err := p.Draw(c.name, c.picture()); err != nil {
			return err
		}
	}
	if trace == "" {
		p.Text.WriteString("\nThe recorded hour was left out: no `-trace` was given.\n")
	}
	return p.Save()
}

// conversations returns the traffic that needs no file.
func conversations() (*scenario.Scenario, error) {
	return scenario.Parse("conversations.yaml", conversationsYAML)
}
