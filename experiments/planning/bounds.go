package planning

import (
	"math"
	"slices"

	"clifftop/experiments/scenario"
	"clifftop/model"
	"clifftop/report"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// Closed forms: what a replica can carry at most, what it will carry about, and what no request can beat.

// shape is what a sample of the traffic tells.
type shape struct {
	in, out float64 // mean tokens
	sample  []workload.Request
	shares  bool // prompts lead alike, so that a cache may save their prefill
}

// sampleSize is the number of requests that the bounds look at.
const sampleSize = 2000

func shapeOf(d *Demand) (shape, error) {
	some, err := d.Sample(sampleSize)
	s := shape{sample: some.Requests, in: some.InputTokens, out: some.OutputTokens}
	for i := range s.sample {
		s.shares = s.shares || s.sample[i].Content != nil
	}
	return s, err
}

// share is the part of the sample that a class has, at least one request.
func (s *shape) share(class int) float64 {
	n := 1.0
	for i := range s.sample {
		if int(s.sample[i].Class) == class {
			n++
		}
	}
	return n / float64(len(s.sample)+1)
}

// replica is one replica as the closed forms see it.
type replica struct {
	shape
	timer  model.StepTimer
	stages int                        // of a pipeline that work on batches of their own, at least 1
	floor  func(*model.Batch) float64 // seconds that no step can beat; nil where no machine is modelled
	seats  int
	budget int
	pool   float64 // tokens; +Inf if unlimited
	cached bool    // prompts may be found in a cache
	delay  func(tokens int32) float64
}

func replicaOf(u *scenario.Setup, s shape) *replica {
	e := &u.Scenario.Engine
	r := &replica{shape: s, timer: u.Pools[0].Config.Timer, stages: max(u.Pools[0].Config.Stages, 1),
		seats: *e.MaxNumSeqs, budget: *e.MaxNumBatchedTokens, pool: math.Inf(1)}
	r.cached = s.shares && e.EnablePrefixCaching
	if u.Pools[0].Memory != nil {
		r.pool = float64(u.Pools[0].Memory.UsableTokens)
	}
	if w, ok := u.Pools[0].Config.Timer.(interface{ Work() *model.Work }); ok {
		r.floor = w.Work().Floor
	}
	frontend, perToken := u.Pools[0].Config.Frontend, u.Pools[0].Config.FrontendPerToken
	r.delay = func(tokens int32) float64 { return (frontend + clock.Duration(tokens)*perToken).Seconds() }
	return r
}

// step is the length of an iteration by the step timer.
func (r *replica) step(b *model.Batch) float64 {
	first, _, _ := r.timer.Span(b)
	return float64(first) / 1e15
}

// batch is the mean iteration with so many decoding sequences: they stand half way through their outputs, and as many
// prompt tokens are computed as outputs end.
func (r *replica) batch(decodes float64) model.Batch {
	b := model.Batch{Decodes: int(decodes), Context: int64(decodes * (r.in + r.out/2)), Emit: int(decodes)}
	if r.cached {
		return b // the savings of the cache are unknown
	}
	prompts := decodes / max(1, r.out-1)
	for ; prompts >= 1; prompts-- {
		b.Chunks = append(b.Chunks, model.Chunk{New: int32(r.in)})
		b.Emit++
	}
	if part := prompts * r.in; part >= 1 {
		b.Chunks = append(b.Chunks, model.Chunk{New: int32(part), Cached: int32((r.in - part) / 2)})
	}
	return b
}

// fluid is the highest rate over the numbers of decoding sequences that seats, pool and budget allow, with iterations
// of the length that seconds returns, none longer than limit: requests/s = decodes / ((out-1) · seconds). On a pipeline
// the sequences are spread evenly over a batch for each stage.
func (r *replica) fluid(seconds func(*model.Batch) float64, limit float64) float64 {
	best := 0.0
	for n := 1.0; n <= float64(r.seats); n = max(n+1, math.Floor(n*1.1)) {
		if n > 1 && n*(r.in+r.out/2) > r.pool {
			break
		}
		each := max(1, n/float64(r.stages))
		b := r.batch(each)
		tokens := int(each)
		for _, c := range b.Chunks {
			tokens += int(c.New)
		}
		t := seconds(&b)
		if n > 1 && (tokens > r.budget || t > limit) {
			break
		}
		best = max(best, n/(max(1, r.out-1)*t))
	}
	return best
}

// carries is about what the replica carries within the SLO, and atMost what it cannot exceed: at the floor of every
// step, and not at more than half again of the first.
func (r *replica) carries(of []objective) (about, atMost float64) {
	limit := math.Inf(1)
	for _, o := range limits(of) {
		if o.Metric == "tpot" || o.Metric == "itl" && o.Percentile < 90 {
			limit = min(limit, o.Limit.Seconds())
		}
	}
	const margin = 1.5
	about = r.fluid(r.step, limit)
	atMost = margin * r.fluid(r.step, math.Inf(1))
	if r.cached {
		about, atMost = about/2, math.Inf(1) // of prompts nothing was counted
	}
	if r.floor != nil {
		atMost = min(atMost, r.fluid(r.floor, math.Inf(1)))
	}
	return about, atMost
}

func limits(of []objective) []report.Objective {
	var list []report.Objective
	for _, k := range of {
		list = append(list, k.slo.Objectives...)
	}
	return list
}

// excess is the limit that even a request alone on the replica misses most, and how far: its statistic as a multiple of
// the limit, by the step timer. ratio is at most 1 if the SLO is not out of reach.
func (r *replica) excess(of []objective) (worst report.Objective, seconds, ratio float64) {
	for _, k := range of {
		for _, o := range k.slo.Objectives {
			if v := r.least(o, k.class); v > ratio*o.Limit.Seconds() {
				worst, seconds, ratio = o, v, v/o.Limit.Seconds()
			}
		}
	}
	return worst, seconds, ratio
}

// objective is an SLO of the requests of a class; of all for a class below 0.
type objective struct {
	slo   *report.SLO
	class int
}

// least is a statistic of requests alone on the replica, in seconds.
func (r *replica) least(o report.Objective, class int) float64 {
	decode := r.step(&model.Batch{Decodes: 1, Context: 1, Emit: 1})
	values := make([]float64, 0, len(r.sample))
	for i := range r.sample {
		q := &r.sample[i]
		if class >= 0 && int(q.Class) != class {
			continue
		}
		switch o.Metric {
		case "ttft":
			values = append(values, r.first(q))
		case "e2e":
			values = append(values, r.first(q)+float64(q.OutputTokens-1)*decode)
		case "tpot", "itl":
			if q.OutputTokens > 1 {
				values = append(values, decode)
			}
		}
	}
	return statistic(values, o.Percentile/100)
}

// first is the time to the first token of a request alone, or of its last prompt token where the rest may be cached.
func (r *replica) first(q *workload.Request) float64 {
	t := r.delay(q.InputTokens)
	left, done := int(q.InputTokens), 0
	if r.cached {
		left, done = 1, left-1
	}
	line := flowLine{timer: r.timer, left: slices.Repeat([]float64{t}, r.stages)}
	for left > 0 {
		n := min(left, r.budget)
		b := model.Batch{Chunks: []model.Chunk{{New: int32(n), Cached: int32(done)}}}
		if n == left {
			b.Emit = 1
		}
		line.pass(&b)
		left, done = left-n, done+n
	}
	return line.left[r.stages-1]
}

// flowLine is the stages of a pipeline, through which batches follow each other as closely as they can.
type flowLine struct {
	timer model.StepTimer
	left  []float64 // when each was left last, in seconds
}

// pass sends a batch through.
func (l *flowLine) pass(b *model.Batch) {
	total, _, _ := l.timer.Span(b)
	stages := make([]int64, len(l.left))
	hop := model.DivideStages(l.timer, b, total, stages)
	at := 0.0
	for i, femtos := range stages {
		l.left[i] = max(at, l.left[i]) + float64(femtos)/1e15
		at = l.left[i] + float64(hop)/1e15
	}
}

// residence is about how long a request stays, at a rate.
func (r *replica) residence() float64 {
	b := r.batch(max(1, min(float64(r.seats)/2, r.pool/(2*(r.in+r.out)))/float64(r.stages)))
	return r.out * r.step(&b)
}

// statistic is a quantile, or the mean for 0.
func statistic(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	if q == 0 {
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		return sum / float64(len(values))
	}
	slices.Sort(values)
	return values[int(q*float64(len(values)-1))]
}
