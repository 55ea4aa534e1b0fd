package experiments

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"clifftop/experiments/grid"
	"clifftop/experiments/scenario"
	"clifftop/report"
)

// ErrMissing is the end of a run that a [ResultCache] which makes none does not have.
var ErrMissing = errors.New("the run is missing")

// A ResultCache keeps the results of runs that are chosen by what earlier ones gave: a search that comes the same way
// again, in this process or in another, takes them from there. A nil one keeps nothing.
type ResultCache struct {
	find func(key string) (data []byte, ok bool, err error) // nil where nothing is taken from what is kept
	keep func(key string, data []byte) error                // nil where nothing is made

	made, found atomic.Int64
}

// NewResultCache keeps results in a store, and takes those that are there if resume says so. Otherwise all runs are
// made, and results that are there must be the same.
func NewResultCache(store *grid.Store, resume bool) *ResultCache {
	l := &ResultCache{keep: store.Put}
	if resume {
		l.find = store.Get
	}
	return l
}

// ReadResultCache has the results that tasks have kept. Other runs end with [ErrMissing].
func ReadResultCache(runs *grid.Joined) *ResultCache { return &ResultCache{find: runs.Find} }

// Made returns the number of runs that were simulated.
func (l *ResultCache) Made() int { return int(l.made.Load()) }

// Found returns the number of runs whose results were in the cache.
func (l *ResultCache) Found() int { return int(l.found.Load()) }

// Run makes a run, or takes its result. about says what sets it apart from other runs of the setup's scenario.
func (l *ResultCache) Run(ctx context.Context, u *scenario.Setup, o RunOptions, about string) (*report.Summary, error) {
	if l == nil {
		return summary(RunSetup(ctx, u, o))
	}
	key, err := CacheKey(u, about)
	if err != nil {
		return nil, err
	}
	if l.find != nil {
		data, ok, err := l.find(key)
		switch {
		case err != nil:
			return nil, err
		case ok:
			l.found.Add(1)
			s, err := report.ReadSummary(data)
			if err != nil {
				return nil, fmt.Errorf("%s is not the result of a run: %w", key, err)
			}
			return s, nil
		}
	}
	if l.keep == nil {
		return nil, ErrMissing
	}
	s, err := summary(RunSetup(ctx, u, o))
	if err != nil {
		return nil, err
	}
	data, err := marshal(s)
	if err == nil {
		err = l.keep(key, data)
	}
	if err != nil {
		return nil, err
	}
	l.made.Add(1)
	return s, nil
}

// summary is that of a run that came to its end.
func summary(r *Result, err error) (*report.Summary, error) {
	if err != nil {
		return nil, err
	}
	return r.Summary, nil
}
