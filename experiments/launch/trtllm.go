package launch

import (
	"strings"

	"clifftop/experiments/launch/flags"
	"clifftop/model/catalog"
)

// usual has the modelled values of options, which are the defaults, and the part that is not modelled with other
// values.
var usual = map[string]struct{ values, other string }{
	"backend":                     {"pytorch", "kernels are those of the PyTorch backend"},
	"max-beam-width":              {"1", "beam search"},
	"disable-overlap-scheduler":   {"false", "the step times are those of the overlap scheduler"},
	"batch-wait-timeout-ms":       {"0 0.0", "prompts do not wait for others"},
	"batch-wait-timeout-iters":    {"0", "prompts do not wait for others"},
	"batch-wait-max-tokens-ratio": {"0 0.0", "prompts do not wait for others"},
	"orchestrator-type":           {"none rpc mpi", "the host of the engine has its measured times"},
	"enable-autotuner":            {"true", "kernels are those that tuning finds"},
	"autotuner-enabled":           {"true", "kernels are those that tuning finds"},
	"device":                      {"cuda auto", "the device is the GPU of the scenario"},
}

// theDefault accounts for an option of SGLang or TensorRT-LLM whose default alone is modelled.
func theDefault(b *builder, f Flag) {
	k, _ := b.table.Find(f.Name)
	if f.File {
		k, _ = b.table.FileKey(f.Name)
	}
	for v := range strings.FieldsSeq(usual[k.Name].values) {
		if strings.EqualFold(v, f.Value) {
			b.account(f, flags.None, "the default")
			return
		}
	}
	b.account(f, flags.Unmodelled, "%s", usual[k.Name].other)
}

// expertSlots translates the slots of TensorRT-LLM's load balancer of experts: those beyond the experts are copies.
func expertSlots(b *builder, f Flag) {
	n, ok := b.int(f)
	if !ok {
		return
	}
	m := b.root.Get("model")
	if m == nil {
		return
	}
	llm, err := catalog.LLM(m.Text)
	if err != nil || llm.Experts == 0 {
		b.account(f, flags.Unmodelled, "copies of experts: the number of experts of the model is not known here")
		return
	}
	copies := max(n-llm.Experts, 0)
	if copies > 0 {
		b.put("deployment.num_redundant_experts", whole(copies), f)
	}
	b.account(f, flags.Rule, "deployment.num_redundant_experts: %d", copies)
}
