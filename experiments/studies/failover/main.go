// Command failover takes one of several replicas away, in one way or another, and asks whether the others carry on, when all
// is well again, and what clients see. It writes tables and pictures.
//
//	go run ./experiments/studies/failover -out experiments/studies/failover
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"path/filepath"
	"strings"

	"clifftop/report/chart"
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
	var text strings.Builder
	text.WriteString("# Results\n\nWritten by `go run ./experiments/studies/failover`; [README.md](README.md) says what they mean.\n")
	x.tables(&text, runs)
	sizeTable(&text, good)
	cacheTable(&text, talks)
	if err := os.WriteFile(filepath.Join(out, "results.md"), []byte(text.String()), 0o644); err != nil {
		return err
	}
	if err := write(filepath.Join(out, "recovery.png"), recovery(runs)); err != nil {
		return err
	}
	return write(filepath.Join(out, "caches.png"), caches(talks))
}

// write draws a picture.
func write(name string, p chart.Picture) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := plot.Draw(p).WritePNG(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
