package experiments

import (
	"fmt"

	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
)

// Explain takes the time of one iteration apart.
func Explain(u *scenario.Setup, b model.Batch) (*model.Explanation, error) {
	timer, ok := u.Config.Timer.(interface {
		Explain(*model.Batch) model.Explanation
	})
	if !ok {
		return nil, u.Scenario.Fault("step_time", "%s has no parts to explain (want kernels or roofline)",
			u.Scenario.StepTime.Kind)
	}
	tokens, held := b.Decodes, b.Context
	longest := b.Context / int64(max(b.Decodes, 1))
	for _, c := range b.Chunks {
		tokens += int(c.New)
		longest = max(longest, int64(c.New)+int64(c.Cached))
		held += int64(c.New) + int64(c.Cached)
	}
	if most := int64(u.Config.MaxModelLen); longest > most {
		return nil, &yamldoc.Fault{Where: "explain",
			Problem: fmt.Sprintf("a sequence has %d tokens (want at most max_model_len, %d)", longest, most)}
	}
	if room := int64(u.Config.UsableBlocks()) * int64(u.Config.BlockSize); u.Memory != nil && held > room {
		u.Warn("explain_kv", "the sequences have %d tokens of context, and the KV pool holds %d: this iteration is "+
			"possible only if they share blocks", held, room)
	}
	if tokens > u.Config.MaxNumBatchedTokens {
		return nil, &yamldoc.Fault{Where: "explain",
			Problem: fmt.Sprintf("the iteration has %d tokens (want at most max_num_batched_tokens, %d)", tokens,
				u.Config.MaxNumBatchedTokens)}
	}
	e := timer.Explain(&b)
	return &e, nil
}

// GraphTokens is the size of the CUDA graph that runs an iteration of so many tokens; 0 where none does.
func GraphTokens(u *scenario.Setup, tokens int) int {
	if k, ok := u.Config.Timer.(interface{ GraphTokens(int) int }); ok {
		return k.GraphTokens(tokens)
	}
	return 0
}
