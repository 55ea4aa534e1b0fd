package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/model/catalog"
)

// placement is a model on its GPUs, and the keys of the scenario that say so.
type placement struct {
	deployment *model.Deployment
	model, gpu string     // names of the catalog, or paths as given
	keys       Deployment // with the formats that follow from the model
	ruled      []string   // keys that follow from the engine's rules
}

// resolvePlacement looks the model and the GPU up and spreads one over the other.
func resolvePlacement(s *Scenario, p *policy) (place placement, found findings) {
	llm, llmFile, err := s.llm()
	if err != nil {
		found.fault(s.named("model", s.Model, err, llmNames()))
	}
	gpu, gpuFile, err := s.gpu()
	if err != nil {
		found.fault(s.named("gpu", s.GPU, err, gpuNames()))
	}
	options, faults := s.placementOptions()
	if found.fault(faults...); found.faults != nil {
		return place, found
	}
	d := &s.Deployment
	options.Exchange = d.exchange(p, &gpu)
	gpu = gpu.ForRelease(optional.Value(s.Engine.Version), llm.UsesMLA())
	if limit := d.PowerLimit; limit != nil {
		if gpu, err = gpu.Limited(*limit); err != nil {
			return place, s.refuse("deployment.power_limit", "%v", err)
		}
	}
	on, err := model.NewDeployment(llm, gpu, options)
	if err == nil && p.software.fp8KV && d.KVCacheDtype == "auto" && on.Dtype == model.FP8 {
		options.KVDtype = model.FP8
		on, err = model.NewDeployment(llm, gpu, options)
		place.ruled = []string{"kv_cache_dtype fp8"}
	}
	if err != nil {
		return place, refuse(s.deploymentFaults(err)...)
	}
	place.deployment, place.model, place.gpu, place.keys = on, s.Model, s.GPU, *d
	if !llmFile {
		place.model = llm.Name
	}
	if !gpuFile {
		place.gpu = gpu.Name
	}
	k := &place.keys
	k.Dtype, k.MoEDtype, k.KVCacheDtype = on.Dtype.String(), on.MoEDtype.String(), on.KVDtype.String()
	for _, note := range on.Notes() {
		found.warn("deployment", "%s", note)
	}
	return place, found
}

// placementOptions are the options of the deployment but for the exchange between ranks.
func (s *Scenario) placementOptions() (options model.Options, faults yamldoc.Faults) {
	d := &s.Deployment
	options = model.Options{
		TensorParallel: d.TensorParallelSize, PipelineParallel: d.PipelineParallelSize,
		DataParallel: d.DataParallelSize, ExpertParallel: d.ExpertParallelSize,
		RedundantExperts: d.NumRedundantExperts, DualBatch: d.EnableDBO,
	}
	for _, p := range []struct {
		key, name string
		to        *model.Precision
	}{
		{"dtype", d.Dtype, &options.Dtype}, {"attention_dtype", d.AttentionDtype, &options.AttentionDtype},
		{"moe_dtype", d.MoEDtype, &options.MoEDtype},
		{"kv_cache_dtype", d.KVCacheDtype, &options.KVDtype},
	} {
		if p.name == "" {
			continue
		}
		var err error
		if *p.to, err = model.ParsePrecision(p.name); err != nil {
			faults = append(faults, s.Fault("deployment."+p.key, "%v", err))
		}
	}
	switch d.MambaSSMCacheDtype {
	case "float32":
		options.StateBytes = 4
	case "bfloat16", "float16":
		options.StateBytes = 2
	}
	return options, faults
}

// exchange is how data-parallel ranks exchange tokens with experts.
func (d *Deployment) exchange(p *policy, gpu *model.GPU) model.Exchange {
	if way, err := model.ParseExchange(d.All2AllBackend); err == nil {
		return way
	}
	if p.software.rackExchange && d.DataParallelSize > 1 && d.ExpertParallelSize > 1 &&
		gpu.DomainSize() > gpu.NodeSize() && gpu.Kernels.Exchange[model.ExchangeNVLink].Latency > 0 {
		return model.ExchangeNVLink
	}
	return model.ExchangeGather
}

// named turns the catalog's error about a name into a fault.
func (s *Scenario) named(key, name string, err error, names []string) *yamldoc.Fault {
	var f *yamldoc.Fault
	if errors.As(err, &f) {
		return f
	}
	problem := strings.TrimPrefix(err.Error(), "catalog: ")
	f = s.Fault(key, "%s", problem)
	if !strings.Contains(problem, "nearest") {
		f.Hint = yamldoc.DidYouMean(name, names)
	}
	return f
}

