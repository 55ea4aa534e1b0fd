package planning

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"clifftop/experiments"
	"clifftop/experiments/sweep"
	"clifftop/report/plan"
)

// Lengths of the runs that look for the fewest seats, in requests: so many for each request that is served at once,
// since the number at once takes about a service time to change.
const (
	seatRequests   = 2500
	fewestRequests = 10_000
	mostRequests   = 500_000
)

// seats finds for each candidate the smallest max_num_seqs with which one replica meets the SLO at the planned load.
func (p *planner) seats(ctx context.Context, list []*candidate) error {
	missing := &MissingError{Of: len(list)}
	for i, c := range list {
		if !p.shard.Has(i) {
			continue
		}
		err := p.each(ctx, 1, func(ctx context.Context, _ int) error { return p.fewestSeats(ctx, c) })
		if err = missing.gather(err); err != nil {
			return err
		}
		p.tell(1)
	}
	return missing.orNil()
}

// fewestSeats searches around the mean number of requests at once and its root.
func (p *planner) fewestSeats(ctx context.Context, c *candidate) error {
	const key = "max_num_seqs"
	load := c.planned * c.bounds.residence()
	start := int(math.Ceil(load + math.Sqrt(load)))
	requests := int(min(max(seatRequests*load, fewestRequests), mostRequests))
	sets := append(c.sets[:len(c.sets):len(c.sets)], p.demand.At(c.planned)...)
	sets = append(sets, set("engine."+key, strconv.Itoa(start)), set("run.requests", strconv.Itoa(requests)))
	s, err := p.scenario.With(sets...)
	if err != nil {
		return err
	}
	found, err := sweep.Capacity(ctx, s, sweep.CapacityOptions{
		Over: "engine." + key, Precision: 1e-6, Jobs: p.options.Jobs, Check: p.options.Check, Cache: p.options.Ledger,
	})
	if errors.Is(err, experiments.ErrMissing) {
		return fmt.Errorf("%s, the fewest seats: %w", c.name, err)
	}
	if err != nil {
		return err
	}
	c.runs += found.Runs
	c.effort.Add(found.Effort)
	if found.Passes == nil {
		c.refusal = &plan.Refusal{Name: c.name, Reason: plan.MissesSLO,
			Text: "no max_num_seqs meets the SLO with one replica: " + found.Evidence}
		return nil
	}
	n := strconv.Itoa(int(*found.Passes))
	c.sets = append(c.sets, set("engine."+key, n))
	c.knobs[key] = n
	if found.Fails != nil {
		c.seatsNote = fmt.Sprintf("%s seats suffice, and %g do not: %s", n, *found.Fails, found.Evidence)
	}
	if s, err = p.scenario.With(c.sets...); err == nil {
		c.setup, err = s.Resolve()
	}
	if err != nil {
		return err
	}
	c.bounds = replicaOf(c.setup, p.shape)
	c.probes[c.planned] = found.AtPasses
	c.count, c.passes = 1, c.planned
	return nil
}
