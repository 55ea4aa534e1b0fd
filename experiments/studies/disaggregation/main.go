// Command disaggregation asks which requests are better served by GPUs of their own for prompts and for answers, and writes
// a table and a picture.
//
//	go run ./experiments/studies/disaggregation -out experiments/studies/disaggregation
package main

import (
	"context"
	"flag"
	"log"

	"clifftop/experiments/studies/paper"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", ".", "write results.md and the picture into this `directory`")
	flag.Parse()
	list, err := readTraffics()
	if err != nil {
		log.Fatal(err)
	}
	p, err := paper.New(*out, "disaggregation", paper.Meaning)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range list {
		log.Printf("%s …", t.scenario.Name)
		if err := t.run(context.Background()); err != nil {
			log.Fatal(err)
		}
		t.table(&p.Text)
	}
	if err := p.Save(); err != nil {
		log.Fatal(err)
	}
	if err := p.Draw("capacity", picture(list)); err != nil {
		log.Fatal(err)
	}
}
