package experiments

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Parallel does n things, jobs at a time, or one for each processor if jobs is 0. The first error ends it and
// cancels the context of the others. progress, unless it is nil, is told from one goroutine at a time how many are done.
func Parallel(ctx context.Context, n, jobs int, progress func(done, total int), do func(ctx context.Context, i int) error) error {
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
