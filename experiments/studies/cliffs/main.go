// Command cliffs shows four mechanisms by which throughput falls when the load rises. Each has controls: the same
// scenario without the mechanism. It writes tables and a picture for each.
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

	"clifftop/experiments/studies/paper"
)

func main() {
	grid := flag.String("search", "",
		"try all traffics of this `cliff`'s grid, and show those closest to the published numbers")
	paper.Main(func(ctx context.Context, out string) error { return run(ctx, out, *grid) })
}

func run(ctx context.Context, out, grid string) error {
	list, err := all()
	if err != nil {
		return err
	}
	if grid != "" {
		return searchOne(ctx, list, grid)
	}
	p, err := paper.New(out, "cliffs", paper.Meaning)
	if err != nil {
		return err
	}
	for _, c := range list {
		log.Printf("%s …", c.name)
		f, err := c.find(ctx)
		if err != nil {
			return err
		}
		f.write(&p.Text)
		if err := p.Draw(c.name, f.picture()); err != nil {
			return err
		}
	}
	return p.Save()
}

// find runs all simulations of a cliff.
func (c *cliff) find(ctx context.Context) (*findings, error) {
	drawn, err := c.run(ctx, []variant{baseline, c.controls[0]}, c.drawn, seeds)
	if err != nil {
		return nil, err
	}
	more, err := c.run(ctx, c.controls[1:], users, seeds)
	if err != nil {
		return nil, err
	}
	f := &findings{cliff: c, base: drawn[0], controls: append(drawn[1:2:2], more...)}
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
	return fmt.Errorf("there is no grid %q", name)
}
