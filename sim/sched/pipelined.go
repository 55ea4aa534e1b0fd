package sched

import "errors"

// Pipelined is a [Scheduler] that goes with a pipeline: several iterations are in flight, and a sequence that has a
// token in one of them misses nothing, and counts among those that decode for nobody, until that has come. Chunks of
// one prefill may follow each other closely. While the head of the queue was preempted with a token in flight, the
// queue shows nobody.
type Pipelined interface {
	Scheduler
	// Pipelined reports what does not go with a pipeline.
	Pipelined() error
}

var _ Pipelined = (*VLLM)(nil)

// Pipelined implements [Pipelined].
func (p *VLLM) Pipelined() error {
	switch {
	case p.Swap:
		return errors.New("policy vllm: preemption: swap does not go with pipeline stages")
	case p.Admission == FullLength:
		return errors.New("policy vllm: room for the full length of requests does not go with pipeline stages")
	}
	return nil
}

// Pipelined implements [Pipelined].
func (p *Preemptive) Pipelined() error {
	return errors.New("policy preemptive: it does not go with pipeline stages (want policy vllm)")
}
