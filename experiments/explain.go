package experiments

import (
	"fmt"
	"slices"

	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/report"
)

// Explain takes the time of one iteration apart. It returns the warnings of the setup and of the iteration.
func Explain(u *scenario.Setup, b model.Batch) (e model.Explanation, warnings []report.Warning, err error) {
	p := &u.Pools[0]
	timer, ok := p.Config.Timer.(interface {
		Explain(*model.Batch) model.Explanation
	})
	if !ok {
		return e, nil, u.Scenario.Fault("step_time", "%s has no parts to explain (want kernels or roofline)",
			u.Scenario.StepTime.Kind)
	}
	tokens, held := b.Decodes, b.Context
	longest := b.Context / int64(max(b.Decodes, 1))
	for _, c := range b.Chunks {
		tokens += int(c.New)
		longest = max(longest, int64(c.New)+int64(c.Cached))
		held += int64(c.New) + int64(c.Cached)
	}
	if most := int64(p.Config.MaxModelLen); longest > most {
		return e, nil, &yamldoc.Fault{Where: "explain",
			Problem: fmt.Sprintf("a sequence has %d tokens (want at most max_model_len, %d)", longest, most)}
	}
	if most := p.Config.MaxNumBatchedTokens; tokens > most {
		return e, nil, &yamldoc.Fault{Where: "explain",
			Problem: fmt.Sprintf("the iteration has %d tokens (want at most max_num_batched_tokens, %d)", tokens, most)}
	}
	warnings = slices.Clone(u.Warnings)
	if room := int64(p.Config.UsableBlocks()) * int64(p.Config.BlockSize); p.Memory != nil && held > room {
		warnings = append(warnings, report.Warning{Code: "explain_kv", Text: fmt.Sprintf("the sequences have %d "+
			"tokens of context, and the KV pool holds %d: this iteration is possible only if they share blocks",
			held, room)})
	}
	return timer.Explain(&b), warnings, nil
}

// GraphTokens is the size of the CUDA graph that runs an iteration of so many tokens; 0 where none does.
func GraphTokens(u *scenario.Setup, tokens int) int {
	if k, ok := u.Pools[0].Config.Timer.(interface{ GraphTokens(int) int }); ok {
		return k.GraphTokens(tokens)
	}
	return 0
}
