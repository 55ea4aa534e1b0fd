// Command autoscaling simulates a day of chat on fixed fleets and on fleets with autoscalers. It writes tables and
// pictures.
//
//	go run ./experiments/studies/autoscaling -out experiments/studies/autoscaling
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
	p, err := paper.New(out, "autoscaling", paper.Meaning)
	if err != nil {
		return err
	}
	var all []results
	for _, day := range days {
		log.Printf("%s …", day)
		r := results{day: day, fleets: fleets}
		if r.runs, err = x.run(ctx, fleets, day, seeds); err != nil {
			return err
		}
		x.table(&p.Text, &r)
		all = append(all, r)
	}
	log.Print("cold starts …")
	var list []fleet
	for _, name := range started {
		for _, cold := range colds {
			f := named(name)
			f.cold = cold
			list = append(list, f)
		}
	}
	r := results{day: days[0], fleets: list}
	if r.runs, err = x.run(ctx, list, days[0], seeds); err != nil {
		return err
	}
	coldTable(&p.Text, &r)
	if err := p.Draw("cost", costs(all)); err != nil {
		return err
	}
	if err := p.Draw("day", plot.Draw(course(&all[0]))); err != nil {
		return err
	}
	return p.Save()
}
