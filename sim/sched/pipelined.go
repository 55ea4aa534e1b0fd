package sched

import "errors"

// Pipelined is a [Scheduler] that supports pipeline stages: several iterations are in flight. A sequence with a token
// in one of them misses nothing, and does not count as decoding until that token has been processed. Chunks of one
// prefill may follow each other closely. A preempted request must not be admitted while [Progress.InFlight] says that
// an iteration in flight computes for it: vLLM lets others overtake it (pull request 48245, 2026-07-29). Older releases
// admitted it again at once, which is not simulated.
type Pipelined interface {
	Scheduler
	// Pipelined reports settings that do not work with a pipeline.
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
