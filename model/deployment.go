package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"clifftop/internal/faults"
)

// Options define how a model is distributed over GPUs and in which number formats. The zero value means one GPU and
// the model's native formats.
type Options struct {
	// TensorParallel is the number of GPUs that share each layer. 0 means 1, here and below.
	TensorParallel int
	// PipelineParallel is the number of stages, each with consecutive layers.
	PipelineParallel int
	// DataParallel is the number of replicas of the attention layers, each with its own sequences. The experts of a
	// mixture-of-experts model are distributed over all of them; a dense model is replicated as a whole.
	DataParallel int
	// ExpertParallel is the number of groups into which the experts are divided. It divides
	// TensorParallel·DataParallel; the rest of that product shards each expert.
	ExpertParallel int
	// Exchange is the way in which data-parallel ranks exchange tokens with experts.
	Exchange Exchange
	// RedundantExperts is the number of copies of popular experts, which balance the ranks (vLLM's EPLB).
	RedundantExperts int
	// DualBatch divides a step into two batches, each of which exchanges tokens while the other one computes.
	DualBatch bool

	// Dtype is the format of the weights; Auto means the native one.
	Dtype Precision
	// AttentionDtype is the format of the projections around attention and other token mixers. Auto means Dtype, but 16
	// bits in a mixture of experts in NVFP4: checkpoints that are quantised to it leave them.
	AttentionDtype Precision
	// MoEDtype is the format of the experts; Auto means the native one if Dtype is Auto too, otherwise Dtype.
	MoEDtype Precision
	// KVDtype is the format of the KV cache: Auto or BF16 for 16 bits, or FP8.
	KVDtype Precision
	// StateBytes is the size of a number in the states of recurrent layers, 2 or 4 bytes; 0 means the model's.
	StateBytes int
}

// Deployment is an LLM on GPUs. It is immutable; create it with [NewDeployment].
type Deployment struct {
	LLM LLM
	GPU GPU
	// Options as resolved: counts of at least 1, formats other than Auto.
	Options
}

// maxParallel limits each kind of parallelism.
const maxParallel = 1 << 16

// NewDeployment returns the deployment with every Auto resolved. It returns all faults joined into one error if the
// model cannot be distributed as requested.
func NewDeployment(llm LLM, gpu GPU, o Options) (*Deployment, error) {
	if err := llm.Validate(); err != nil {
		return nil, fmt.Errorf("model %s: %w", llm.Name, err)
	}
	if err := gpu.Validate(); err != nil {
		return nil, fmt.Errorf("gpu %s: %w", gpu.Name, err)
	}
	d := &Deployment{LLM: llm, GPU: gpu, Options: o}
	var f faults.List
	parallel := func(name string, n *int) {
		if *n == 0 {
			*n = 1
		}
		faults.Within(&f, name, *n, 1, maxParallel)
	}
	parallel("tensor_parallel_size", &d.TensorParallel)
	parallel("pipeline_parallel_size", &d.PipelineParallel)
	parallel("data_parallel_size", &d.DataParallel)
	parallel("expert_parallel_size", &d.ExpertParallel)
	if err := f.Err(); err != nil {
		return nil, err
	}
	f.Add(d.resolveStates(), d.resolvePrecisions(), d.checkTensorParallel(), d.checkExpertParallel(), d.checkExchange())
	f.Check(d.PipelineParallel <= llm.Layers, "pipeline_parallel_size %d exceeds the %d layers of %s",
		d.PipelineParallel, llm.Layers, llm.Name)
	if err := f.Err(); err != nil {
		return nil, err
	}
	return d, nil
}

// resolveStates sets the format of recurrent states.
func (d *Deployment) resolveStates() error {
	if d.StateBytes == 0 {
		return nil
	}
	if d.StateBytes != 2 && d.StateBytes != 4 {
		return fmt.Errorf("states of %d bytes per number are not supported (want 2 or 4)", d.StateBytes)
	}
	d.LLM.Mixers = slices.Clone(d.LLM.Mixers)
	for i := range d.LLM.Mixers {
		if x := &d.LLM.Mixers[i]; x.Kind.Recurrent() {
			x.State.StateBytes = d.StateBytes
		}
	}
	return nil
}

