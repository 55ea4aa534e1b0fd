// Command disaggregation finds out for which traffic separate GPUs for prefill and decode are better. It writes a table
// and a picture.
//
//	go run ./experiments/studies/disaggregation -out experiments/studies/disaggregation
package main

import (
	"context"
	"log"

	"clifftop/experiments/studies/paper"
)

func main() { paper.Main(run) }

func run(ctx context.Context, out string) error {
	list, err := readTraffics()
	if err != nil {
		return err
	}
	p, err := paper.New(out, "disaggregation", paper.Meaning)
	if err != nil {
		return err
	}
	for _, t := range list {
		log.Printf("%s …", t.scenario.Name)
		if err := t.run(ctx); err != nil {
			return err
		}
		t.table(&p.Text)
	}
	if err := p.Draw("capacity", picture(list)); err != nil {
		return err
	}
	return p.Save()
}
