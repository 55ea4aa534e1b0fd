package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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

// measure counts the cases of a binary, as many at once as there are processors. Counts do not depend on the load.
// Each process runs in the same folder of the scratch folder under the same name, and so has the same environment.
func measure(b Binary, list []Case, scratch string, done func(Case, *Measured)) error {
	folder := filepath.Join(scratch, "work")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	type result struct {
		profile *Profile
		err     error
	}
	results := make([][]result, len(list))
	var all, tokens = sync.WaitGroup{}, make(chan struct{}, runtime.NumCPU())
	var errs []error
	var mutex sync.Mutex
	for i, c := range list {
		results[i] = make([]result, len(c.Sizes))
		left := len(c.Sizes)
		for k := len(c.Sizes) - 1; k >= 0; k-- {
			tokens <- struct{}{}
			all.Go(func() {
				defer func() { <-tokens }()
				args, err := c.command(c.Sizes[k], b.Anchor, folder)
				var p *Profile
				if err == nil {
					p, err = profile(b.Path, args, folder)
				}
				mutex.Lock()
				defer mutex.Unlock()
				if err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", c.Name, err))
				}
				results[i][k] = result{p, err}
				if left--; left == 0 && len(errs) == 0 {
					done(c, c.combine(results[i][0].profile, results[i][len(c.Sizes)-1].profile))
				}
			})
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// combine subtracts the profiles of both sizes.
func (c *Case) combine(few, many *Profile) *Measured {
	if len(c.Sizes) == 1 {
		return &Measured{Profile: few}
	}
	each := many.minus(few, c.each())
	return &Measured{Profile: each, Start: few.Counts[0] - each.Counts[0]*float64(c.Sizes[0]*max(c.Runs, 1))}
}
