package validation

import (
	"math"

	"clifftop/model"
	"clifftop/report"
)

// Prompts of the ML.ENERGY leaderboard, in tokens. Their lengths are not published: chat prompts are of ShareGPT, code
// prompts of EvalPlus.
const (
	steadyChatTokens = 220
	steadyCodeTokens = 150
)

// steady reports whether the row is a steady state of a batch whose iterations were measured: its power is computed for
// iterations of the measured length. Nothing is simulated, so that latencies are not compared.
func steady(r *Row) bool {
	return r.Power.BatchMean != nil && r.Power.PerGPUWatts() != nil && r.Concurrency == nil && or(tpot(r).Mean, 0) > 0
}

// fillSteady completes the row, so that a scenario can express its machine.
func fillSteady(r *Row) {
	if r.InputMean == nil {
		tokens := float64(steadyChatTokens)
		if r.Power.Task != "" && r.Power.Task != "llm_text_generation chat" {
			tokens = steadyCodeTokens
		}
		r.InputMean = &tokens
	}
	users := max(1, int(math.Round(*r.Power.BatchMean)))
	r.Concurrency, r.MaxNumSeqs = &users, nil
}

// steadyOutcome computes the power of a steady state, and the energy of its output tokens. In the time per token, each
// GPU runs one iteration for each stage of the pipeline, which together advance all sequences, and its share of the
// prefills that replace sequences that end.
func (c *Case) steadyOutcome() *outcome {
	r, d := c.Rows[0], c.setup.Pools[0].Deployment
	power := model.NewStepPower(d)
	output := or(r.OutputNominal, or(r.OutputMean, or(r.OutputMeanReported, 0)))
	if power == nil || output < 1 {
		return nil
	}
	seconds, batch, input := *tpot(r).Mean/1e3, *r.Power.BatchMean, *r.InputMean
	prompts := batch / output
	stages := int64(d.PipelineParallel)
	s := model.Sums{
		Seconds: seconds, BusySeconds: seconds, Iterations: stages, Decodes: int64(math.Round(batch)),
		Tokens: int64(math.Round(batch + prompts*input)), Emit: int64(math.Round(batch + prompts)),
		Context: int64(math.Round(batch * (input + output/2))),
	}
	s.Pairs.Lo = uint64(math.Round(prompts * input * input / 2))
	run := power.Of(&model.Iterations{N: stages, First: int64(seconds * 1e15 / float64(stages)),
		Tokens: s.Tokens / stages, Decodes: s.Decodes / stages, Emit: s.Emit / stages, Context: s.Context / stages})
	s.Energy = run
	joules := power.Joules(&s)
	watts := joules / seconds
	token := watts * float64(d.GPUs()) / or(r.OutputTokensPerS, batch/seconds)
	return &outcome{summary: &report.Summary{Energy: &report.Energy{GPUWatts: report.Watts{Mean: &watts},
		PerOutputToken: &token}}}
}
