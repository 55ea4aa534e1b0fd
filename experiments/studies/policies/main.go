// Command policies compares the batching policies on the same traffic, and writes a table and a picture for each
// kind of it.
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
	log.SetFlags(0)
	out := flag.String("out", ".", "write results.md and pictures into this `directory`")
	requests := flag.Int("requests", 4000, "requests of each run")
	flag.Parse()
	list, err := readTraffics()
	if err != nil {
		log.Fatal(err)
	}
	p, err := paper.New(*out, "policies", paper.Meaning)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range list {
		log.Printf("%s …", t.name)
		if err := t.run(context.Background(), policies, *requests); err != nil {
			log.Fatal(err)
		}
		t.table(&p.Text, policies)
		if err := p.Draw(strings.ReplaceAll(t.name, " ", "-"), t.picture(policies)); err != nil {
			log.Fatal(err)
		}
	}
	if err := p.Save(); err != nil {
		log.Fatal(err)
	}
}
