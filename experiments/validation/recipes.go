package validation

import (
	"strings"
	"time"

	"clifftop/model/catalog"
)

// Published launch recipes decide how a row is read where its cells contradict them. The rules have the codes below.
const (
	ruleSplit        = "split"         // tp is tensor times expert parallelism
	ruleRecipeDrafts = "recipe_drafts" // only a recipe with drafts has this parallelism
	ruleClient       = "client"        // the client's part of the time to first token
)

// recipeDrafts is the number of drafts of a sequence in those recipes.
const recipeDrafts = 3

// readRecipes corrects what contradicts the published launch recipes. It runs after all other cells are read.
func (r normaliser) readRecipes() {
	if !strings.HasPrefix(r.Source, "ai-dynamo/aiconfigurator") || r.Pools() {
		return
	}
	gpu, err := catalog.GPU(r.GPU)
	if err != nil {
		return // reported later
	}
	tp, ep := r.tp(), or(r.EP, 1)
	if whole := tp / ep; tp > gpu.DomainSize() && whole*ep == tp && ep > 1 && whole >= ep && whole <= gpu.NodeSize() {
		r.TP, r.GPUs = given(whole), given(whole*or(r.PP, 1)*or(r.DP, 1))
		r.Repairs = append(r.Repairs, ruleSplit)
	}
	if r.onlyWithDrafts(gpu.Name) {
		r.SpecMethod, r.DraftTokens, r.MaxNumSeqs = "mtp", given(recipeDrafts), nil
		r.Repairs = append(r.Repairs, ruleRecipeDrafts)
	}
}

// onlyWithDrafts reports whether the recipes of the engine's release have the row's parallelism with multi-token
// prediction alone. Those of SGLang 0.5.9 for Qwen3.5-397B in fp8 on B200 are TP 8, or TP 4 with EP 4, and with
// drafts TP 4 without EP (InferenceX, pull requests 804 of 2026-02-26 and 897 of 2026-03-09; from 1027 of 2026-04-13
// on, TP 4 without EP is a plain recipe of a later release).
func (r normaliser) onlyWithDrafts(gpu string) bool {
	version, _ := r.version()
	llm, err := catalog.LLM(r.Model)
	n, _, faulty := r.drafts(0)
	return err == nil && faulty == nil && n == 0 && version == "sglang-0.5.9" && llm.Name == "qwen3.5-397b-a17b" &&
		r.WeightDtype == "fp8" && gpu == "b200-sxm" && r.tp() == 4 && or(r.EP, 1) == 1 && or(r.DP, 1) == 1
}

// The front end of vLLM as clients of InferenceX see it, which is the engine's default from 0.16 on. The default of
// older releases was fitted to inference-perf. With 0.10 and 0.15 the times to first token of InferenceX's runs of
// Llama-3.1-70B, gpt-oss-120b and Kimi-K2.5 ask for the longer one in 14 of 15 cells.
const (
	clientFrontend = 12 * time.Millisecond
	clientPerToken = 4 * time.Microsecond
)

// clientMinor is the first minor release of vLLM with that front end as default.
const clientMinor = 16

// slowClient reports whether a release with the older default was measured by a client of InferenceX.
func (r *Row) slowClient() bool {
	source := strings.ToLower(r.Source)
	return r.vllmBefore(clientMinor) && (strings.Contains(source, "aiconfigurator") ||
		strings.Contains(source, "inferencex"))
}
