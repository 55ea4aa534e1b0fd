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

// short shortens a value for a message.
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
