package gate

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// Flags of TestCorpus. .ci/corpus sets them.
var (
	corpusFolder = flag.String("corpus", "", "write scenarios into this `folder`")
	corpusSize   = flag.Int("corpus.size", 240, "how many scenarios to write")
)

// corpusSeed is the seed of the first scenario. The others follow.
const corpusSeed = 20261126

// TestCorpus writes the scenarios of .ci/corpus. A third has any keys, a third has any keys and a small KV pool, and a
// third has one engine that needs few features, with a KV pool so small that decodes are preempted from time to time.
func TestCorpus(t *testing.T) {
	if *corpusFolder == "" {
		t.Skip("-corpus is not set")
	}
	before := folder
	folder = *corpusFolder
	defer func() { folder = before }()
	families := []struct {
		name  string
		cases *rapid.Generator[doc]
	}{{"any", scenarios}, {"small", small}, {"tight", tight}}
	for i := range *corpusSize {
		f := families[i%len(families)]
		name := fmt.Sprintf("%s-%03d.yaml", f.name, i)
		data := f.cases.Example(corpusSeed + i).bytes()
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// small are scenarios with any keys and a small KV pool.
var small = rapid.Custom(func(t *rapid.T) doc {
	d, s := drawer{t}, scenarios.Draw(t, "scenario")
	blocks := d.whole(30, 150)
	s = s.with("engine.num_gpu_blocks_override", blocks, "engine.max_model_len", 16*blocks-16, "engine.block_size", 16,
		"workload.arrivals", d.arrivals(20, 80), "workload.input", d.whole(20, 200), "workload.output", d.whole(100, 300),
		"workload.trace", nil, "workload.sessions", nil)
	d.cheap(s)
	return valid(t, s.clone())
})

// tight are scenarios of an engine with a small KV pool and few other features.
var tight = rapid.Custom(func(t *rapid.T) doc {
	d := drawer{t}
	blocks := d.whole(50, 350)
	engine := law{"num_gpu_blocks_override": blocks, "max_model_len": 16*blocks - 16}
	if d.chance(.4) {
		engine["policy"] = one(d, "vllm", "sarathi", one(d, policyNames()...))
	}
	if d.chance(.3) {
		engine["enable_prefix_caching"] = d.chance(.5)
	}
	if d.chance(.2) {
		engine["async_scheduling"] = false
	}
	if d.chance(.3) {
		engine["max_num_batched_tokens"] = d.whole(64, 8192)
	}
	if d.chance(.3) {
		engine["max_num_seqs"] = d.whole(4, 200)
	}
	if d.chance(.2) {
		engine["watermark"] = d.between(.01, .2)
	}
	s := doc{"engine": engine, "workload": law{
		"arrivals": d.arrivals(5, 80),
		"input":    one(d, any(d.whole(10, 400)), any(law{"distribution": "uniform", "min": 5, "max": 600})),
		"output":   one(d, any(d.whole(50, 300)), any(law{"distribution": "gamma", "mean": 150, "cv": 1})),
	}, "run": law{"requests": d.whole(50, 300), "seed": d.whole(0, 1e6)}}
	if d.chance(.2) {
		s["gpu"] = one(d, "h200-sxm", "b200-sxm", "l40s")
	}
	if d.chance(.15) {
		s["deployment"] = law{"replicas": d.whole(2, 4)}
	}
	return valid(t, s.clone())
})

// arrivals draws an open loop of one or two stages, or a closed loop.
func (d drawer) arrivals(low, high float64) any {
	rate := d.between(low, high)
	open := law{"process": one(d, "poisson", "constant", "gamma"), "rate": rate}
	if open["process"] == "gamma" {
		open["cv"] = d.between(1, 3)
	}
	switch d.index(4) {
	case 0:
		return law{"process": "closed", "users": d.whole(5, 120), "think_time": d.duration(.01, 2)}
	case 1:
		return open
	}
	first := law{"process": "poisson", "rate": d.between(low, high), "duration": "2s"}
	return []any{first, open}
}
