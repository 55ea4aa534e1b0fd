package estimate

import (
	"fmt"
	"math"

	"clifftop/experiments/scenario"
	"clifftop/model"
)

// sampled is the number of requests whose lengths stand for the traffic.
const sampled = 20_000

// KV says whether a model fits its GPUs, and how many requests its KV cache holds at once: at the lengths given in
// tokens or, without any, at those of the scenario's traffic.
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
	r.add("kv_blocks", "blocks", float64(f.UsableBlocks), "blocks", "KV cache / (bytes of a token × tokens of a block), rounded down, - 1 that holds nothing",
		fmt.Sprintf("%s / (%s × %d) - 1", amount(f.Budget.KVCache), amount(float64(f.Budget.BlockBytes)/float64(f.BlockSize)), f.BlockSize))
	r.add("kv_tokens", "tokens that fit", float64(f.UsableBlocks*f.BlockSize), "tokens", "blocks × tokens of a block", fmt.Sprintf("%d × %d", f.UsableBlocks, f.BlockSize))
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

// memory shows where the memory of a GPU goes.
func (r *Result) memory(f *scenario.Fit) {
	const gb = 1e9
	b := &f.Budget
	r.add("requested_gb", "memory for the engine, per GPU", b.Requested/gb, "GB", "memory × gpu_memory_utilization", fmt.Sprintf("%s × %g", amount(b.Total/gb), f.Utilization))
	d := f.Deployment
	total, _ := d.Params()
	ranks := d.TensorParallel * d.PipelineParallel
	r.add("weights_gb", "weights", b.Weights/gb, "GB", "parameters × bytes of each / GPUs that share them",
		fmt.Sprintf("%s billion in %v, on %d", amount(total/1e9), d.Dtype, ranks))
	reserve := b.Runtime + b.Activations + b.Sampler + b.Graphs
	r.add("reserve_gb", "activations and runtime", reserve/gb, "GB", "activations + sampler + CUDA graphs + context",
		fmt.Sprintf("%s + %s + %s + %s", amount(b.Activations/gb), amount(b.Sampler/gb), amount(b.Graphs/gb), amount(b.Runtime/gb)))
	r.add("kv_cache_gb", "left for the KV cache", b.KVCache/gb, "GB", "memory for the engine - weights - activations and runtime",
		fmt.Sprintf("%s - %s - %s", amount(b.Requested/gb), amount(b.Weights/gb), amount(reserve/gb)))
	bytes := d.KVBytesPerToken()
	m := &d.LLM
	if m.UsesMLA() {
		r.add("kv_bytes_per_token", "a token, per GPU", float64(bytes), "bytes", "layers × (latent + rope) × bytes",
			fmt.Sprintf("%s × (%d + %d) × %s", amount(layers(d)), m.MLA.KVRank, m.MLA.RopeDim, amount(float64(bytes)/layers(d)/float64(m.MLA.KVRank+m.MLA.RopeDim))))
		return
	}
	heads := max(1, m.KVHeads/d.TensorParallel)
	r.add("kv_bytes_per_token", "a token, per GPU", float64(bytes), "bytes", "2 × layers × KV heads × head size × bytes",
		fmt.Sprintf("2 × %s × %d × %d × %s", amount(layers(d)), heads, m.HeadDim, amount(float64(bytes)/2/layers(d)/float64(heads*m.HeadDim))))
	if m.WindowedLayers > 0 {
		r.note(fmt.Sprintf("%d of %d layers look back %d tokens only: long sequences hold less than this for each token, which the numbers of requests count.", m.WindowedLayers, m.Layers, m.SlidingWindow))
	}
}

// layers is the number of them on a GPU.
func layers(d *model.Deployment) float64 {
	return math.Ceil(float64(d.LLM.Layers) / float64(d.PipelineParallel))
}

func (r *Result) misfit(m *model.FitError) {
	line := r.add("missing_gb", "missing, per GPU", m.MissingBytes/1e9, "GB", "two blocks of KV - left for the KV cache",
		fmt.Sprintf("%s - %s", amount(2*float64(m.Budget.BlockBytes)/1e9), amount(m.Budget.KVCache/1e9)))
	line.Says = "does not fit"
	switch {
	case m.TensorParallel > 0 && m.Dtype != model.Auto:
		r.note(fmt.Sprintf("It fits with --tp %d, or with --set deployment.dtype=%v.", m.TensorParallel, m.Dtype))
	case m.TensorParallel > 0:
		r.note(fmt.Sprintf("It fits with --tp %d.", m.TensorParallel))
	case m.Dtype != model.Auto:
		r.note(fmt.Sprintf("It fits with --set deployment.dtype=%v.", m.Dtype))
	default:
		r.note("No tensor_parallel_size up to 64 and no smaller dtype makes it fit.")
	}
}

// traffic shows how many requests fit at the lengths that the traffic has.
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
		r.sequences(f, "requests_at_"+p.name, fmt.Sprintf("requests of %d tokens, the traffic's %s", l.Total(), p.name), l.Total())
	}
	r.note("Lengths are prompt and answer together, what a request holds at its end; on the way there it holds less, and shared prefixes are held once. Unlike lengths mix: clifftop run shows what the pool holds in use.")
	return nil
}

// sequences shows how many requests of n tokens the pool holds.
func (r *Result) sequences(f *scenario.Fit, name, text string, n int) {
	each := f.Deployment.Pages(n, f.BlockSize)
	fit := float64(f.UsableBlocks / each)
	line := r.add(name, text, fit, "requests", "blocks / blocks of a request, rounded down", fmt.Sprintf("%d / %d", f.UsableBlocks, each))
	switch {
	case fit < 1:
		line.Says = "not even one fits"
	case fit > float64(f.MaxNumSeqs):
		line.Says = fmt.Sprintf("of which max_num_seqs lets %d run", f.MaxNumSeqs)
	default:
		line.Says = "the KV cache ends it before max_num_seqs"
	}
}
