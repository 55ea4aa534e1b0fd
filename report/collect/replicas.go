package collect

import (
	"fmt"

	"clifftop/model"
	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// ReplicaOptions say what a replica of a fleet is.
type ReplicaOptions struct {
	Pool             string // the name of its pool; empty where there are none
	GPUs, MaxNumSeqs int
	UsableBlocks     int64 // as in [Options]
	Work             *Work
	Power            *model.StepPower // as in [Options]
	PipelineStages   int              // as in [Options]
	USDPerHour       float64          // while it is paid for, where replicas come and go
}

// part measures one replica of a fleet: sums by time bucket, and no distributions, with which many replicas would fill
// the memory.
type part struct {
	Collector
	pool     string
	sent     int64
	outcomes [event.Failed + 1]int64
	samples  sketch // when there are too many to keep them all; the first few metrics

	state      event.State // where replicas come and go, and since when
	stateSince clock.Time
}

// newParts makes the parts of a fleet.
func newParts(o Options, width clock.Duration) []*part {
	var parts []*part
	for _, r := range o.Fleet {
		p := &part{pool: r.Pool}
		p.opts = Options{GPUs: max(r.GPUs, 1), Replicas: 1, PipelineStages: max(r.PipelineStages, 1),
			MaxNumSeqs: r.MaxNumSeqs, UsableBlocks: limitedBlocks(r.UsableBlocks), Work: r.Work, Power: r.Power,
			Facility: o.Facility, End: o.End,
			Lifecycle: o.Lifecycle}
		p.occupancy, p.line = newOccupancy(), newTimeline(width, mostBuckets(len(o.Fleet)), false)
		parts = append(parts, p)
	}
	return parts
}

// OfReplica implements [event.FleetObserver]. A single engine has no parts.
func (c *Collector) OfReplica(i int) event.Observer {
	if i >= len(c.parts) {
		return nil
	}
	return c.parts[i]
}

// Arrived implements [event.Observer].
func (p *part) Arrived(at clock.Time, _ *workload.Request) {
	p.sent++
	p.line.at(at).arrivals++
}

// Finished implements [event.Observer].
func (p *part) Finished(rec *event.Record) {
	p.outcomes[rec.Outcome]++
	if rec.FirstToken != clock.Never {
		b := p.line.upTo(rec.FirstToken)
		b.prefilled(rec)
		b.power.attended(rec)
	}
	if rec.Outcome != event.Completed {
		p.line.upTo(ended(rec)).failed(rec)
		p.line.at(rec.Request.Arrival).failures++
		return
	}
	p.line.upTo(rec.ClientLast).completions++
}

// align gives all parts the same buckets as the whole, and accounts for their levels until the end.
func (c *Collector) align(end clock.Time) {
	for _, p := range c.parts {
		p.settleAt(end)
		if c.opts.Lifecycle {
			p.fillState(end)
		}
		for c.line.width < p.line.width {
			c.line.halve()
		}
	}
	for _, p := range c.parts {
		for p.line.width < c.line.width {
			p.line.halve()
		}
		p.line.find(p.line.start(len(c.line.buckets) - 1))
	}
}

// unit is what is summed up of a replica, or of a system whose replicas are not told apart.
type unit struct {
	*Options
	sum    bucket
	vacant uint64 // picoseconds without a request
}

// units are the replicas in a window.
func (c summariser) units(w *window, sum *bucket, d *detail) []unit {
	if c.parts == nil {
		u := unit{&c.opts, *sum, sum.vacant}
		if d != nil {
			u.vacant = d.levels[inSystem].WeightOfZero()
		}
		return []unit{u}
	}
	all := make([]unit, len(c.parts))
	for i, p := range c.parts {
		all[i] = unit{Options: &p.opts, sum: p.line.sum(w.from, w.to)}
		all[i].vacant = all[i].sum.vacant
	}
	return all
}

// replicaResults measures the replicas over the window of the whole run.
func (c summariser) replicaResults(w *window) ([]report.Replica, *report.Imbalance) {
	if c.parts == nil {
		return nil, nil
	}
	latencies := c.replicaLatencies(w)
	results := make([]report.Replica, len(c.parts))
	var busy, most, sent, mostSent float64
	for i, p := range c.parts {
		sum := p.line.sum(w.from, w.to)
		var s report.Summary
		summariser{&p.Collector}.rates(&s, w, &sum)
		summariser{&p.Collector}.system(&s, w, &sum, nil)
		own := []unit{{&p.opts, sum, sum.vacant}}
		all := p.line.whole()
		r := &results[i]
		*r = report.Replica{
			Pool: p.pool, Index: i, GPUs: p.opts.GPUs, Throughput: s.Throughput, System: s.System,
			Latency: latencies[i], Energy: summariser{&p.Collector}.energy(&s, w, &sum, own),
			Tokens: report.ReplicaTokens{Input: all.input, CachedInput: all.cached, Output: all.output,
				Recomputed: all.recomputed},
			Requests: report.ReplicaRequests{
				Sent: p.sent, Completed: p.outcomes[event.Completed], Rejected: p.outcomes[event.Rejected],
				TimedOut: p.outcomes[event.TimedOut], Cancelled: p.outcomes[event.Cancelled],
				Failed: p.outcomes[event.Failed],
			},
		}
		r.Requests.InSystemAtEnd = p.inSystem()
		r.Requests.HandedOn = p.sent - r.Requests.InSystemAtEnd
		for _, n := range p.outcomes {
			r.Requests.HandedOn -= n
		}
		r.Latency.ITL = report.Distribution{N: sum.gapCount,
			Mean: stats.Finite(sum.gapSum.Float64() / float64(sum.gapCount) * 1e-12)}
		r.Concurrency = sum.concurrency()
		if b := s.System.BusyFraction; b != nil {
			busy, most = busy+*b, max(most, *b)
		}
		sent, mostSent = sent+float64(p.sent), max(mostSent, float64(p.sent))
	}
	if len(results) == 1 {
		return results, nil
	}
	n := float64(len(results))
	return results, &report.Imbalance{Busy: stats.Ratio(most*n, busy), Requests: stats.Ratio(mostSent*n, sent)}
}

// warnOfOneReplica warns of a router that sends all requests to one replica of several that are always ready. A few
// requests show nothing, and replicas that compute prompts for others are meant to be different.
func (c summariser) warnOfOneReplica(s *report.Summary) {
	if len(s.Replicas) < 2 || c.opts.Lifecycle {
		return
	}
	var all, most int64
	busiest := 0
	for i, r := range s.Replicas {
		if r.Requests.HandedOn > 0 {
			return
		}
		if all += r.Requests.Sent; r.Requests.Sent > most {
			most, busiest = r.Requests.Sent, i
		}
	}
	if most == all && all >= int64(leastPerReplica*len(s.Replicas)) {
		s.AddWarning("one_replica", fmt.Sprintf("the router sent all %d requests to replica %d of %d: the others were idle",
			all, s.Replicas[busiest].Index, len(s.Replicas)))
	}
}

// leastPerReplica is the number of requests per replica from which on an idle replica is no chance.
const leastPerReplica = 10

// ReplicaSeries is [Collector.Series] of each replica of a fleet, at the same times. Arrivals are of attempts that were
// sent there; the TTFT is not kept.
func (c *Collector) ReplicaSeries() [][]report.SeriesPoint {
	c.settle()
	w := c.window(&report.Summary{})
	all := make([][]report.SeriesPoint, len(c.parts))
	for i, p := range c.parts {
		all[i] = summariser{&p.Collector}.seriesUpTo(c.runEnd(), &w)
	}
	return all
}

// replicaLatencies are the latencies by replica, but for the inter-token gaps.
func (c summariser) replicaLatencies(w *window) []report.ReplicaLatency {
	const msPerPico = 1e-9
	all := make([]report.ReplicaLatency, len(c.parts))
	field := func(l *report.ReplicaLatency, metric int) *report.Distribution {
		return map[int]*report.Distribution{ttft: &l.TTFT, tpot: &l.TPOT, e2e: &l.E2E, queue: &l.Queue}[metric]
	}
	if c.folded {
		for i, p := range c.parts {
			for m := range latencyNames {
				*field(&all[i], m) = report.DistributionOfHistogram(&p.samples[m], msPerPico)
			}
		}
		return all
	}
	ends := make([]int, len(c.parts)+1)
	c.kept.in(w.start, w.until, func(x *sample) { ends[x.replica+1]++ })
	for i := range c.parts {
		ends[i+1] += ends[i]
	}
	values, next := make([]float64, ends[len(c.parts)]), make([]int, len(c.parts))
	for m := range latencyNames {
		copy(next, ends)
		c.kept.in(w.start, w.until, func(x *sample) {
			if y, ok := x.value(m); ok {
				values[next[x.replica]] = y
				next[x.replica]++
			}
		})
		for i := range c.parts {
			*field(&all[i], m) = report.DistributionOfValues(values[ends[i]:next[i]], msPerPico, 0)
		}
	}
	return all
}

// sketched counts a sample where all cannot be kept.
func (p *part) sketched(s *sample) {
	for m := range latencyNames {
		if v, ok := s.value(m); ok {
			p.samples[m].Record(int64(v), 1)
		}
	}
}
