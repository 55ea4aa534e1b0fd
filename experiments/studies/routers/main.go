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
	"os"
	"path/filepath"
	"strings"

	"clifftop/experiments"
	"clifftop/report/plot"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", ".", "write results.md and pictures into this `directory`")
	trace := flag.String("trace", "", "a `file` with Mooncake's conversation trace; without it the recorded hour is left out")
	flag.Parse()
	if err := os.MkdirAll(*out, 0o777); err != nil {
		log.Fatal(err)
	}
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
	var text strings.Builder
	text.WriteString("# Results\n\nWritten by `go run ./experiments/studies/routers` with `-trace` and Mooncake's conversation trace; [README.md](README.md) says what they mean.\n" + legend)
	for _, c := range contests {
		log.Printf("%s …", c.name)
		if err := c.run(context.Background(), seeds); err != nil {
			log.Fatal(err)
		}
		c.table(&text)
		if err := draw(c.picture(), filepath.Join(*out, c.name+".png")); err != nil {
			log.Fatal(err)
		}
	}
	if *trace == "" {
		text.WriteString("\nThe recorded hour was left out: no `-trace` was given.\n")
	}
	if err := os.WriteFile(filepath.Join(*out, "results.md"), []byte(text.String()), 0o644); err != nil {
		log.Fatal(err)
	}
}

// draw writes a picture.
func draw(figure *plot.Figure, name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := figure.WritePNG(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// conversations is the traffic that needs no file.
func conversations() (*experiments.Scenario, error) {
	return experiments.Parse("conversations.yaml", conversationsYAML)
}
