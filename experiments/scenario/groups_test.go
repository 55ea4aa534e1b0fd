package scenario

import (
	"testing"

	"clifftop/sim/engine"
)

// TestKVGroups checks which models have KV cache groups with block tables, and the prefix cache of their windows.
func TestKVGroups(t *testing.T) {
	for _, c := range []struct {
		text      string
		groups    int // 0: they are charged, or there are none
		retention int
	}{
		{"model: gpt-oss-120b\ngpu: b200\n", 2, 0},
		{"model: gpt-oss-120b\ngpu: b200\nengine: {version: vllm-0.20}\n", 2, engine.DenseRetention},
		{"model: gpt-oss-120b\ngpu: b200\nengine: {prefix_cache_retention_interval: 64}\n", 2, 64},
		{"model: gpt-oss-120b\ngpu: b200\nengine: {policy: sglang}\n", 0, 0},
		{"model: deepseek-v4-flash\ngpu: b200\ndeployment: {tensor_parallel_size: 4}\n", 5, 0},
		{"model: gemma-3-27b\ngpu: b200\n", 7, 0},
		{"model: llama-4-scout-17b-16e\ngpu: b300\n", 4, 0},
		{"model: llama-4-scout-17b-16e\ngpu: b300\nengine: {version: vllm-0.20}\n", 0, 0},
		{"model: llama-3.1-8b\ngpu: b200\n", 0, 0},
	} {
		s, err := Parse("test.yaml", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		u, err := s.Resolve()
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		h := u.Pools[0].Config.Hybrid
		switch {
		case h == nil:
			if c.groups != 0 {
				t.Errorf("%s: no groups", c.text)
			}
		case len(h.Groups) != c.groups || h.Retention != c.retention || len(u.Pools[0].Config.Groups) > 0:
			t.Errorf("%s: %d groups with retention %d", c.text, len(h.Groups), h.Retention)
		}
		if h != nil && u.Pools[0].Memory.BlockBytes != h.BlockBytes() {
			t.Errorf("%s: blocks of %d bytes, the groups have %d", c.text, u.Pools[0].Memory.BlockBytes, h.BlockBytes())
		}
	}
}
