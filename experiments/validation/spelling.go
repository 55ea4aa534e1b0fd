package validation

import (
	"strconv"
	"strings"
	"time"

	"clifftop/experiments/scenario"
	"clifftop/internal/pattern"
	"clifftop/model"
	"clifftop/model/catalog"
)

// normaliser brings the spellings that people and benchmark tools write into those of scenarios, and derives what
// follows from other cells. It runs once, after all cells of a row have been read.
type normaliser struct{ *Row }

func (r normaliser) run() {
	r.readDate()
	r.readEngine()
	r.readGPU()
	r.readModel()
	r.readFlags()
	r.WeightDtype = r.dtype(r.WeightDtype)
	if r.WeightDtype == "auto" {
		r.WeightDtype = ""
	}
	r.KVDtype = r.dtype(r.KVDtype)
	for _, t := range []struct {
		name string
		cell *string
	}{{"prefix_caching", &r.PrefixCaching}, {"chunked_prefill", &r.ChunkedPrefill}, {"dp_attention", &r.DPAttention},
		{"async_scheduling", &r.AsyncScheduling}, {"prefill_dp_attention", &r.Prefill.DPAttention},
		{"decode_dp_attention", &r.Decode.DPAttention}, {"kv_offload", &r.Offload.On}} {
		r.readToggle(t.name, t.cell)
	}
	switch strings.ToLower(r.MoE) {
	case "true", "yes":
		r.MoE = "1"
	case "false", "no":
		r.MoE = "0"
	}
	r.readDrafts()
	r.readLoad()
	r.readParallelism()
	r.readRecipes()
	r.ArrivalProcess = strings.ToLower(r.ArrivalProcess)
	r.Quality = strings.ToLower(r.Quality)
}

// unknownCells are texts that stand for an empty cell.
var unknownCells = map[string]bool{"": true, "-": true, "–": true, "n/a": true, "na": true, "nan": true, "null": true,
	"none given": true, "unknown": true}

// number reads a number as people write it: 1,024 or 95 %. A percentage is divided by 100, unless the column itself
// is in percent.
func number(column, cell string) (float64, error) {
	s := strings.ReplaceAll(strings.ReplaceAll(cell, ",", ""), "_", "")
	s, percent := strings.CutSuffix(s, "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if percent && !strings.Contains(column, "pct") {
		x /= 100
	}
	return x, err
}

// readToggle turns the ways to write on and off into these.
func (r normaliser) readToggle(name string, cell *string) {
	switch strings.ToLower(*cell) {
	case "":
	case "on", "true", "yes", "1", "1.0", "enabled", "enable", "t", "y":
		*cell = "on"
	case "off", "false", "no", "0", "0.0", "disabled", "disable", "none", "f", "n":
		*cell = "off"
	case "auto", "default":
		*cell = ""
	default:
		r.fault("%s: %q is not allowed (want on or off)", name, *cell)
	}
}

// dateLayouts are the forms of a date that are read.
var dateLayouts = []string{"2006-01-02", "20060102", "2006/01/02", "2006-01-02 15:04:05", "2006-01-02T15:04:05",
	time.RFC3339, "20060102-150405", "2006-01-02_15-04-05"}

// readDate brings the date into the form 2026-04-28.
func (r normaliser) readDate() {
	if r.Date == "" {
		return
	}
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, r.Date); err == nil {
			r.Date = t.Format("2006-01-02")
			return
		}
	}
	r.fault("date: %q is not a date (want one such as 2026-04-28)", r.Date)
}

// trtllmEngine is the policy of TensorRT-LLM's default scheduler.
const trtllmEngine = "trtllm-guaranteed-no-evict"

var (
	engineWord = pattern.New(`tensorrt|trt|sglang|vllm|atom`)
	stackWord  = pattern.New(`dynamo|mori|llm-d|prefill and decode apart|disagg`)
)

// readEngine finds the engine in the cell, the configuration, the image or the name of the machine.
func (r normaliser) readEngine() {
	cell := strings.ToLower(r.Engine)
	r.Stack = stackWord.Get().FindString(cell)
	if _, ok := scenario.BuiltIn().Policies.Find(cell); ok {
		r.Engine = cell
		return
	}
	for _, text := range []string{r.Engine, r.Configuration, r.Image, r.GPU, r.Experiment} {
		word := engineWord.Get().FindString(strings.ToLower(text))
		switch word {
		case "":
			continue
		case "tensorrt", "trt":
			word = trtllmEngine
		}
		if r.EngineVersion == "" && text == r.Engine {
			r.EngineVersion = releasePattern.Get().FindString(text)
		}
		r.Engine = word
		return
	}
	if r.Engine == "" {
		r.fault("engine: the cell is empty (want vllm, sglang or trtllm)")
	}
}

// policy is the scheduling policy of the engine.
func (r *Row) policy() string {
	if r.Engine == "atom" { // AMD's engine has vLLM's interface and scheduler
		return "vllm"
	}
	return r.Engine
}

var (
	gpuCount  = pattern.New(`^([0-9]+) *[x×*] *`)
	gpuIgnore = pattern.New(`^(sxm[0-9]?|oam|hbm[0-9]e?|[0-9]+gb|nvl[0-9]+|trt|vllm|sglang|atom|mtp|disagg|` +
		`multinode|slurm|docker|nb|nv|nvs|nvd|dsv|cw|cr|amd|amds|tw|gke|aws|oci|dgxc?|blackwell|edition|ai|gpu)$`)
	gpuVendor = pattern.New(`^(nvidia|amd|instinct|geforce|tesla|intel|aws|google)-`)
)

