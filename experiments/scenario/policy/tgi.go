package policy

import "clifftop/sim/sched"

var tgiPolicy = Policy{
	Name: "tgi",
	Does: "room for prompt and output taken on admission; prompts in chunks beside decodes, or whole when enough of " +
		"them wait",
	Source: "text-generation-inference, backends/v3",
	Section: &Section{"tgi", "Options of policy tgi.", func() any {
		return &tgi{WaitingServedRatio: 0.3, MaxWaitingTokens: 20}
	}},
	New: func(e *Engine) sched.Scheduler {
		o := e.Options.(*tgi)
		return &sched.TGI{WaitingServedRatio: o.WaitingServedRatio, MaxWaitingTokens: o.MaxWaitingTokens,
			Chunking: e.EnableChunkedPrefill}
	},
	Defaults: Defaults{Synchronous: true, Reserves: true, TokenBudget: 4096},
}

// tgi are options of text-generation-inference's scheduler. With chunked prefill they have no effect.
type tgi struct {
	// Waiting per decoding to start prefill.
	WaitingServedRatio float64 `json:"waiting_served_ratio" range:"[0,1000000]"`
	// Iterations after which one request suffices.
	MaxWaitingTokens int `json:"max_waiting_tokens" range:"[1,1000000000]"`
}
