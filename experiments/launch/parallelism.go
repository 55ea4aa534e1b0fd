package launch

import (
	"clifftop/experiments/launch/flags"
	"clifftop/model/catalog"
)

// layout is how an engine lies on its GPUs, in the terms of a scenario: the ranks of data-parallel attention are
// data_parallel_size, and each has tensor_parallel_size GPUs.
type layout struct {
	tensor, pipeline, data, expert int
	replicas                       int // independent engines behind one address
	remark                         string
}

// parallelFlags are the flags of a layout by engine, in their canonical names.
var parallelFlags = map[string][]string{
	"vllm": {"tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "enable-expert-parallel"},
	"sglang": {"tp-size", "pp-size", "dp-size", "ep-size", "enable-dp-attention", "enable-ep-moe", "moe-a2a-backend",
		"enable-deepep-moe"},
	"trtllm": {"tp-size", "pp-size", "ep-size", "tensor-parallel-size", "pipeline-parallel-size",
		"moe-expert-parallel-size", "moe-tensor-parallel-size", "enable-attention-dp"},
}

// parallelism translates the sizes of the groups of GPUs.
func (b *builder) parallelism() {
	moe := b.isMoE()
	var l layout
	switch b.line.Engine {
	case "vllm":
		l = b.vllmLayout(moe)
	case "sglang":
		l = b.sglangLayout(moe)
	case "trtllm":
		l = b.trtllmLayout()
	}
	var from Flag
	for _, name := range parallelFlags[b.line.Engine] {
		f, ok := b.given[name]
		if !ok {
			continue
		}
		if _, isInt := humanInt(f.Value); !isInt {
			if _, isBool := readTruth(f.Value); !isBool && name != "moe-a2a-backend" {
				b.noValue(f, "a whole number")
				return
			}
		}
		if from.Name == "" {
			from = f
		}
		if k, _ := b.table.Find(name); f.File || k != nil && k.Rule == "parallelism" {
			b.account(f, flags.Rule, "the groups of GPUs: tensor %d, pipeline %d, data %d, expert %d", l.tensor,
				l.pipeline, l.data,
				l.expert)
		}
	}
	for _, s := range []struct {
		key   string
		n     int
		flags []string
	}{
		{"tensor_parallel_size", l.tensor, []string{"tensor-parallel-size", "tp-size", "enable-attention-dp"}},
		{"pipeline_parallel_size", l.pipeline, []string{"pipeline-parallel-size", "pp-size"}},
		{"data_parallel_size", l.data, []string{"data-parallel-size", "dp-size", "enable-attention-dp"}},
		{"expert_parallel_size", l.expert, []string{"enable-expert-parallel", "ep-size", "moe-expert-parallel-size",
			"moe-a2a-backend", "enable-deepep-moe", "enable-ep-moe"}},
	} {
		if s.n > 1 {
			f := from
			for _, name := range s.flags {
				if g, ok := b.given[name]; ok {
					f = g
					break
				}
			}
			b.put("deployment."+s.key, whole(s.n), f)
		}
	}
	b.engines = max(l.replicas, 1)
	if l.remark != "" {
		b.assume("%s", l.remark)
	}
}

// isMoE reports whether the model has experts; false if it is not known.
func (b *builder) isMoE() bool {
	m := b.root.Get("model")
	if m == nil {
		return false
	}
	llm, err := catalog.LLM(m.Text)
	return err == nil && llm.Experts > 0
}

// vllmLayout: the ranks of a model without experts are engines of their own behind one address.
func (b *builder) vllmLayout(moe bool) layout {
	l := layout{tensor: b.count("tensor-parallel-size", 1), pipeline: b.count("pipeline-parallel-size", 1),
		data: b.count("data-parallel-size", 1), expert: 1}
	if b.has("enable-expert-parallel") && moe {
		l.expert = l.tensor * l.data
	}
	return l
}

// sglangLayout: with data-parallel attention the ranks divide the GPUs of tp-size; without, dp-size is the number of
// engines. All-to-all backends spread the experts over all GPUs.
func (b *builder) sglangLayout(moe bool) layout {
	l := layout{tensor: b.count("tp-size", 1), pipeline: b.count("pp-size", 1), data: 1, expert: b.count("ep-size", 1)}
	a2a := b.given["moe-a2a-backend"].Value
	if moe && (b.has("enable-deepep-moe") || b.has("enable-ep-moe") || a2a != "" && a2a != "none" &&
		a2a != "flashinfer") {
		l.expert = l.tensor
	}
	dp := b.count("dp-size", 1)
	if !b.has("enable-dp-attention") {
		l.replicas = dp
		return l
	}
	if dp > 1 && l.tensor%dp == 0 {
		l.tensor, l.data = l.tensor/dp, dp
		return l
	}
	if dp > 1 {
		b.fault(b.given["dp-size"], "", "%d does not divide tp-size %d (want a divisor, with enable-dp-attention)", dp,
			l.tensor)
	}
	return l
}

// trtllmLayout: with attention data parallelism each GPU of tp_size is a rank.
func (b *builder) trtllmLayout() layout {
	l := layout{tensor: b.count("tensor-parallel-size", b.count("tp-size", 1)),
		pipeline: b.count("pipeline-parallel-size", b.count("pp-size", 1)), data: 1,
		expert: b.count("moe-expert-parallel-size", b.count("ep-size", 1))}
	if shards := b.count("moe-tensor-parallel-size", 0); shards > 0 && l.tensor%shards == 0 && l.expert == 1 {
		l.expert = l.tensor / shards // what experts are not divided by
	}
	if b.has("enable-attention-dp") {
		l.tensor, l.data = 1, l.tensor
	}
	return l
}
