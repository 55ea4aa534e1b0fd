package launch

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"clifftop/experiments/launch/flags"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/pattern"
	"clifftop/model"
	"clifftop/model/catalog"
)

// modelFlags are the flags of the engines that name the model, in their canonical names.
var modelFlags = []string{"model", "model-path", "served-model-name"}

// model sets the model: that of the options, a record of the catalog, or a config.json beside the file.
func (b *builder) model(o ImportOptions) {
	name, from := b.line.Model, Flag{Name: "model", Value: b.line.Model, At: b.line.ModelAt}
	for _, flag := range modelFlags[:2] {
		f, ok := b.given[flag]
		switch {
		case !ok || f.File && name != "" && b.line.Engine != "trtllm":
		case name != "" && name != f.Value && !f.File && from.Name == "model" && from.Value == b.line.Model:
			b.fault(f, "", "%s is another model than %s, the argument (want one of them)", yamldoc.Short(f.Value),
				yamldoc.Short(name))
			return
		default:
			name, from = f.Value, f
		}
	}
	if served, ok := b.given["served-model-name"]; ok && !inCatalog(name) && !exists(o, name) {
		// The path is of a machine, the name may be known.
		if first, _, _ := strings.Cut(served.Value, ","); inCatalog(first) {
			name, from = first, served
		}
	}
	switch {
	case o.Model != "":
		b.put("model", text(o.Model), Flag{Name: "model", Value: o.Model})
		name = o.Model
	case name == "" && slices.ContainsFunc(b.faults, func(f *yamldoc.Fault) bool {
		return strings.Contains(f.Key, "model")
	}):
		return // its variable has no value
	case name == "":
		b.fault(Flag{Name: "model", At: b.line.At}, "--model NAME sets it", "the command names no model")
		return
	case exists(o, name):
		b.put("model", text(asPath(name)), from)
	default:
		if v, ok := variableIn(name); ok {
			b.fault(from, "--env "+v+"=VALUE sets it", "variable %s has no value (want the name of a model)", v)
			return
		}
		llm, err := catalog.LLM(name)
		if short, _ := checkpoint(name); err != nil && short != name {
			llm, err = catalog.LLM(short)
		}
		if err != nil {
			problem := strings.TrimPrefix(err.Error(), "catalog: ")
			b.fault(from, "put its config.json beside the file and write --model ./config.json, or --model NAME", "%s",
				problem+" (want a model of clifftop catalog models, or its config.json)")
			return
		}
		b.put("model", text(llm.Name), from)
	}
	b.checkpointFormat(name, from)
}

func inCatalog(name string) bool {
	_, err := catalog.LLM(name)
	return err == nil
}

// exists reports whether a model is a config.json, or a folder with one, beside the file.
func exists(o ImportOptions, name string) bool {
	return o.Beside != nil && name != "" && (o.Beside(path.Join(name, "config.json")) ||
		strings.HasSuffix(name, ".json") && o.Beside(name))
}

// asPath is a relative name as a path, so that a scenario does not take it for a name of the catalog.
func asPath(name string) string {
	if path.IsAbs(name) || strings.HasPrefix(name, ".") {
		return name
	}
	return "./" + name
}

// formats are parts of names of checkpoints that say the format of the weights.
var formats = []struct {
	part   *pattern.Pattern
	dtype  string
	remark string
}{
	{pattern.New(`(?i)[-_.](nvfp4|fp4)(-v\d+)?$`), "nvfp4", ""},
	{pattern.New(`(?i)[-_.](mxfp4|w-mxfp4-a-fp8)$`), "mxfp4", ""},
	{pattern.New(`(?i)[-_.](fp8|fp8-dynamic|fp8-block|fp8-kv|w8a8-fp8)$`), "fp8", ""},
	{pattern.New(`(?i)[-_.](awq|gptq|gptq-int4|int4|w4a16|awq-int4|quantized\.w4a16|4bit)$`), "int4", ""},
	{pattern.New(`(?i)[-_.](int8|w8a8|quantized\.w8a8|channel-int8)$`), "fp8", "8-bit integers count as fp8"},
}

