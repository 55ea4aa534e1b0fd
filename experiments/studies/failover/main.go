// Command failover removes one of several replicas, by a crash or in another way. It finds out whether the others can
// serve the load, when everything is normal again, and what clients see. It writes tables and pictures.
//
//	go run ./experiments/studies/failover -out experiments/studies/failover
package main

import (
	"context"
	"log"

	"clifftop/experiments/studies/paper"
	"clifftop/report/plot"
)

func main() { paper.Main(run) }

func run(ctx context.Context, out string) error {
	x, err := newStudy(ctx)
	if err != nil {
		return err
	}
	log.Print("one of four …")
	runs, err := x.run(ctx, systems, loads, seeds)
	if err != nil {
		return err
	}
	log.Print("one of n …")
	good, err := x.withoutOne(ctx, sizes, tried, seeds)
	if err != nil {
		return err
	}
	log.Print("caches …")
	talks, err := x.converse(ctx, seeds)
	if err != nil {
		return err
	}
	p, err := paper.New(out, "failover", paper.Meaning)
	if err != nil {
		return err
	}
	x.tables(&p.Text, runs)
	sizeTable(&p.Text, good)
	cacheTable(&p.Text, talks)
	if err := p.Draw("recovery", plot.Draw(recovery(runs))); err != nil {
		return err
	}
	if err := p.Draw("caches", plot.Draw(caches(talks))); err != nil {
		return err
	}
	return p.Save()
}
