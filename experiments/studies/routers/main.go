// Command routers holds all routers against each other on a fleet of eight replicas, under conversations that anybody can
// repeat and, where it is given, under a recorded hour; and what becomes of them when what they know is old, or when
// several front ends share the traffic. It writes a table and pictures.
//
//	go run ./experiments/studies/routers -out experiments/studies/routers
//	go run ./experiments/studies/routers -out experiments/studies/routers -trace conversation_trace.jsonl.gz
package main

import (
	"context"
	"flag"
	"log"

	"clifftop/experiments"
	"clifftop/experiments/studies/paper"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", ".", "write results.md and pictures into this `directory`")
	trace := flag.String("trace", "", "a `file` with Mooncake's conversation trace; without it the recorded hour is left out")
	flag.Parse()
	talk, err := conversations()
	if err != nil {
		log.Fatal(err)
	}
	all, err := routers()
	if err != nil {
		log.Fatal(err)
	}
	contests := []*contest{shootout(talk, all), staleness(talk), frontEnds(talk)}
	if *trace != "" {
		hour, err := recorded(*trace)
		if err != nil {
			log.Fatal(err)
		}
		contests = append(contests, shootout(hour, all))
	}
	p, err := paper.New(*out, "routers", " with `-trace` and Mooncake's conversation trace"+paper.Meaning)
	if err != nil {
		log.Fatal(err)
	}
	p.Text.WriteString(legend)
	for _, c := range contests {
		log.Printf("%s …", c.name)
		if err := c.run(context.Background(), seeds); err != nil {
			log.Fatal(err)
		}
		c.table(&p.Text)
		if err := p.Draw(c.name, c.picture()); err != nil {
			log.Fatal(err)
		}
	}
	if *trace == "" {
		p.Text.WriteString("\nThe recorded hour was left out: no `-trace` was given.\n")
	}
	if err := p.Save(); err != nil {
		log.Fatal(err)
	}
}

// conversations is the traffic that needs no file.
func conversations() (*experiments.Scenario, error) {
	return experiments.Parse("conversations.yaml", conversationsYAML)
}