// checkpoint divides the name of a model into its name without a format, and the format.
func checkpoint(name string) (short, dtype string) {
	for _, f := range formats {
		if at := f.part.Get().FindStringIndex(name); at != nil {
			return name[:at[0]], f.dtype
		}
	}
	return name, ""
}

// checkpointFormat sets the format of the weights that the checkpoint's name says, where the model's record has
// another.
func (b *builder) checkpointFormat(name string, from Flag) {
	short, dtype := checkpoint(name)
	if dtype == "" {
		return
	}
	llm, err := catalog.LLM(name)
	if err != nil {
		if llm, err = catalog.LLM(short); err != nil {
			return
		}
	}
	if llm.Precision.String() == dtype || llm.MoEPrecision.String() == dtype {
		return
	}
	b.putNote("deployment.dtype", text(dtype), from, "the format of the checkpoint")
}

// methods are the values of --quantization with the format of the weights.
var methods = map[string]string{
	"fp8": "fp8", "ptpc_fp8": "fp8", "fbgemm_fp8": "fp8", "modelopt": "fp8", "modelopt_fp8": "fp8",
	"w8a8_fp8": "fp8", "w8a8_int8": "fp8", "fp8_e4m3": "fp8", "blockwise_int8": "fp8", "awq": "int4",
	"awq_marlin": "int4", "gptq": "int4", "gptq_marlin": "int4", "moe_wna16": "int4", "w4afp8": "int4",
	"modelopt_fp4": "nvfp4", "nvfp4": "nvfp4", "petit_nvfp4": "nvfp4", "mxfp4": "mxfp4", "quark": "",
	"compressed-tensors": "", "none": "", "auto": "", "bitsandbytes": "int4", "auto-round": "int4", "inc": "",
	"torchao": "", "gguf": "int4", "experts_int8": "fp8", "ipex": "", "rtn": "int4",
}

// weights translates the format of weights: dtype and quantization.
func (b *builder) weights(f Flag) {
	value := strings.ToLower(f.Value)
	if !strings.HasPrefix(strings.ToLower(f.Name), "q") { // dtype: of activations and of weights that are not quantised
		precision := map[string]string{"bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "half": "fp16",
			"fp16": "fp16", "float32": "", "float": "", "auto": "", "float8": "fp8"}
		dtype, known := precision[value]
		switch {
		case !known:
			b.noValue(f, "auto, bfloat16, float16 or float32")
		case value == "float32" || value == "float":
			b.account(f, flags.Unmodelled, "weights in 32 bits count as 16 bits")
		case dtype == "", b.quantised():
			b.account(f, flags.Rule, "the format of activations; weights have that of the checkpoint")
		default:
			b.put("deployment.dtype", text(dtype), f)
			b.account(f, flags.Rule, "deployment.dtype: %s", dtype)
		}
		return
	}
	dtype, known := methods[value]
	switch {
	case !known:
		b.noValue(f, yamldoc.OneOf(sortedKeys(methods)))
	case dtype == "":
		b.account(f, flags.Rule, "the format of the checkpoint")
	default:
		remark := ""
		if strings.Contains(value, "int8") {
			remark = "8-bit integers count as fp8"
		}
		b.putNote("deployment.dtype", text(dtype), f, remark)
		b.account(f, flags.Rule, "deployment.dtype: %s", dtype)
	}
}

// quantised reports whether the weights have fewer than 16 bits.
func (b *builder) quantised() bool {
	if q, ok := b.given["quantization"]; ok && methods[strings.ToLower(q.Value)] != "" {
		return true
	}
	if d := b.root.Lookup("deployment", "dtype"); d != nil {
		return true
	}
	m := b.root.Get("model")
	if m == nil {
		return false
	}
	llm, err := catalog.LLM(m.Text)
	return err == nil && (llm.Precision != model.BF16 || cmp.Or(llm.MoEPrecision, model.BF16) != model.BF16)
}