func (d *Deployment) resolvePrecisions() error {
	for _, p := range []Precision{d.Dtype, d.AttentionDtype, d.MoEDtype, d.KVDtype} {
		if p >= precisions {
			return fmt.Errorf("unknown precision %v", p)
		}
	}
	native := d.LLM.Precision
	if native == Auto {
		native = BF16
	}
	if d.MoEDtype == Auto {
		d.MoEDtype = d.Dtype
		if d.Dtype == Auto {
			d.MoEDtype = d.LLM.MoEPrecision
		}
		if d.MoEDtype == Auto {
			d.MoEDtype = native
		}
	}
	if d.AttentionDtype == Auto && d.Dtype == NVFP4 && d.LLM.Experts > 0 && native != NVFP4 {
		d.AttentionDtype = BF16
	}
	if d.Dtype == Auto {
		d.Dtype = native
	}
	if d.AttentionDtype == Auto {
		d.AttentionDtype = d.Dtype
	}
	switch d.KVDtype {
	case Auto, FP16:
		d.KVDtype = BF16
	case BF16, FP8:
	default:
		return fmt.Errorf("kv_cache_dtype %v is not supported (want auto, bf16 or fp8)", d.KVDtype)
	}
	return nil
}

func (d *Deployment) checkTensorParallel() error {
	tp := d.TensorParallel
	if tp == 1 && d.DataParallel == 1 {
		return d.checkLinks()
	}
	allowed := d.LLM.tensorParallelSizes()
	ok := false
	for _, n := range allowed {
		ok = ok || n == tp
	}
	if !ok {
		return fmt.Errorf("tensor_parallel_size %d does not divide the %d heads (%d KV heads) of %s (want %s)",
			tp, d.LLM.Heads, d.LLM.KVHeads, d.LLM.Name, list(allowed))
	}
	if err := d.checkLinks(); err != nil {
		return err
	}
	if err := d.checkNode(); err != nil {
		return err
	}
	if err := d.LLM.checkHeads(tp); err != nil {
		return err
	}
	exchange := tp > 1 || (d.LLM.Experts > 0 && d.DataParallel > 1)
	if exchange && d.GPU.Kernels.AllReduce.Row == "" {
		return fmt.Errorf("communication between GPUs is not modelled on %s: no all-reduce measurements (want "+
			"tensor_parallel_size 1, or a GPU record with an allreduce section)", d.GPU.Name)
	}
	return nil
}

// checkHeads returns an error if ranks do not have whole heads of layers with heads of their own.
func (m *LLM) checkHeads(tp int) error {
	for _, x := range m.mixers() {
		heads, kv := x.Heads, x.KVHeads
		if x.Kind.Recurrent() {
			heads, kv = x.State.ValueHeads, x.State.KeyHeads
		}
		if heads%tp != 0 || !m.UsesMLA() && kv%tp != 0 && tp%kv != 0 {
			return fmt.Errorf("tensor_parallel_size %d does not divide the %d heads (%d key heads) of the %v layers "+
				"of %s",
				tp, heads, kv, x.Kind, m.Name)
		}
	}
	return nil
}

// checkNode returns an error if no machine has tensor_parallel_size GPUs of this kind. Servers of eight and more are
// also joined over the network, as whole domains.
func (d *Deployment) checkNode() error {
	tp, domain := d.TensorParallel, d.GPU.DomainSize()
	if tp <= domain || (domain >= usualNode && tp%domain == 0) {
		return nil
	}
	what := fmt.Sprintf("at most %d", domain)
	if domain >= usualNode {
		what += ", or a multiple of it"
	}
	return fmt.Errorf("tensor_parallel_size %d does not fit the machine: links join %d × %s (want %s)", tp, domain,
		d.GPU.Name, what)
}

