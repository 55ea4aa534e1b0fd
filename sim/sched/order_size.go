package sched

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"clifftop/workload"
)

// Size measures the work of a request, in weighted tokens.
type Size struct {
	// PerPrompt is the weight of a token to prefill, PerOutput that of an output token; at most a million each. With
	// PerOutput 0 the length of the output is not used.
	PerPrompt, PerOutput int64
	// Error makes the output length a prediction: the true length times a lognormal factor of median 1, whose logarithm
	// has this standard deviation. 0 is an oracle. The factor of a request depends only on Seed and its ID.
	Error float64
	Seed  uint64
}

// maxWeight is the largest weight of a token; it prevents overflow of sums.
const maxWeight = 1_000_000

// Validate reports what is wrong with the weights and the error.
func (z Size) Validate() error {
	switch {
	case min(z.PerPrompt, z.PerOutput) < 0 || max(z.PerPrompt, z.PerOutput) > maxWeight:
		return fmt.Errorf("size: weights %d and %d are not allowed (want 0 to %d)", z.PerPrompt, z.PerOutput, maxWeight)
	case z.PerPrompt == 0 && z.PerOutput == 0:
		return errors.New("size: both weights are 0, so that all requests are alike")
	case !(z.Error >= 0 && z.Error <= 10):
		return fmt.Errorf("size: a prediction error of %v is not allowed (want 0 to 10)", z.Error)
	}
	return nil
}

// PredictedOutput returns the predicted length of the output, at least 1 token.
func (z Size) PredictedOutput(w *Waiting) int32 {
	if z.Error == 0 {
		return w.TrueOutput
	}
	s := workload.NewRNG(z.Seed, "answer prediction")
	s.Seek(0, uint64(w.Request))
	factor := math.Exp(z.Error * rand.New(s).NormFloat64())
	return int32(min(max(1, math.Floor(float64(w.TrueOutput)*factor+0.5)), math.MaxInt32))
}

// Whole returns the size of the whole request, without regard to its progress.
func (z Size) Whole(w *Waiting) int64 {
	size := z.PerPrompt * int64(w.Prompt)
	if z.PerOutput > 0 {
		size += z.PerOutput * int64(z.PredictedOutput(w))
	}
	return size
}

// Left returns the remaining work: known tokens to compute, those lost by a preemption included, and the rest of the
// output. An output that is longer than its prediction is expected to end with the next token.
func (z Size) Left(w *Waiting) int64 {
	size := z.PerPrompt * int64(w.Known-w.Computed)
	if z.PerOutput > 0 {
		size += z.PerOutput * int64(max(1, z.PredictedOutput(w)-w.Generated))
	}
	return size
}

// sizeOptions are the size of a job.
type sizeOptions struct {
	Measure uint8 `json:"size" one:"output prompt both" called:"answer=output" doc:"what counts as the size of a job"`

	OutputWeight int64 `json:"output_weight" was:"answer_weight" range:"[1,1e6]" doc:"weight of output tokens in both"`

	Error float64 `json:"error" range:"[0,10]" doc:"standard deviation of the log of predicted lengths; 0 is an oracle"`
}

// size returns the size of a job in a run with a seed.
func (o *sizeOptions) size(seed uint64) Size {
	z := Size{PerOutput: 1, Error: o.Error, Seed: seed}
	switch o.Measure {
	case 1:
		z.PerPrompt, z.PerOutput = 1, 0
	case 2:
		z.PerPrompt, z.PerOutput = 1, o.OutputWeight
	}
	return z
}

// jobOptions are the options of orders by the size of a job alone.
type jobOptions struct {
	sizeOptions
	ageing
	order func(z Size) Order
}

func (o *jobOptions) Make(seed uint64) Order { return o.aged(o.order(o.size(seed))) }

// bySize returns the options of an order.
func bySize(order func(z Size) Order) func() OrderOptions {
	return func() OrderOptions { return &jobOptions{sizeOptions: sizeOptions{OutputWeight: 1}, order: order} }
}

var sjfRule = OrderRule{
	Name: "sjf",
	Does: "the shortest job first",
	New:  bySize(func(z Size) Order { return SJF{z} }),
}

var srptRule = OrderRule{
	Name: "srpt",
	Does: "the shortest remaining processing time first",
	New:  bySize(func(z Size) Order { return SRPT{z} }),
}

var ljfRule = OrderRule{
	Name: "ljf",
	Does: "the longest job first",
	New:  bySize(func(z Size) Order { return LJF{z} }),
}

// SJF is shortest job first: by the size of the whole request.
type SJF struct{ Size }

// LJF is longest job first.
type LJF struct{ Size }

// SRPT is shortest remaining processing time. A preempted request keeps its output so far. Under [Preemptive] running
// sequences are preempted for shorter ones.
type SRPT struct{ Size }

var (
	_ Order = SJF{}
	_ Order = LJF{}
	_ Order = SRPT{}
)

// Key implements [Order].
func (o SJF) Key(w *Waiting) int64 { return o.Whole(w) }

// Key implements [Order].
func (o LJF) Key(w *Waiting) int64 { return -o.Whole(w) }

// Key implements [Order].
func (o SRPT) Key(w *Waiting) int64 { return o.Left(w) }
