package main

import (
	"context"
	"fmt"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// twin is the simulation of a request.
type twin struct {
	record event.Record
	chunks []event.Chunk
}

// twins records the requests of a run.
type twins struct {
	event.Ignore
	all []twin // by number
}

var _ event.ChunkObserver = (*twins)(nil)

// of returns the twin of a number.
func (o *twins) of(number int64) *twin {
	for int64(len(o.all)) <= number {
		o.all = append(o.all, twin{})
	}
	return &o.all[number]
}

// Chunk implements [event.ChunkObserver]. The last report of an instant holds.
func (o *twins) Chunk(c event.Chunk) {
	t := o.of(c.Request)
	if n := len(t.chunks); n > 0 && t.chunks[n-1].At == c.At {
		t.chunks = t.chunks[:n-1]
	}
	t.chunks = append(t.chunks, c)
}

// Finished implements [event.Observer].
func (o *twins) Finished(rec *event.Record) { o.of(rec.Request.ID).record = *rec }

// arrival returns when the request arrived.
func (t *twin) arrival() clock.Time { return t.record.Request.Arrival }

// replay simulates a journal, as clifftop run does.
func replay(ctx context.Context, file, journal string) ([]twin, error) {
	s, err := scenario.Load(file, scenario.Setting{Key: "workload.trace.file", Value: journal})
	if err != nil {
		return nil, err
	}
	o := new(twins)
	if _, err := experiments.Run(ctx, s, experiments.RunOptions{Observers: []event.Observer{o}}); err != nil {
		return nil, fmt.Errorf("the journal cannot be simulated: %w", err)
	}
	return o.all, nil
}