// tensorParallelSizes returns the sizes at which each rank has whole heads.
func (m *LLM) tensorParallelSizes() []int {
	var sizes []int
	for n := 1; n <= m.Heads && n <= maxParallel; n++ {
		if m.Heads%n == 0 && (m.UsesMLA() || m.KVHeads%n == 0 || n%m.KVHeads == 0) {
			sizes = append(sizes, n)
		}
	}
	return sizes
}

func (d *Deployment) checkExpertParallel() error {
	ep := d.ExpertParallel
	switch {
	case d.RedundantExperts < 0 || d.RedundantExperts > maxParallel:
		return fmt.Errorf("num_redundant_experts is %d (want 0 to %d)", d.RedundantExperts, maxParallel)
	case ep == 1 && d.RedundantExperts > 0:
		return fmt.Errorf("num_redundant_experts %d has no effect without expert parallelism (want "+
			"expert_parallel_size above 1)", d.RedundantExperts)
	case ep == 1:
		return nil
	case d.LLM.Experts == 0:
		return fmt.Errorf("expert_parallel_size %d: %s has no experts", ep, d.LLM.Name)
	case d.moeRanks()%ep != 0:
		return fmt.Errorf("expert_parallel_size %d does not divide tensor_parallel_size·data_parallel_size = %d", ep,
			d.moeRanks())
	case (d.LLM.Experts+d.RedundantExperts)%ep != 0 && d.RedundantExperts > 0:
		return fmt.Errorf("expert_parallel_size %d does not divide the %d experts of %s and %d redundant ones", ep,
			d.LLM.Experts, d.LLM.Name, d.RedundantExperts)
	case d.LLM.Experts%ep != 0 && d.RedundantExperts == 0:
		return fmt.Errorf("expert_parallel_size %d does not divide the %d experts of %s", ep, d.LLM.Experts, d.LLM.Name)
	}
	return nil
}

// copiesOfExperts returns the mean number of copies of an expert.
func (d *Deployment) copiesOfExperts() float64 {
	return float64(d.LLM.Experts+d.RedundantExperts) / float64(d.LLM.Experts)
}

