package experiments

import (
	"fmt"

	"clifftop/model"
)

// Explain takes the time of one iteration apart.
func (u *Setup) Explain(b model.Batch) (*model.Explanation, error) {
	timer, ok := u.Config.Timer.(interface {
		Explain(*model.Batch) model.Explanation
	})
	if !ok {
		return nil, u.Scenario.fault("step_time", "%s has no parts to explain (want kernels or roofline)", u.Scenario.StepTime.Kind)
	}
	tokens := b.Decodes
	for _, c := range b.Chunks {
		tokens += int(c.New)
	}
	if tokens > u.Config.MaxNumBatchedTokens {
		return nil, &Fault{Where: "explain", Problem: fmt.Sprintf("the iteration has %d tokens (want at most max_num_batched_tokens, %d)", tokens, u.Config.MaxNumBatchedTokens)}
	}
	e := timer.Explain(&b)
	return &e, nil
}
