package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"

	"clifftop/internal/duplicate"
)

// ReadConfig reads a Hugging Face config.json. file appears in messages; for a file named config.json, its
// directory is the model's name. ReadConfig returns one-line errors for unknown architectures and kinds of layers,
// unsupported settings that change the computation, and missing keys. The list architectures has the families.
func ReadConfig(file string, data []byte) (LLM, error) { return read(file, data, false) }

// ReadUnknownConfig is [ReadConfig] for files with an unknown model_type or unknown kinds of layers. Such layers count
// as full attention, and a file with an unknown model_type is read by the keys that most decoders have.
// [LLM.LeftOut] says what was left out.
func ReadUnknownConfig(file string, data []byte) (LLM, error) { return read(file, data, true) }

func read(file string, data []byte, lenient bool) (LLM, error) {
	m, err := readConfig(data, lenient)
	if err != nil {
		return LLM{}, fmt.Errorf("%s: %s", file, strings.Join(strings.FieldsFunc(err.Error(), isLineBreak), "; "))
	}
	m.Name, m.Source = configName(file), file
	return m, nil
}

func isLineBreak(r rune) bool { return r == '\n' || r == '\r' }

// configName derives the name of a model from its file name.
func configName(file string) string {
	file = strings.ReplaceAll(file, `\`, "/")
	base := path.Base(file)
	if dir := path.Base(path.Dir(file)); strings.EqualFold(base, "config.json") && dir != "." && dir != "/" {
		return dir
	}
	return strings.TrimSuffix(base, path.Ext(base))
}

func readConfig(data []byte, lenient bool) (LLM, error) {
	c := &config{lenient: lenient}
	if err := json.Unmarshal(data, &c.keys); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			before := data[:min(int(syntax.Offset), len(data))]
			line := bytes.Count(before, []byte("\n")) + 1
			return LLM{}, fmt.Errorf("line %d: not valid JSON: %v", line, syntax)
		}
		return LLM{}, errors.New("not a JSON object")
	}
	if key, line, twice := duplicate.Key(data); twice {
		return LLM{}, fmt.Errorf("line %d: %s is given twice (want each key once)", line, key)
	}
	outer := c.keys
	if text := c.object("text_config"); text != nil { // models with vision nest the language model
		c.keys = text
		for _, key := range []string{"quantization_config", "torch_dtype", "dtype", "tie_word_embeddings"} {
			if _, ok := text[key]; !ok && outer[key] != nil {
				c.keys[key] = outer[key]
			}
		}
		if _, ok := text["model_type"]; !ok {
			c.keys["model_type"] = outer["model_type"]
		}
	}
	m := c.llm()
	if vision := (&keyReader{keys: outer}).object("vision_config"); vision != nil {
		if tokens, ok := outer["mm_tokens_per_image"]; ok {
			vision["mm_tokens_per_image"] = tokens
		}
		m.Encoder = (&keyReader{keys: vision}).encoder()
	}
	if c.err != nil {
		return LLM{}, c.err
	}
	return m, m.Validate()
}

// config reads a config.json by its model_type.
type config struct {
	keyReader
	kind    string // model_type
	listKey string // the key with the list of layers
	lenient bool   // unknown kinds count as full attention
}

// keyReader gives access to the keys of a JSON object and keeps the first error.
type keyReader struct {
	keys    map[string]json.RawMessage
	leftOut []string // what the object has and the model leaves out
	err     error
}

func (c *keyReader) leaveOut(format string, args ...any) {
	c.leftOut = append(c.leftOut, fmt.Sprintf(format, args...))
}

func (c *keyReader) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// has reports whether a key has a value other than null.
func (c *keyReader) has(key string) bool {
	v, ok := c.keys[key]
	return ok && string(bytes.TrimSpace(v)) != "null"
}

// number returns a required whole number that is not negative.
func (c *keyReader) number(keys ...string) int {
	for _, key := range keys {
		if !c.has(key) {
			continue
		}
		var v float64
		if err := json.Unmarshal(c.keys[key], &v); err != nil || v != math.Trunc(v) || v < 0 || v > math.MaxInt32 {
			c.fail("%s is %s (want a whole number)", key, short(c.keys[key]))
			return 0
		}
		return int(v)
	}
	c.fail("missing key %s", keys[0])
	return 0
}

// positive returns a required whole number of at least 1.
func (c *keyReader) positive(key string) int {
	n := c.number(key)
	if n == 0 {
		c.fail("%s is 0 (want 1 or more)", key)
	}
	return n
}

// numberOr returns an optional whole number.
func (c *keyReader) numberOr(byDefault int, keys ...string) int {
	for _, key := range keys {
		if c.has(key) {
			return c.number(key)
		}
	}
	return byDefault
}

// read decodes an optional value.
func (c *keyReader) read(key, want string, into any) {
	if c.has(key) {
		if err := json.Unmarshal(c.keys[key], into); err != nil {
			c.fail("%s is %s (want %s)", key, short(c.keys[key]), want)
		}
	}
}

func (c *keyReader) text(key string) (s string) {
	c.read(key, "a string", &s)
	return s
}

func (c *keyReader) truth(key string, byDefault bool) bool {
	b := byDefault
	c.read(key, "true or false", &b)
	return b
}

func (c *keyReader) object(key string) (o map[string]json.RawMessage) {
	c.read(key, "an object", &o)
	return o
}

func short(v json.RawMessage) string {
	s := strings.Join(strings.Fields(string(v)), " ")
	if len(s) > 40 {
		s = strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}

// setDefaults adds values of keys that files of an architecture may omit.
func (c *keyReader) setDefaults(values map[string]string) {
	for key, value := range values {
		if !c.has(key) {
			c.keys[key] = json.RawMessage(value)
		}
	}
}

// precisions reads the formats of the weights: from the quantisation config, otherwise the 16-bit dtype.
func (c *config) precisions(m *LLM) {
	wide := BF16
	dtype := c.text("torch_dtype")
	if dtype == "" {
		dtype = c.text("dtype")
	}
	if dtype == "float16" {
		wide = FP16
	}
	m.Precision = wide
	if c.has("quantization_config") {
		q := &quantConfig{keyReader{keys: c.object("quantization_config")}}
		f := q.quantization()
		if q.err != nil {
			c.fail("quantization_config: %w", q.err)
		}
		c.leftOut = append(c.leftOut, q.leftOut...)
		if m.MoEPrecision = f.experts; m.Experts == 0 || f.others != Auto {
			m.Precision = f.others
		}
		if m.Experts == 0 && m.Precision == Auto {
			m.Precision = f.experts // MLPs only
		}
	}
	if m.Precision == Auto {
		m.Precision = wide
	}
	if c.kind == "deepseek_v4" && m.MoEPrecision == FP8 && c.text("expert_dtype") != "fp8" {
		m.MoEPrecision = MXFP4
	}
	if m.Experts == 0 {
		m.MoEPrecision = Auto
	} else if m.MoEPrecision == Auto {
		m.MoEPrecision = m.Precision
	}
}

// quantConfig is a quantization_config.
type quantConfig struct{ keyReader }

// formats are the formats of the weights of routed experts and of the other layers; Auto means 16 bits.
type formats struct{ experts, others Precision }

// uniform returns the formats if all products have p, except those of modules in the list of a key, which stay in
// 16 bits.
func (q *quantConfig) uniform(p Precision, keys ...string) formats {
	f := formats{p, p}
	for _, key := range keys {
		var ignored []string
		q.read(key, "a list of strings", &ignored)
		for _, pattern := range ignored {
			switch {
			case strings.Contains(pattern, "experts") && !strings.Contains(pattern, "shared"):
				f.experts = Auto
			case strings.Contains(pattern, "self_attn"), strings.Contains(pattern, "linear_attn"),
				strings.Contains(pattern, "mixer"):
				f.others = Auto
			}
		}
	}
	return f
}

func (q *quantConfig) quantization() formats {
	switch method := q.text("quant_method"); method {
	case "fp8", "fbgemm_fp8":
		return q.uniform(FP8, "modules_to_not_convert", "ignored_layers")
	case "mxfp4":
		return formats{experts: MXFP4}
	case "awq", "gptq", "auto-round", "auto_round":
		if bits := q.number("bits"); bits != 4 && q.err == nil {
			q.fail("%s with %d bits is not supported (want 4)", method, bits)
		}
		return q.uniform(INT4, "modules_to_not_convert")
	case "modelopt", "modelopt_fp4", "modelopt_mixed":
		return q.modelOpt()
	case "quark":
		return q.quark()
	case "compressed-tensors":
		return q.compressedTensors()
	case "":
		q.fail("missing key quant_method")
	default:
		q.fail("quant_method %q is not supported (want fp8, mxfp4, awq, gptq, auto-round, compressed-tensors, "+
			"modelopt or quark)", method)
	}
	return formats{}
}

// modelOpt reads NVIDIA's format: one algorithm with modules to ignore, or one algorithm for each layer.
func (q *quantConfig) modelOpt() formats {
	const ignored, excluded = "ignore", "exclude_modules"
	switch algo := q.text("quant_algo"); algo {
	case "FP8", "FP8_PB_WO", "FP8_PER_CHANNEL_PER_TOKEN":
		return q.uniform(FP8, ignored, excluded)
	case "NVFP4", "NVFP4_AWQ", "NVFP4_SVD":
		return q.uniform(NVFP4, ignored, excluded)
	case "W4A16_AWQ":
		return q.uniform(INT4, ignored, excluded)
	case "MIXED_PRECISION":
		return q.mixedPrecision()
	default:
		q.fail("quant_algo %q is not supported (want FP8, NVFP4, W4A16_AWQ or MIXED_PRECISION)", algo)
	}
	return formats{}
}

// mixedPrecision reads the algorithm of each layer. The format with the fewest bits counts, of the experts and of the
// other layers.
func (q *quantConfig) mixedPrecision() (f formats) {
	var layers map[string]struct {
		Algorithm string `json:"quant_algo"`
	}
	q.read("quantized_layers", "an object", &layers)
	known := map[string]Precision{"FP8": FP8, "NVFP4": NVFP4, "W4A16_AWQ": INT4}
	for name, layer := range layers {
		p, ok := known[layer.Algorithm]
		if !ok {
			q.fail("quantized_layers: quant_algo %q is not supported (want FP8, NVFP4 or W4A16_AWQ)", layer.Algorithm)
			return f
		}
		to := &f.others
		if strings.Contains(name, "experts") && !strings.Contains(name, "shared") {
			to = &f.experts
		}
		if p.WeightBytes() < to.WeightBytes() {
			*to = p
		}
	}
	if len(layers) == 0 {
		q.fail("missing key quantized_layers")
	}
	return f
}

func (q *quantConfig) quark() formats {
	global := &keyReader{keys: q.object("global_quant_config")}
	weight := &keyReader{keys: global.object("weight")}
	switch dtype := weight.text("dtype"); dtype {
	case "fp4":
		return q.uniform(MXFP4, "exclude")
	case "fp8_e4m3":
		return q.uniform(FP8, "exclude")
	default:
		q.fail("quark with weights of dtype %q is not supported (want fp4 or fp8_e4m3)", dtype)
	}
	return formats{}
}

// tensorGroup is one of the groups of compressed-tensors: layers whose weights have the same format.
type tensorGroup struct {
	Targets []string
	Weights struct {
		Bits int    `json:"num_bits"`
		Type string `json:"type"`
	}
}

// compressedTensors reads groups of layers by their targets: all linear layers, the experts, or the others.
func (q *quantConfig) compressedTensors() formats {
	var groups map[string]tensorGroup
	q.read("config_groups", "an object", &groups)
	if len(groups) == 0 {
		q.fail("missing key config_groups")
	}
	if len(groups) == 1 {
		for _, g := range groups {
			return q.uniform(q.tensorFormat(&g), "ignore")
		}
	}
	var f formats
	for name, g := range groups {
		p := q.tensorFormat(&g)
		for _, target := range g.Targets {
			switch {
			case target == "Linear":
				q.fail("config_groups: %s is not the only group and has all linear layers (want targets by name)", name)
			case strings.Contains(target, "attn"), strings.Contains(target, "mixer"),
				strings.Contains(target, "shared"):
				f.others = p
			default:
				f.experts = p
			}
		}
	}
	return f
}

// tensorFormat returns the format of the weights of a group. 8-bit integers count as 8-bit floating point, which has
// the same size and, on most GPUs, the same rate.
func (q *quantConfig) tensorFormat(g *tensorGroup) Precision {
	switch w := g.Weights; {
	case w.Type == "float" && w.Bits == 8:
		return FP8
	case w.Type == "float" && w.Bits == 4:
		return NVFP4
	case w.Type == "int" && w.Bits == 4:
		return INT4
	case w.Type == "int" && w.Bits == 8:
		if len(q.leftOut) == 0 {
			q.leaveOut("weights in int8 count as fp8")
		}
		return FP8
	default:
		q.fail("weights of %d bits of type %q are not supported (want float or int of 8 or 4 bits)", w.Bits, w.Type)
	}
	return Auto
}

// usualImage is the side in pixels of an image for encoders of images of any size.
const usualImage = 1024

// positiveOr returns an optional whole number of at least 1.
func (c *keyReader) positiveOr(byDefault int, key string) int {
	if !c.has(key) {
		return byDefault
	}
	if n := c.positive(key); n > 0 && n <= maxLayers {
		return n
	}
	c.fail("%s is too large", key)
	return 1
}

// encoder reads the dimensions of an encoder of images. The parameters are those of its layers, of the projection of
// patches and of the merger of patches; other projectors to the language model are left out.
func (v *keyReader) encoder() Encoder {
	e := Encoder{
		Layers: v.numberOr(0, "depth", "num_hidden_layers", "vt_num_hidden_layers"),
		Hidden: v.numberOr(0, "hidden_size", "vt_hidden_size"),
	}
	e.Intermediate = v.numberOr(4*e.Hidden, "intermediate_size", "vt_intermediate_size")
	matrices, byDefault := 2, 1
	if v.text("model_type") == "pixtral" {
		matrices, byDefault = 3, 2
	}
	if v.has("merge_kernel_size") || v.has("pixel_shuffle_ratio") { // of two by two patches in all known models
		byDefault = 2
	}
	patch, merge := v.positiveOr(16, "patch_size"), v.positiveOr(byDefault, "spatial_merge_size")
	side := v.numberOr(usualImage, "image_size") / patch
	e.PatchesPerImage = side * side
	e.TokensPerImage = v.numberOr(side*side/(merge*merge), "mm_tokens_per_image")
	if v.err != nil {
		return Encoder{} // the language model is served without it
	}
	hidden := float64(e.Hidden)
	layer := 4*hidden*hidden + float64(matrices)*hidden*float64(e.Intermediate)
	e.Params = float64(e.Layers)*layer + 3*float64(patch)*float64(patch)*hidden
	if out := v.numberOr(0, "out_hidden_size"); out > 0 { // the merger of Qwen models
		wide := hidden * float64(merge) * float64(merge)
		e.Params += wide * (wide + float64(out))
	}
	return e
}