// list formats numbers as "1, 2, 4 or 8".
func list(ns []int) string {
	var b strings.Builder
	for i, n := range ns {
		switch {
		case i == 0:
		case i == len(ns)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		fmt.Fprint(&b, n)
	}
	return b.String()
}

// moeRanks returns the number of GPUs over which the experts of a layer are distributed.
func (d *Deployment) moeRanks() int { return d.TensorParallel * d.DataParallel }

// GPUs returns the number of GPUs of the deployment.
func (d *Deployment) GPUs() int {
	return d.TensorParallel * d.PipelineParallel * d.DataParallel
}

// Params returns the number of parameters of the model: in total, and used per token.
func (d *Deployment) Params() (total, active float64) { return d.LLM.Params() }

// stageLayers returns the number of layers of the longest pipeline stage.
func (d *Deployment) stageLayers() int {
	return (d.LLM.Layers + d.PipelineParallel - 1) / d.PipelineParallel
}

// WeightBytesPerRank returns the bytes of the weights on the GPU with the most. Embeddings, output head, router and
// norms have 16 bits.
func (d *Deployment) WeightBytesPerRank() float64 {
	m := &d.LLM
	h, tp := float64(m.Hidden), float64(d.TensorParallel)
	embed := float64(m.Vocab) * h * 2 / tp
	if d.PipelineParallel == 1 && !m.TiedEmbeddings {
		embed *= 2 // one stage has both the embedding and the head
	}
	n := d.stageLayers()
	dense, moe := m.mlpLayers()
	if d.PipelineParallel > 1 { // the largest stage has the larger layers
		if moe > 0 && d.moeLayerBytes() > d.denseLayerBytes() {
			moe = min(moe, n)
			dense = min(dense, n-moe)
		} else {
			dense = min(dense, n)
			moe = min(moe, n-dense)
		}
	}
	share := float64(n) / float64(m.Layers)
	layers := share*d.mixerBytes() + float64(n)*2*h*2 + float64(dense)*d.denseLayerBytes() +
		float64(moe)*d.moeLayerBytes()
	others := float64(m.LearnedPositions)*h*2 + m.Encoder.Params*2/tp
	return math.Ceil(layers + embed + h*2 + others)
}

// mixerBytes returns the bytes of the weights of the mixers of all layers on one rank.
func (d *Deployment) mixerBytes() float64 {
	return d.LLM.allMixerParams(d.TensorParallel)*d.AttentionDtype.WeightBytes() + d.wideBytes()
}

// denseLayerBytes returns the bytes of a dense layer's MLP on one rank.
func (d *Deployment) denseLayerBytes() float64 {
	return d.LLM.mlpParams(d.LLM.Intermediate) / float64(d.TensorParallel) * d.Dtype.WeightBytes()
}

// moeLayerBytes returns the bytes of a layer's experts, shared experts and router on one rank.
func (d *Deployment) moeLayerBytes() float64 {
	return d.expertLayerBytes() +
		d.LLM.sharedParams()/float64(d.TensorParallel)*d.Dtype.WeightBytes() + d.LLM.routerParams()*2
}

// expertLayerBytes returns the bytes of a layer's routed experts on one rank.
func (d *Deployment) expertLayerBytes() float64 {
	return float64(d.LLM.Experts+d.RedundantExperts) * d.LLM.expertParams() / float64(d.moeRanks()) *
		d.MoEDtype.WeightBytes()
}

// Notes returns remarks for readers of results: constants that were not measured on the GPU, and formats that it
// does not support in hardware.
func (d *Deployment) Notes() []string {
	var notes []string
	for _, what := range d.LLM.LeftOut {
		notes = append(notes, d.LLM.Name+": "+what)
	}
	if d.GPU.Calibrated != Calibrated {
		from := "medians over other GPUs"
		if d.GPU.KernelsOf != "" {
			from = "the kernels of " + d.GPU.KernelsOf
		}
		notes = append(notes, fmt.Sprintf("%s is %v: step times rest on %s", d.GPU.Name, d.GPU.Calibrated, from))
	}
	no := func(p Precision, what string) {
		if (p == FP8 && d.GPU.FP8FLOPs == 0) || (p == NVFP4 && d.GPU.FP4FLOPs == 0) {
			notes = append(notes, fmt.Sprintf("%s has no %v units: %s are stored in %v and computed in bf16 "+
				"(want a GPU with %v units, or bf16 or int4)", d.GPU.Name, p, what, p, p))
		}
	}
	no(d.Dtype, "weights")
	if d.LLM.Experts > 0 && d.MoEDtype != d.Dtype {
		no(d.MoEDtype, "expert weights")
	}
	return notes
}

// String describes the deployment, for example "llama-3.1-70b fp8 on 4 × h100-sxm (TP 4)".
func (d *Deployment) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %v", d.LLM.Name, d.Dtype)
	if d.AttentionDtype != d.Dtype {
		fmt.Fprintf(&b, "/%v attention", d.AttentionDtype)
	}
	if d.LLM.Experts > 0 && d.MoEDtype != d.Dtype {
		fmt.Fprintf(&b, "/%v experts", d.MoEDtype)
	}
	fmt.Fprintf(&b, " on %d × %s", d.GPUs(), d.GPU.Name)
	var how []string
	for _, p := range []struct {
		name string
		n    int
	}{{"TP", d.TensorParallel}, {"PP", d.PipelineParallel}, {"DP", d.DataParallel}, {"EP", d.ExpertParallel}} {
		if p.n > 1 {
			how = append(how, fmt.Sprintf("%s %d", p.name, p.n))
		}
	}
	if len(how) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(how, ", "))
	}
	return b.String()
}
