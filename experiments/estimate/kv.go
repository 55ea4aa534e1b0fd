package estimate

import (
	"fmt"
	"math"

	"clifftop/experiments/scenario"
	"clifftop/model"
)

// sampled is the number of requests that represent the lengths of the traffic.
const sampled = 20_000

// KV estimates whether a model fits its GPUs, and how many requests its KV cache holds at once. The lengths of requests
// are in tokens. Without lengths, those of the scenario's traffic are used.
func KV(s *scenario.Scenario, lengths []int) (*Result, error) {
	f, err := s.Fit()
	if err != nil {
		return nil, err
	}
	d := f.Deployment
	r := newResult("kv", d.String())
	r.memory(f)
	if m := f.Misfit; m != nil {
		r.misfit(m)
		return r, nil
	}
	r.add("kv_blocks", "blocks", float64(f.UsableBlocks), "blocks",
		"KV cache / (bytes per token × tokens per block), rounded down, - 1 reserved block",
		fmt.Sprintf("%s / (%s × %d) - 1", amount(f.Budget.KVCache),
			amount(float64(f.Budget.BlockBytes)/float64(f.BlockSize)), f.BlockSize))
	r.add("kv_tokens", "tokens that fit", float64(f.UsableBlocks*f.BlockSize), "tokens", "blocks × tokens per block",
		fmt.Sprintf("%d × %d", f.UsableBlocks, f.BlockSize))
	if len(lengths) == 0 {
		return r, r.traffic(f)
	}
	for _, n := range lengths {
		if n < 1 || n > math.MaxInt32 {
			return nil, fmt.Errorf("a request of %d tokens is not allowed (want 1 to %d)", n, math.MaxInt32)
		}
		r.sequences(f, fmt.Sprintf("requests_of_%d_tokens", n), fmt.Sprintf("requests of %d tokens", n), n)
	}
	return r, nil
}

// memory adds the use of a GPU's memory.
func (r *Result) memory(f *scenario.Fit) {
	const gb = 1e9
	b := &f.Budget
	r.add("requested_gb", "memory for the engine, per GPU", b.Requested/gb, "GB", "memory × gpu_memory_utilization",
		fmt.Sprintf("%s × %g", amount(b.Total/gb), f.Utilization))
	d := f.Deployment
	total, _ := d.Params()
	ranks := d.TensorParallel * d.PipelineParallel
	r.add("weights_gb", "weights", b.Weights/gb, "GB", "parameters × bytes per parameter / GPUs that share them",
		fmt.Sprintf("%s billion in %v, on %d", amount(total/1e9), d.Dtype, ranks))
	reserve := b.Runtime + b.Activations + b.Sampler + b.Graphs
	r.add("reserve_gb", "activations and runtime", reserve/gb, "GB", "activations + sampler + CUDA graphs + context",
		fmt.Sprintf("%s + %s + %s + %s", amount(b.Activations/gb), amount(b.Sampler/gb), amount(b.Graphs/gb),
			amount(b.Runtime/gb)))
	r.add("kv_cache_gb", "remaining for the KV cache", b.KVCache/gb, "GB",
		"memory for the engine - weights - activations and runtime",
		fmt.Sprintf("%s - %s - %s", amount(b.Requested/gb), amount(b.Weights/gb), amount(reserve/gb)))
	bytes := d.KVBytesPerToken()
	m := &d.LLM
	if m.UsesMLA() {
		size := float64(bytes) / layers(d) / float64(m.MLA.KVRank+m.MLA.RopeDim)
		r.add("kv_bytes_per_token", "KV per token and GPU", float64(bytes), "bytes", "layers × (latent + rope) × bytes",
			fmt.Sprintf("%s × (%d + %d) × %s", amount(layers(d)), m.MLA.KVRank, m.MLA.RopeDim, amount(size)))
		return
	}
	heads := max(1, m.KVHeads/d.TensorParallel)
	size := float64(bytes) / 2 / layers(d) / float64(heads*m.HeadDim)
	r.add("kv_bytes_per_token", "KV per token and GPU", float64(bytes), "bytes",
		"2 × layers × KV heads × head size × bytes",
		fmt.Sprintf("2 × %s × %d × %d × %s", amount(layers(d)), heads, m.HeadDim, amount(size)))
	for i := range m.Mixers {
		if x := &m.Mixers[i]; x.Window > 0 {
			r.note(fmt.Sprintf("%d of %d layers have a sliding window of %d tokens, so long sequences need less "+
				"memory per token. The numbers of requests take this into account.", x.Layers, m.Layers, x.Window))
		}
	}
}

// layers returns the number of layers per GPU.
func layers(d *model.Deployment) float64 {
	return math.Ceil(float64(d.LLM.Layers) / float64(d.PipelineParallel))
}

// misfit adds the missing memory and the changes that make the model fit.
func (r *Result) misfit(m *model.FitError) {
	line := r.add("missing_gb", "missing, per GPU", m.MissingBytes/1e9, "GB",
		"two KV blocks - remaining for the KV cache",
		fmt.Sprintf("%s - %s", amount(2*float64(m.Budget.BlockBytes)/1e9), amount(m.Budget.KVCache/1e9)))
	line.Says = "does not fit"
	switch {
	case m.TensorParallel > 0 && m.Dtype != model.Auto:
		r.note(fmt.Sprintf("The model fits with --tp %d, or with --set deployment.dtype=%v.",
			m.TensorParallel, m.Dtype))
	case m.TensorParallel > 0:
		r.note(fmt.Sprintf("The model fits with --tp %d.", m.TensorParallel))
	case m.Dtype != model.Auto:
		r.note(fmt.Sprintf("The model fits with --set deployment.dtype=%v.", m.Dtype))
	default:
		r.note("The model does not fit with any tensor_parallel_size up to 64 or any smaller dtype.")
	}
}

// traffic adds how many requests of the traffic's lengths fit.
func (r *Result) traffic(f *scenario.Fit) error {
	lengths, err := f.Lengths(sampled)
	if err != nil || len(lengths) == 0 {
		return err
	}
	for _, p := range []struct {
		name string
		of   float64
	}{{"p50", .5}, {"p95", .95}} {
		l := lengths[int(p.of*float64(len(lengths)-1))]
		r.sequences(f, "requests_at_"+p.name,
			fmt.Sprintf("requests of %d tokens, the traffic's %s", l.Total(), p.name), l.Total())
	}
	r.note("Lengths are input and output together, which is what a request holds when it ends. It holds less " +
		"before, and shared prefixes are held once. Real lengths vary; clifftop run shows the use of the pool.")
	return nil
}

// sequences adds how many requests of n tokens the pool holds.
func (r *Result) sequences(f *scenario.Fit, name, text string, n int) {
	each := f.Blocks(n)
	fit := float64(f.UsableBlocks / each)
	line := r.add(name, text, fit, "requests", "blocks / blocks per request, rounded down",
		fmt.Sprintf("%d / %d", f.UsableBlocks, each))
	switch {
	case fit < 1:
		line.Says = "too small for one request"
	case fit > float64(f.MaxNumSeqs):
		line.Says = fmt.Sprintf("max_num_seqs limits them to %d", f.MaxNumSeqs)
	default:
		line.Says = "the KV cache is the limit, not max_num_seqs"
	}
}
