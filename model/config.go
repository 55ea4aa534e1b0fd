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
// directory is the model's name. ReadConfig returns one-line errors for unknown architectures, unsupported settings
// that change the computation, and missing keys.
//
// Supported families: Llama, Mistral, Mixtral, Qwen2 to Qwen3 with their mixture-of-experts models, gpt-oss,
// DeepSeek V2 and V3 (and Kimi K2), Gemma 3, GLM-4 and GLM-4-MoE, Phi-3 and Phi-4, and MiniMax M2.
func ReadConfig(file string, data []byte) (LLM, error) {
	m, err := readConfig(data)
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

func readConfig(data []byte) (LLM, error) {
	c := &config{}
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
	if c.err != nil {
		return LLM{}, c.err
	}
	return m, m.Validate()
}

// config gives access to the keys of a config.json and keeps the first error.
type config struct {
	keys map[string]json.RawMessage
	err  error
}

func (c *config) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// has reports whether a key has a value other than null.
func (c *config) has(key string) bool {
	v, ok := c.keys[key]
	return ok && string(bytes.TrimSpace(v)) != "null"
}

// number returns a required whole number that is not negative.
func (c *config) number(keys ...string) int {
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
func (c *config) positive(key string) int {
	n := c.number(key)
	if n == 0 {
		c.fail("%s is 0 (want 1 or more)", key)
	}
	return n
}

// numberOr returns an optional whole number.
func (c *config) numberOr(byDefault int, keys ...string) int {
	for _, key := range keys {
		if c.has(key) {
			return c.number(key)
		}
	}
	return byDefault
}

// read decodes an optional value.
func (c *config) read(key, want string, into any) {
	if c.has(key) {
		if err := json.Unmarshal(c.keys[key], into); err != nil {
			c.fail("%s is %s (want %s)", key, short(c.keys[key]), want)
		}
	}
}

func (c *config) text(key string) (s string) {
	c.read(key, "a string", &s)
	return s
}

func (c *config) truth(key string, byDefault bool) bool {
	b := byDefault
	c.read(key, "true or false", &b)
	return b
}

func (c *config) object(key string) (o map[string]json.RawMessage) {
	c.read(key, "an object", &o)
	return o
}

// short shortens a value for a message.
func short(v json.RawMessage) string {
	s := strings.Join(strings.Fields(string(v)), " ")
	if len(s) > 40 {
		s = strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}

// precisions reads the formats of the weights: from the quantisation config, otherwise the 16-bit dtype.
func (c *config) precisions(m *LLM) {
	m.Precision = BF16
	dtype := c.text("torch_dtype")
	if dtype == "" {
		dtype = c.text("dtype")
	}
	if dtype == "float16" {
		m.Precision = FP16
	}
	if c.has("quantization_config") {
		q := &config{keys: c.object("quantization_config")}
		p, expertsOnly := q.quantization()
		if q.err != nil {
			c.fail("quantization_config: %w", q.err)
		}
		if m.MoEPrecision = p; m.Experts == 0 || !expertsOnly {
			m.Precision = p
		}
	}
	if m.Experts == 0 {
		m.MoEPrecision = Auto
	} else if m.MoEPrecision == Auto {
		m.MoEPrecision = m.Precision
	}
}

// quantization returns the format of the weights, and whether only the experts are quantised.
func (q *config) quantization() (p Precision, expertsOnly bool) {
	switch method := q.text("quant_method"); method {
	case "fp8", "fbgemm_fp8":
		return FP8, false
	case "mxfp4":
		return MXFP4, true
	case "awq", "gptq":
		if bits := q.number("bits"); bits != 4 && q.err == nil {
			q.fail("%s with %d bits is not supported (want 4)", method, bits)
		}
		return INT4, false
	case "modelopt", "modelopt_fp4":
		switch algo := q.text("quant_algo"); algo {
		case "FP8":
			return FP8, false
		case "NVFP4":
			return NVFP4, false
		default:
			q.fail("quant_algo %q is not supported (want FP8 or NVFP4)", algo)
		}
	case "compressed-tensors":
		return q.compressedTensors()
	case "":
		q.fail("missing key quant_method")
	default:
		q.fail("quant_method %q is not supported (want fp8, mxfp4, awq, gptq, compressed-tensors or modelopt)", method)
	}
	return Auto, false
}

func (q *config) compressedTensors() (p Precision, expertsOnly bool) {
	var groups map[string]struct {
		Format  string
		Weights struct {
			Bits int    `json:"num_bits"`
			Type string `json:"type"`
		}
	}
	q.read("config_groups", "an object", &groups)
	if len(groups) != 1 {
		q.fail("compressed-tensors with %d groups is not supported (want 1)", len(groups))
	}
	for _, g := range groups {
		switch w := g.Weights; {
		case w.Type == "float" && w.Bits == 8:
			p = FP8
		case w.Type == "float" && w.Bits == 4:
			p = NVFP4
		case w.Type == "int" && w.Bits == 4:
			p = INT4
		default:
			q.fail("weights of %d bits of type %q are not supported (want float of 8 or 4 bits, or int of 4)", w.Bits,
				w.Type)
		}
	}
	var ignore []string
	q.read("ignore", "a list of strings", &ignore)
	for _, pattern := range ignore {
		expertsOnly = expertsOnly || strings.Contains(pattern, "self_attn")
	}
	return p, expertsOnly
}
