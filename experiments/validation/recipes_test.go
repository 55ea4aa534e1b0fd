package validation

import (
	"slices"
	"testing"
)

// TestRecipes: rows that contradict the published launch recipes are corrected, and say by which rule.
func TestRecipes(t *testing.T) {
	const aic = "ai-dynamo/aiconfigurator silicon_sample.csv"
	for _, c := range []struct {
		source, version, gpu, dtype string
		tp, ep                      int
		wantTP, drafts              int
		rules                       []string
	}{
		{aic, "0.5.9", "B200", "fp8", 16, 4, 4, 0, []string{ruleSplit}},
		{aic, "0.5.9", "B200", "fp8", 64, 8, 8, 0, []string{ruleSplit}},
		{aic, "0.5.9", "B200", "fp8", 16, 16, 16, 0, nil}, // two nodes
		{aic, "0.5.9", "GB200", "fp8", 16, 4, 16, 0, nil}, // one NVLink domain
		{"own", "0.5.9", "B200", "fp8", 16, 4, 16, 0, nil},
		{aic, "0.5.9", "B200", "fp8", 4, 1, 4, recipeDrafts, []string{ruleRecipeDrafts}},
		{aic, "0.5.9", "B200", "fp8", 4, 4, 4, 0, nil},
		{aic, "0.5.9", "B200", "fp8", 8, 1, 8, 0, nil},
		{aic, "0.5.9", "B200", "nvfp4", 4, 1, 4, 0, nil},
		{aic, "0.5.12", "B200", "fp8", 4, 1, 4, 0, nil},
		{"own", "0.5.9", "B200", "fp8", 4, 1, 4, 0, nil},
	} {
		r := Row{Source: c.source, Engine: "sglang", EngineVersion: c.version, Model: "Qwen/Qwen3.5-397B-A17B", GPU: c.gpu,
			WeightDtype: c.dtype, TP: given(c.tp), EP: given(c.ep), LoadMode: "closed", Concurrency: given(8)}
		normaliser{&r}.run()
		n, _, err := r.drafts(0)
		if len(r.Faults) > 0 || err != nil {
			t.Fatalf("%+v: %v, %v", c, r.Faults, err)
		}
		if r.tp() != c.wantTP || n != c.drafts || !slices.Equal(r.Repairs, c.rules) {
			t.Errorf("%+v: TP %d, %d drafts, rules %v", c, r.tp(), n, r.Repairs)
		}
	}
}

// TestSlowClient: runs of InferenceX have the longer front end with old releases of vLLM too.
func TestSlowClient(t *testing.T) {
	for _, c := range []struct {
		source, engine, version string
		want                    bool
	}{
		{"ai-dynamo/aiconfigurator silicon_sample.csv", "vllm", "0.10.2", true},
		{"SemiAnalysisAI/InferenceX", "vllm", "0.15.1", true},
		{"SemiAnalysisAI/InferenceX", "vllm", "0.16.0", false},
		{"SemiAnalysisAI/InferenceX", "sglang", "0.5.9", false},
		{"inference-sim/training", "vllm", "0.15.1", false},
	} {
		r := Row{Source: c.source, Engine: c.engine, EngineVersion: c.version}
		if got := r.slowClient(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