// readGPU brings the name of the GPU into that of the catalog: nvidia-smi's, a data sheet's, or that of a machine of
// a benchmark, such as b200-trt.
func (r normaliser) readGPU() {
	if m := gpuCount.Get().FindStringSubmatch(r.GPU); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n > 0 && r.GPUs == nil {
			r.GPUs = &n
		}
		r.GPU = r.GPU[len(m[0]):]
	}
	if _, err := catalog.GPU(r.GPU); err == nil {
		return
	}
	name := strings.NewReplacer(" ", "-", "_", "-", "(", "", ")", "", ",", "").Replace(strings.ToLower(r.GPU))
	for gpuVendor.Get().MatchString(name) {
		name = name[strings.IndexByte(name, '-')+1:]
	}
	if strings.HasPrefix(name, "rtx-pro-6000") {
		name = strings.NewReplacer("workstation", "ws", "server", "se").Replace(name)
	}
	words := strings.Split(name, "-")
	for _, sizes := range []bool{true, false} { // 40gb and 80gb distinguish A100s
		var kept []string
		for _, w := range words {
			if size := strings.HasSuffix(w, "gb"); !gpuIgnore.Get().MatchString(w) || size && sizes {
				kept = append(kept, w)
			}
		}
		if g, err := catalog.GPU(strings.Join(kept, "-")); err == nil {
			r.GPU = g.Name
			return
		}
	}
}

var quantised = pattern.New(`(?i)[-_.](fp8|fp4|nvfp4|mxfp4|int4|awq|gptq|w4a16|bf16|fp16|dynamic|block|kv|preview|` +
	`v[0-9]|[0-9]{4}|hf|it|instruct|chat|base)$`)

// readModel maps the name of the model to one of the catalog. It removes a format of the weights, which becomes their
// dtype if none is given, and the name of another training of the same architecture.
func (r normaliser) readModel() {
	name, known := r.Model, false
	for {
		if _, err := catalog.LLM(name); err == nil && !known {
			r.Model, known = name, true
		} else if plain := strings.Replace(name, "Meta-", "", 1); !known && plain != name {
			if _, err := catalog.LLM(plain); err == nil {
				r.Model, known = plain, true
			}
		}
		m := quantised.Get().FindStringSubmatchIndex(name)
		if m == nil {
			return // the error names an unknown model as it is written
		}
		switch word := strings.ToLower(name[m[2]:m[3]]); {
		case r.WeightDtype != "":
		case word == "awq", word == "gptq", word == "w4a16":
			r.WeightDtype = "int4"
		case formats.Get().MatchString(word):
			r.WeightDtype = word
		}
		name = name[:m[0]]
	}
}

var (
	inParentheses = pattern.New(`\(([^)]*)\)`)
	formats       = pattern.New(`nvfp4|mxfp4|fp4|bfloat16|bf16|float16|fp16|half|fp8|float8|e4m3|e5m2|w4a16|int4|` +
		`awq|gptq|auto`)
)

// dtype brings the name of a number format into that of a scenario. Text that names none is returned as it is.
func (r normaliser) dtype(cell string) string {
	text := strings.ToLower(cell)
	if m := inParentheses.Get().FindStringSubmatch(text); m != nil && formats.Get().MatchString(m[1]) {
		text = m[1] // auto (bf16)
	}
	switch word := formats.Get().FindString(text); word {
	case "":
		return cell
	case "bfloat16":
		return "bf16"
	case "float16", "half":
		return "fp16"
	case "float8", "e4m3", "e5m2":
		return "fp8"
	case "w4a16", "awq", "gptq":
		return "int4"
	case "fp4":
		return r.fourBits()
	default:
		return word
	}
}

// fourBits returns the meaning of fp4: MXFP4 for models that are published so, and on AMD's GPUs; otherwise NVFP4.
func (r normaliser) fourBits() string {
	llm, _ := catalog.LLM(r.Model)
	if llm.MoEPrecision == model.MXFP4 || llm.Precision == model.MXFP4 ||
		strings.HasPrefix(strings.ToLower(r.GPU), "mi") {
		return "mxfp4"
	}
	return "nvfp4"
}

// readDrafts reads how the engine decodes speculatively: none, or a method.
func (r normaliser) readDrafts() {
	switch r.SpecMethod = strings.ToLower(r.SpecMethod); r.SpecMethod {
	case "off", "false", "no", "0":
		r.SpecMethod = "none"
	case "on", "true", "yes", "1":
		r.SpecMethod = "mtp"
	case "":
		if r.Launch.has("speculative_algorithm", "speculative_config", "decoding_type") {
			r.SpecMethod = "mtp"
		}
	}
}

// readLoad finds the kind of load where it is not given.
func (r normaliser) readLoad() {
	switch text := strings.ToLower(r.LoadMode); {
	case strings.HasPrefix(text, "closed"), strings.HasPrefix(text, "concurren"), text == "users":
		r.LoadMode = "closed"
	case strings.HasPrefix(text, "open"), strings.HasPrefix(text, "rate"), text == "qps":
		r.LoadMode = "open"
	case text == "trace", text == "replay":
		r.LoadMode = "trace"
	case text != "": // the error names it
	case r.Rate != nil:
		r.LoadMode = "open"
	case r.Concurrency != nil, r.Users != nil, r.Power.BatchMean != nil:
		r.LoadMode = "closed"
	case r.RequestFile != "":
		r.LoadMode = "trace"
	default:
		r.fault("load_mode: the cell is empty (want open, closed or trace, or a concurrency or a rate_rps)")
	}
}

// readParallelism derives the tensor-parallel size from the number of GPUs.
func (r normaliser) readParallelism() {
	others := or(r.PP, 1) * or(r.DP, 1) * or(r.Replicas, 1)
	if n := or(r.GPUs, 0); r.TP == nil && n > 0 && others > 0 && n%others == 0 && !r.Pools() {
		r.TP = given(n / others)
	}
}
