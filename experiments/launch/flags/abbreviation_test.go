package flags_test

import (
	"testing"

	"clifftop/experiments/launch/flags"
)

// The parser of SGLang takes the beginning of a name that fits one flag, that of TensorRT-LLM does not.
func TestAbbreviations(t *testing.T) {
	for _, c := range []struct{ engine, name, want string }{
		{"sglang", "--trust-remote", "trust-remote-code"},
		{"sglang", "--mem-fraction", "mem-fraction-static"},
		{"sglang", "--enable-dp", ""}, // several begin so
		{"sglang", "--tp", "tp-size"},
		{"sglang", "--xyz", ""},
		{"trtllm", "--trust_remote", ""},
		{"trtllm", "--trust_remote_code", "trust-remote-code"},
	} {
		table, err := flags.Of(c.engine)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if f, _ := table.Find(c.name); f != nil {
			got = f.Name
		}
		if got != c.want {
			t.Errorf("%s %s: %q, want %q", c.engine, c.name, got, c.want)
		}
	}
}
