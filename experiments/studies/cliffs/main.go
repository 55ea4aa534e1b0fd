// Command cliffs makes throughput fall as load rises, by one mechanism after another, and takes each away again. It writes a
// table and a picture for each.
//
//	go run ./experiments/studies/cliffs -out experiments/studies/cliffs
//	go run ./experiments/studies/cliffs -search preempt
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", ".", "write results.md and pictures into this `directory`")
	grid := flag.String("search", "", "try all traffics of a `cliff`'s grid instead, and show the nearest to what was published")
	flag.Parse()
	if err := run(context.Background(), *out, *grid); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out, grid string) error {
	list, err := all()
	if err != nil {
		return err
	}
	if grid != "" {
		return searchOne(ctx, list, grid)
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	var text strings.Builder
	text.WriteString("# Results\n\nWritten by `go run ./experiments/studies/cliffs`; [README.md](README.md) says what they mean.\n")
	for _, c := range list {
		log.Printf("%s …", c.name)
		f, err := c.find(ctx)
		if err != nil {
			return err
		}
		f.write(&text)
		if err := draw(f, filepath.Join(out, c.name)); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(out, "results.md"), []byte(text.String()), 0o644)
}

// find runs all that is told of a cliff.
func (c *cliff) find(ctx context.Context) (*findings, error) {
	drawn, err := c.run(ctx, []variant{baseline, c.twins[0]}, c.drawn, seeds)
	if err != nil {
		return nil, err
	}
	more, err := c.run(ctx, c.twins[1:], users, seeds)
	if err != nil {
		return nil, err
	}
	f := &findings{cliff: c, base: drawn[0], twins: append(drawn[1:2:2], more...)}
	dir, err := os.MkdirTemp("", "cliffs")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	other, err := c.variations(dir)
	if err != nil {
		return nil, err
	}
	varied, err := c.run(ctx, other, []int{before, after}, seeds)
	f.varied = append([]*runs{f.base}, varied...)
	return f, err
}

func searchOne(ctx context.Context, list []*cliff, name string) error {
	for _, c := range list {
		if c.name == name && c.search.size() > 1 {
			found, err := c.try(ctx)
			if err != nil {
				return err
			}
			fmt.Print(c.table(found, 10))
			return nil
		}
	}
	return fmt.Errorf("no grid is called %q", name)
}

// draw writes the picture of a cliff.
func draw(f *findings, name string) error {
	w, err := os.Create(name + ".png")
	if err != nil {
		return err
	}
	if err := f.picture().WritePNG(w); err != nil {
		w.Close()
		return err
	}
	return w.Close()
}
