// Command policies compares the batching policies on the same traffic, and writes a table and a picture for each kind
// of traffic.
//
//	go run ./experiments/studies/policies -out experiments/studies/policies
package main

import (
	"context"
	"flag"
	"log"
	"strings"

	"clifftop/experiments/studies/paper"
)

func main() {
	requests := flag.Int("requests", 4000, "requests per run")
	paper.Main(func(ctx context.Context, out string) error { return run(ctx, out, *requests) })
}

func run(ctx context.Context, out string, requests int) error {
	list, err := readTraffics()
	if err != nil {
		return err
	}
	p, err := paper.New(out, "policies", paper.Meaning)
	if err != nil {
		return err
	}
	for _, t := range list {
		log.Printf("%s …", t.name)
		if err := t.run(ctx, policies, requests); err != nil {
			return err
		}
		t.table(&p.Text, policies)
		if err := p.Draw(strings.ReplaceAll(t.name, " ", "-"), t.picture(policies)); err != nil {
			return err
		}
	}
	return p.Save()
}
