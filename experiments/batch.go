package experiments

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"clifftop/experiments/scenario"
	"clifftop/report"
	"clifftop/report/collect"
)

// Parallel does n things, jobs at a time, or one for each processor if jobs is 0. The first error ends it and cancels
// the context of the others. progress, unless it is nil, is called from one goroutine at a time with the number of
// finished ones.
func Parallel(ctx context.Context, n, jobs int, progress func(done, total int),
	do func(ctx context.Context, i int) error) error {
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	runs, ctx := errgroup.WithContext(ctx)
	runs.SetLimit(jobs)
	var mu sync.Mutex
	done := 0
	for i := range n {
		runs.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := do(ctx, i); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			if progress != nil {
				progress(done, n)
			}
			return nil
		})
	}
	return runs.Wait()
}

// BatchOptions says how to run several setups.
type BatchOptions struct {
	// Jobs is the number of runs at a time; 0 is one for each processor. It changes no result.
	Jobs int
	// Check asserts the simulator's invariants throughout, at a cost.
	Check bool
	// Progress is called, from one goroutine at a time, with the number of finished runs.
	Progress func(done, total int)
	// Detail gives the summaries their details, for pictures.
	Detail bool
	// Keep, unless it is nil, is called with each result of [RunShared], from several goroutines.
	Keep func(i int, s *report.Summary) error
	// Cache keeps the results of the runs, and gives those that it has; nil keeps none.
	Cache *ResultCache
}

// runAll runs the setups on several processors. The results are in the order of the setups; those
// that were not run to their end are nil, and the error says why.
func runAll(ctx context.Context, setups []*scenario.Setup, o BatchOptions) ([]*report.Summary, error) {
	results := make([]*report.Summary, len(setups))
	err := Parallel(ctx, len(setups), o.Jobs, o.Progress, func(ctx context.Context, i int) error {
		var err error
		results[i], err = o.Cache.Run(ctx, setups[i], RunOptions{Check: o.Check, Detail: o.Detail}, "")
		return err
	})
	return results, err
}

// RunShared runs the setups on several processors, as runAll does. Runs of the same group share one window of
// measurement, so that they can be compared; see shareWindow. A group of which a run is missing has no results.
func RunShared(ctx context.Context, setups []*scenario.Setup, group func(i int) int, o BatchOptions) ([]*report.Summary,
	error) {
	var mu sync.Mutex
	of, left := map[int][]int{}, map[int]int{}
	for i := range setups {
		of[group(i)] = append(of[group(i)], i)
		left[group(i)]++
	}
	made, results := make([]*Result, len(setups)), make([]*report.Summary, len(setups))
	err := Parallel(ctx, len(setups), o.Jobs, o.Progress, func(ctx context.Context, i int) error {
		r, err := RunSetup(ctx, setups[i], RunOptions{Check: o.Check, Detail: o.Detail})
		if err != nil {
			return err
		}
		made[i] = r
		mu.Lock()
		left[group(i)]--
		last := left[group(i)] == 0
		mu.Unlock()
		if !last {
			return nil
		}
		var members []*Result
		for _, k := range of[group(i)] {
			members = append(members, made[k])
		}
		if len(members) > 1 {
			shareWindow(members)
		}
		for _, k := range of[group(i)] {
			results[k], made[k] = made[k].Summary, nil // the rest is no longer needed
			if o.Keep != nil {
				if err := o.Keep(k, results[k]); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return results, err
}

// Resamples is the number of resamples of [RunResampled].
const Resamples = 200

// RunResampled runs setups of the same recorded traffic once each, over one window of measurement, and says with the
// moving-block bootstrap what they might have measured on other traffic like it; see [collect.Resample].
func RunResampled(ctx context.Context, setups []*scenario.Setup, o BatchOptions) (results []*report.Summary,
	by collect.Resampling, again [][]*report.Summary, err error) {
	made := make([]*Result, len(setups))
	if err := Parallel(ctx, len(setups), o.Jobs, o.Progress, func(ctx context.Context, i int) error {
		var err error
		made[i], err = RunSetup(ctx, setups[i], RunOptions{Check: o.Check, Detail: o.Detail})
		return err
	}); err != nil {
		return nil, by, nil, err
	}
	shareWindow(made)
	var collectors []*collect.Collector
	for _, r := range made {
		results, collectors = append(results, r.Summary), append(collectors, r.collector)
	}
	const purpose = 0x626f6f74 // of the random numbers
	by, again = collect.Resample(collectors, Resamples, rand.New(rand.NewPCG(setups[0].Scenario.Run.Seed, purpose)))
	return results, by, again, nil
}
