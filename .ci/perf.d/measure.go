package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Measured is the cost of a case: per request, or of the whole process for a case with one size.
type Measured struct {
	*Profile
	Start float64 // instructions that do not depend on the number of requests
}

// Binary is a built command, counted under a name.
type Binary struct {
	Name, Path string
	Anchor     bool // takes the arguments of the anchor
}

// repeats is the number of runs of a case that counts whole processes. They differ by up to 3 %, because the runtime
// seeds its hash tables by chance; the cost of a request differs by 0.1 %.
const repeats = 5

// work is the folder in which processes run.
func work(scratch string) string { return filepath.Join(scratch, "work") }

// measure counts the cases of a binary, jobs processes at once. Counts do not depend on the load.
// Each process runs in the same folder of the scratch folder under the same name, and so has the same environment.
func measure(b Binary, list []Case, jobs int, scratch string, done func(Case, *Measured)) error {
	folder := work(scratch)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	results := make([][]*Profile, len(list))
	var all, tokens = sync.WaitGroup{}, make(chan struct{}, jobs)
	var errs []error
	var mutex sync.Mutex
	for i, c := range list {
		sizes := c.Sizes
		if len(sizes) == 1 {
			sizes = slices.Repeat(sizes, repeats)
		}
		results[i] = make([]*Profile, len(sizes))
		left := len(sizes)
		for k := len(sizes) - 1; k >= 0; k-- {
			tokens <- struct{}{}
			all.Go(func() {
				defer func() { <-tokens }()
				args, err := c.command(sizes[k], b.Anchor, folder)
				var p *Profile
				if err == nil {
					p, err = profile(b.Path, args, folder)
				}
				mutex.Lock()
				defer mutex.Unlock()
				if err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", c.Name, err))
				}
				results[i][k] = p
				if left--; left == 0 && len(errs) == 0 {
					done(c, c.combine(results[i]))
				}
			})
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// combine subtracts the profiles of both sizes. Of repeats it returns the one with the fewest instructions, and the
// smallest of the other counts.
func (c *Case) combine(profiles []*Profile) *Measured {
	if len(c.Sizes) == 1 {
		least := slices.MinFunc(profiles, func(p, q *Profile) int { return cmp.Compare(p.Counts[0], q.Counts[0]) })
		for _, p := range profiles {
			for i, count := range p.Counts {
				least.Counts[i] = min(least.Counts[i], count)
			}
		}
		return &Measured{Profile: least}
	}
	few, many := profiles[0], profiles[1]
	each := many.minus(few, c.each())
	return &Measured{Profile: each, Start: few.Counts[0] - each.Counts[0]*float64(c.Sizes[0]*max(c.Runs, 1))}
}
