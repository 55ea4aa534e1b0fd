package collect

import (
	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// countPassages counts the time of an iteration in the stages of a pipeline, each part in the bucket that it lies in.
func (t *timeline) countPassages(passages []event.Passage) {
	for stage := range passages {
		p := &passages[stage]
		at, left := p.Enter, p.Femtos
		t.find(max(p.Leave(), 1) - 1) // makes room once, so that the width stays
		for remainder := p.Remainder; left > 0; remainder = 0 {
			i := t.find(at)
			part := left
			if room := t.end(i).Sub(at); left/clock.FemtosPerPico >= int64(room)-1 {
				part = min(part, int64(room)*clock.FemtosPerPico-remainder)
			}
			b := &t.buckets[i]
			if len(b.worked) < len(passages) {
				b.worked = both(b.worked, make([]clock.Uint128, len(passages)))
			}
			add(&b.worked[stage], part)
			left -= part
			at = t.end(i)
		}
	}
}

// both is the sum of two lists by stage, in a list of its own.
func both(a, b []clock.Uint128) []clock.Uint128 {
	if b == nil {
		return a
	}
	sum := make([]clock.Uint128, max(len(a), len(b)))
	copy(sum, a)
	for i := range b {
		sum[i] = sum[i].Add(b[i])
	}
	return sum
}

// bubble is what the stages did not work of the time, all stages together, in which something was in flight.
func (b *bucket) bubble(inFlight clock.Uint128) clock.Uint128 {
	for _, worked := range b.worked {
		inFlight = inFlight.Sub(least(inFlight, worked))
	}
	return inFlight
}

// stageTimes is how the stages spent so many seconds of the engines; nil where there is no pipeline.
func (b *bucket) stageTimes(engineS float64) []report.PipelineStage {
	if b.worked == nil {
		return nil
	}
	list := make([]report.PipelineStage, len(b.worked))
	for i, worked := range b.worked {
		list[i].BusyFraction = stats.Ratio(worked.Float64()/1e15, engineS)
	}
	return list
}

// lines is the number of pipeline stages of all replicas.
func (o *Options) lines() int {
	if o.Fleet == nil {
		return o.Replicas * o.PipelineStages
	}
	n := 0
	for i := range o.Fleet {
		n += max(o.Fleet[i].PipelineStages, 1)
	}
	return n
}
