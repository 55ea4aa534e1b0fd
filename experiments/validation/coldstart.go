package validation

import (
	"strings"

	"clifftop/model"
)

// coldStart says how many of the first iterations with prefill last so many seconds longer.
type coldStart struct {
	steps   int
	seconds float64
}

// The cold starts, read off the slowest first tokens of closed loops: SGLang's opening burst of prompts takes 0.4 to
// 2 s more than its iterations, whatever their number (DeepSeek-R1 on H200, B200, B300, MI300X, MI325X), TensorRT-LLM's
// 1.7 s with 4 prompts and 3.8 s with 16 (DeepSeek-R1 on H200, one prompt an iteration).
var (
	tritonStart = coldStart{7, 0.5} // of the Triton kernels of experts in 16 bits
	sglangStart = coldStart{1, 0.75}
	trtllmStart = coldStart{7, 0.3} // with multi-head latent attention
	// latentStart is of latent attention where sessions are replayed on a process of their own: the first prompts of
	// four recorded runs came 14 to 18 s late.
	latentStart = coldStart{1, 16}
)

// coldStart returns the cold start of the row's engine; the zero value is none.
func (r *Row) coldStart(d *model.Deployment) coldStart {
	burst := r.Closed() && or(r.Concurrency, 1) > 1 && !r.Pools() // which are warm: 15 users of TensorRT-LLM wait 0.4 s
	switch {
	case r.perf() && r.Engine == "vllm" && d.LLM.Experts > 0 && (d.MoEDtype == model.BF16 || d.MoEDtype == model.FP16):
		return tritonStart
	case r.Engine == "vllm" && r.multiTurn() && d.LLM.UsesMLA():
		return latentStart
	case burst && r.Engine == "sglang":
		return sglangStart
	case burst && strings.HasPrefix(r.Engine, "trtllm-") && d.LLM.UsesMLA():
		return trtllmStart
	}
	return coldStart{}
}

// coldTimer lengthens the first iterations with prefill. It serves one run: it counts them.
type coldTimer struct {
	model.StepTimer
	left   int
	femtos int64
}

func newColdTimer(t model.StepTimer, c coldStart) *coldTimer {
	return &coldTimer{StepTimer: t, left: c.steps, femtos: int64(c.seconds * 1e15)}
}

// Span implements [model.StepTimer].
func (c *coldTimer) Span(b *model.Batch) (first, slope int64, n int) {
	first, slope, n = c.StepTimer.Span(b)
	if len(b.Chunks) > 0 && c.left > 0 {
		c.left--
		first += c.femtos
	}
	return first, slope, n
}
