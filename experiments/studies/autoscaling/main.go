// Command autoscaling serves a day of chat by fleets that follow the load and by fleets that do not, and writes tables and
// pictures.
//
//	go run ./experiments/studies/autoscaling -out experiments/studies/autoscaling
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"path/filepath"
	"strings"

	"clifftop/report/plot"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", ".", "write results.md and the pictures into this `directory`")
	flag.Parse()
	if err := run(context.Background(), *out); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out string) error {
	x, err := newStudy(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	var text strings.Builder
	text.WriteString("# Results\n\nWritten by `go run ./experiments/studies/autoscaling`; [README.md](README.md) says what they mean.\n")
	var all []results
	for _, day := range days {
		log.Printf("%s …", day)
		r := results{day: day, fleets: fleets}
		if r.runs, err = x.run(ctx, fleets, day, seeds); err != nil {
			return err
		}
		x.table(&text, &r)
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
	coldTable(&text, &r)
	if err := os.WriteFile(filepath.Join(out, "results.md"), []byte(text.String()), 0o644); err != nil {
		return err
	}
	if err := write(filepath.Join(out, "cost.png"), costs(all)); err != nil {
		return err
	}
	return write(filepath.Join(out, "day.png"), plot.Draw(course(&all[0])))
}

// write draws a picture.
func write(name string, p *plot.Figure) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := p.WritePNG(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