// llm looks the model up, or reads it from a Hugging Face config.json, which may be named by its folder.
func (s *Scenario) llm() (m model.LLM, fromFile bool, err error) {
	path := s.path("model", s.Model)
	if !isPath(s.Model, ".json") {
		if m, err = catalog.LLM(s.Model); err == nil || !isDirectory(path) {
			return m, false, err
		}
	}
	if isDirectory(path) {
		path = filepath.Join(path, "config.json")
	}
	data, err := readFile(path)
	if err != nil {
		return m, true, s.Fault("model", "%s cannot be read: %s", path, PlainFileError(err))
	}
	if s.AllowUnknown {
		m, err = model.ReadUnknownConfig(path, data)
		return m, true, err
	}
	if m, err = model.ReadConfig(path, data); err != nil {
		if _, other := model.ReadUnknownConfig(path, data); other == nil {
			f := s.Fault("model", "%v", err)
			f.Hint = "allow_unknown: true (or --allow-unknown) counts what is unknown as full attention, with a warning"
			return m, true, f
		}
	}
	return m, true, err
}

// gpu looks the GPU up, or reads a record of one.
func (s *Scenario) gpu() (g model.GPU, fromFile bool, err error) {
	if !isPath(s.GPU, ".yaml", ".yml") {
		g, err = catalog.GPU(s.GPU)
		return g, false, err
	}
	path := s.path("gpu", s.GPU)
	data, err := readFile(path)
	if err != nil {
		return g, true, s.Fault("gpu", "%s cannot be read: %s", path, PlainFileError(err))
	}
	if g, err = catalog.ReadGPU(path, data); err != nil {
		return g, true, err
	}
	if g.Own != nil && g.Own.Clifftop != Release {
		return g, true, s.Fault("gpu", "%s was fitted with Clifftop %s, but this is %s "+
			"(write it with clifftop calibrate --record %s)", path, g.Own.Clifftop, Release, path)
	}
	for _, p := range []struct {
		what                  string
		value, unit, from, to float64
	}{
		{"the memory bandwidth in GB/s", g.HBMBytesPerSecond, 1e9, 1, 1e8},
		{"the peak of bf16 in TFLOPS", g.BF16FLOPs, 1e12, 1, 1e8},
	} {
		if x := p.value / p.unit; x < p.from || x > p.to {
			return g, true, s.Fault("gpu", "%s: %s is %g (want %g to %g)", path, p.what, x, p.from, p.to)
		}
	}
	return g, true, nil
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isPath tells a path from a name of the catalog: by its suffix, or as one of a file here or from the root.
func isPath(name string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) }) ||
		strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") || filepath.IsAbs(name)
}

// deploymentFaults finds the keys that the messages of a deployment begin with.
func (s *Scenario) deploymentFaults(err error) yamldoc.Faults {
	var faults yamldoc.Faults
	for _, line := range strings.Split(err.Error(), "\n") {
		key := "deployment"
		for _, name := range []string{"tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size",
			"expert_parallel_size", "kv_cache_dtype", "all2all_backend", "num_redundant_experts"} {
			if rest, ok := strings.CutPrefix(line, name+" "); ok {
				key, line = "deployment."+name, strings.TrimPrefix(rest, "is ")
				break
			}
			if rest, ok := strings.CutPrefix(line, name+": "); ok {
				key, line = "deployment."+name, rest
				break
			}
		}
		faults = append(faults, s.Fault(key, "%s", line))
	}
	return faults
}

func llmNames() []string {
	var names []string
	for _, m := range catalog.LLMs() {
		names = append(append(names, m.Name), m.Aliases...)
	}
	return names
}

func gpuNames() []string {
	var names []string
	for _, g := range catalog.GPUs() {
		names = append(append(names, g.Name), g.Aliases...)
	}
	return names
}

// joined reports whether the data-parallel ranks of a replica are simulated as one engine: where prompts and outputs
// are computed apart, ranks that exchange with each other's experts iterate in lock step, so that they begin and end as
// one.
func joined(s *Scenario, d *model.Deployment) bool {
	return s.apart() && s.Deployment.DataParallelSize > 1 && d.LLM.Experts > 0
}

// ranksTogether is the number of ranks that an engine stands for.
func ranksTogether(s *Scenario, d *model.Deployment) int {
	if !joined(s, d) {
		return 1
	}
	return s.Deployment.DataParallelSize / max(1, s.shares[s.role])
}

func spread(s *Scenario, e *Engine, d *model.Deployment, rank model.StepTimer) model.StepTimer {
	if !joined(s, d) {
		return rank
	}
	return model.NewSpread(rank, s.Deployment.DataParallelSize, s.shares[s.role], *e.MaxNumBatchedTokens)
}
