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
	// PerPrompt is the weight of a token to prefill, PerAnswer that of a token of the answer; at most a
	// million each. With PerAnswer 0 nothing need be known of the answer.
	PerPrompt, PerAnswer int64
	// Error makes the length of the answer a prediction: the true one times a lognormal factor of median 1, of whose
	// logarithm this is the standard deviation. 0 is an oracle, which knows it. The factor of a request
	// depends on Seed and its ID alone.
	Error float64
	Seed  uint64
}

// maxWeight is the largest weight of a token: sums of weighted tokens stay far from overflowing.
const maxWeight = 1_000_000

// Validate reports what is wrong with the weights and the error.
func (z Size) Validate() error {
	switch {
	case min(z.PerPrompt, z.PerAnswer) < 0 || max(z.PerPrompt, z.PerAnswer) > maxWeight:
		return fmt.Errorf("size: weights %d and %d are not allowed (want 0 to %d)", z.PerPrompt, z.PerAnswer, maxWeight)
	case z.PerPrompt == 0 && z.PerAnswer == 0:
		return errors.New("size: both weights are 0, so that all requests are alike")
	case !(z.Error >= 0 && z.Error <= 10):
		return fmt.Errorf("size: a prediction error of %v is not allowed (want 0 to 10)", z.Error)
	}
	return nil
}

// Answer is the predicted length of the answer, at least 1 token.
func (z Size) Answer(w *Waiting) int32 {
	if z.Error == 0 {
		return w.Answer
	}
	s := workload.NewRNG(z.Seed, "answer prediction")
	s.Seek(0, uint64(w.Request))
	factor := math.Exp(z.Error * rand.New(s).NormFloat64())
	return int32(min(max(1, math.Floor(float64(w.Answer)*factor+0.5)), math.MaxInt32))
}

// Whole is the size of the whole request, whatever has been done of it.
func (z Size) Whole(w *Waiting) int64 {
	size := z.PerPrompt * int64(w.Prompt)
	if z.PerAnswer > 0 {
		size += z.PerAnswer * int64(z.Answer(w))
	}
	return size
}

// Left is what is left to do: known tokens to compute, those lost by a preemption included, and the rest of the answer.
// An answer that has outgrown its prediction is taken to end with the next token.
func (z Size) Left(w *Waiting) int64 {
	size := z.PerPrompt * int64(w.Known-w.Computed)
	if z.PerAnswer > 0 {
		size += z.PerAnswer * int64(max(1, z.Answer(w)-w.Generated))
	}
	return size
}

// SJF is shortest job first: by the size of the whole request.
type SJF struct{ Size }

// LJF is longest job first.
type LJF struct{ Size }

// SRPT is shortest remaining processing time: by what is left to do. A preempted request keeps the progress of
// its answer. Under [Preemptive] running sequences give way to shorter ones.
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
