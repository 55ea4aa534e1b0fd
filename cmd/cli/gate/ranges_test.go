package gate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"clifftop/experiments"
)

// bounds are the ends of a range.
type bounds struct{ low, high float64 }

// A rule applies to the paths that match. The first one that matches wins.
type rule struct {
	path *regexp.Regexp
	bounds
}

func rules(list ...any) []rule {
	var all []rule
	for i := 0; i < len(list); i += 3 {
		all = append(all, rule{regexp.MustCompile(`(^|\.)(` + list[i].(string) + `)$`),
			bounds{list[i+1].(float64), list[i+2].(float64)}})
	}
	return all
}

// numbers are ranges of numbers that are quick to simulate and that make something happen. Other numbers are between
// 1 and 200, or between 0.05 and 10, within the limits of the schema.
var numbers = rules(
	`tensor_parallel_size|data_parallel_size|expert_parallel_size`, 1., 4.,
	`pipeline_parallel_size`, 1., 3.,
	`replicas`, 1., 6.,
	`front_ends`, 1., 4.,
	`max_num_seqs`, 1., 300.,
	`engine\.max_num_batched_tokens`, 16., 8192.,
	`engine\.max_model_len`, 300., 20000.,
	`engine\.block_size`, 1., 64.,
	`gpu_memory_utilization|mem_fraction_static|free_gpu_memory_fraction`, .6, .97,
	`num_gpu_blocks_override`, 60., 20000.,
	`watermark`, 0., .2,
	`preemption_threshold|priority_scheduling_preemption_threshold`, 0., 30.,
	`chunked_prefill_size|max_prefill_tokens|context_chunk_size|long_prefill_token_threshold`, 16., 8192.,
	`scheduler_recv_interval|stream_interval`, 1., 8.,
	`prefix_cache_retention_interval`, 0., 2000.,
	`max_num_queued_tokens|token_limit|max_backlog_tokens`, 100., 100000.,
	`num_speculative_tokens`, 1., 6.,
	`levels`, 1., 8.,
	`a_ms`, 1., 40.,
	`b_us`, 0., 500.,
	`arrivals.*\.rate|trace\.rate`, .5, 60.,
	`arrivals.*\.users`, 1., 60.,
	`arrivals.*\.cv|source_cv\[\]`, .2, 4.,
	`shape`, .4, 3.,
	`sigma`, .1, 1.5,
	`rho`, 0., .95,
	`top_share`, .15, .4,
	`top10_share`, .5, .9,
	`sources`, 11., 60.,
	`scale|speedup`, .5, 3.,
	`loop`, 1., 3.,
	`limit`, 1., 100.,
	`mu`, 1., 6.,
	`turns.*`, 1., 6.,
	`(output|later_user_tokens).*\.(mean|value|min|max|q\[\])`, 1., 250.,
	`output|later_user_tokens`, 1., 250.,
	`(mean|value|min|max|q\[\])|input|first_prompt`, 1., 3000.,
	`shared_tokens|system_prompt.*`, 0., 2000.,
	`groups|prompts_per_group`, 1., 12.,
	`adapters`, 1., 20.,
	`max_loras`, 1., 8.,
	`zipf`, 0., 3.,
	`max_context`, 500., 20000.,
	`people`, 100., 2000.,
	`requests_per_hour`, 1., 30.,
	`priority`, -5., 5.,
	`retries`, 0., 6.,
	`retry_on.*`, 1., 3.,
	`factor`, 1., 8.,
	`reading`, 1., 60.,
	`horizon|hours`, .1, 3.,
	`max_tokens`, 1., 400.,
	`seed`, 0., 1e6,
	`replications`, 2., 3.,
	`precision`, .2, .8,
	`gpu_hour`, 0., 20.,
	`link_gb_per_s|host_gb_per_s`, .5, 100.,
	`swap_space`, 0., 16.,
	`pull_percent`, 0., 100.,
	`failures\[\]\.replica|failures\[\]\.last|outages\[\]\.replica`, 0., 2.,
	`hold`, 0., 200.,
	`kv-usage|autoscale.*\.target`, .2, 20.,
	`autoscale.*\.(min|initial)`, 0., 2.,
	`autoscale.*\.max`, 2., 6.,
	`max_scale_up_rate|max_scale_down_rate|panic_threshold`, 1.5, 10.,
	`tolerance`, 0., .5,
	`balance_rel_threshold`, 1., 3.,
	`temperature|overlap_weight`, 0., 3.,
	`max_blocks|max_tree_tokens`, 10., 100000.,
	`prefill_rate`, 10., 1e5,
	`chunk_tokens|block_tokens`, 1., 256.,
	`weight|alpha|beta`, .1, 5.,
)

// durations are ranges of durations in seconds. Others are between 1 ms and 20 s.
var durations = rules(
	`overheads\..*`, 1e-6, .01,
	`layer_time`, 1e-6, 1e-4,
	`roofline\.step_time`, 1e-5, 1e-2,
	`token_time`, .001, .1,
	`arrivals.*\.duration`, 1., 6.,
	`run\.duration`, 1., 12.,
	`run\.warmup`, .1, 3.,
	`step|on_mean|off_mean|tick_interval|sync_period|polling_interval|scrape|scale_up_period`, .5, 20.,
	`knative.*\.window|window|ttl|stale_after|eviction_interval|lease`, 6., 60.,
	`random_crashes\.mtbf`, 10., 100.,
	`horizon`, 3600., 7200.,
	`ttft_timeout|timeout`, .1, 30.,
	`begin`, 0.1, 80000.,
	`trace\.from`, .1, 1.,
	`trace\.to`, 2., 20.,
	`latency|hop|disaggregation.*`, 1e-5, .1,
)

func rangeOf(path string, list []rule, usual bounds) bounds {
	for _, r := range list {
		if r.path.MatchString(path) {
			return r.bounds
		}
	}
	return usual
}

// shallow are the probabilities of keys that do not have the usual one.
var shallow = map[string]float64{
	"name": .1, "accuracy": .05, "model": .4, "gpu": .35, "deployment": .6, "engine": .65, "overheads": .2, "step_time": .35,
	"workload": 1, "clients": .3, "slo": .25, "cost": .15, "run": 1, "pools": 0, "disaggregation": 0, "offload": .12,
	"lifecycle": .2, "plan": .04,
	"deployment.replicas": .5, "deployment.router": .6, "engine.policy": .5, "engine.max_num_seqs": .5,
	"engine.num_gpu_blocks_override": .4, "engine.max_num_batched_tokens": .4, "engine.preemption": .2,
	"workload.preset": .25, "workload.arrivals": .9, "workload.input": .7, "workload.output": .9, "workload.trace": .06,
	"workload.sessions": .2, "workload.prefix": .2, "workload.classes": .15, "workload.headcount": .03,
	"workload.lora": .08, "workload.class_weights": .04, "workload.max_tokens": .1,
	"run.requests": 0, "run.duration": .15, "run.seed": 1, "run.replications": .03, "run.precision": .01,
	"lifecycle.failures": .6, "clients.retries": .6,
}

// optional is the probability of a key that is not required.
func optional(path string) float64 {
	if p, ok := shallow[path]; ok {
		return p
	}
	if strings.HasPrefix(path, "engine.") && strings.Count(path, ".") == 1 {
		return .12
	}
	return .3
}

// names of the catalog, by kind.
func names(kind string) []string {
	list, err := experiments.Catalog(kind)
	if err != nil {
		panic(err)
	}
	var all []string
	for _, e := range list.Items {
		all = append(all, e.Name)
	}
	return all
}

var (
	modelNames  = sync.OnceValue(func() []string { return names("models") })
	gpuNames    = sync.OnceValue(func() []string { return names("gpus") })
	policyNames = sync.OnceValue(func() []string { return names("policies") })
	presetNames = sync.OnceValue(func() []string { return names("presets") })
)

// strings without a list in the schema.
var texts = []struct {
	path *regexp.Regexp
	draw func(d drawer) any
}{
	{regexp.MustCompile(`^accuracy$`), func(drawer) any { return "" }}, // no file
	{regexp.MustCompile(`^name$`), func(d drawer) any { return one(d, "chat", "a: b", "100 %", "naïve") }},
	{regexp.MustCompile(`speculative\.model$`), func(d drawer) any { return one(d, "llama-3.2-1b", "llama-3.2-3b") }},
	{regexp.MustCompile(`(^|\.)model$`), func(d drawer) any {
		if d.chance(.4) {
			return one(d, "llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v2-lite", "gpt-oss-20b", "gemma-3-27b")
		}
		return one(d, modelNames()...)
	}},
	{regexp.MustCompile(`(^|\.)gpu$|plan\.gpus\[\]$`), func(d drawer) any {
		if d.chance(.4) {
			return one(d, "h100-sxm", "h200-sxm", "b200-sxm")
		}
		return one(d, gpuNames()...)
	}},
	{regexp.MustCompile(`engine\.policy$`), func(d drawer) any { return one(d, policyNames()...) }},
	{regexp.MustCompile(`engine\.version$`), func(d drawer) any {
		return one(d, "vllm-0.6", "vllm-0.8", "vllm-0.11", "vllm-0.14", "vllm-0.15", "vllm-0.32")
	}},
	{regexp.MustCompile(`preset$`), func(d drawer) any { return one(d, presetNames()...) }},
	{regexp.MustCompile(`trace\.file$`), func(drawer) any { return recorded() }},
	{regexp.MustCompile(`trace\.format$`), func(d drawer) any { return one(d, "auto", "native") }},
	{regexp.MustCompile(`trace\.classes\[\]$`), func(d drawer) any { return one(d, "a", "b") }},
	{regexp.MustCompile(`step_time(\.table|\.table\.file)$`), func(d drawer) any { return measured() }},
	{regexp.MustCompile(`table\.sha256$`), func(d drawer) any { return digest(measured()) }},
	{regexp.MustCompile(`lora$`), func(d drawer) any { return "tuned" }},
	{regexp.MustCompile(`(tiers|classes|pools|arrivals)\[\]\.name$`), func(d drawer) any {
		return one(d, "a", "b", "c", "d", "e", "f", "g", "h")
	}},
	{regexp.MustCompile(`\.pool$`), func(d drawer) any { return one(d, "a", "b") }},
	{regexp.MustCompile(`tiers\[\]\.size$`), func(d drawer) any { return one(d, "64 MiB", "1GiB", "8 GB", "1TB") }},
	{regexp.MustCompile(`tiers\[\]\.bandwidth$`), func(d drawer) any { return one(d, "25GB/s", "2 GB/s", "100Gb/s") }},
	{regexp.MustCompile(`slo\.\^.*$`), func(d drawer) any { return one(d, "10tok/s", "30 tok/s", "25.5tok/s") }},
	{regexp.MustCompile(`run\.precision$`), func(d drawer) any { return "40%" }},
	{regexp.MustCompile(`plan\.engine\.\w+\[\]$`), func(d drawer) any { return d.whole(1, 64) }},
}

// text draws a string. The schema says nothing about it but its pattern.
func (d drawer) text(path string) any {
	for _, x := range texts {
		if x.path.MatchString(path) {
			return x.draw(d)
		}
	}
	panic("no rule draws the text " + path + " (add one to ranges_test.go)")
}

// part is a part of a mixture.
func (d drawer) part(path string) any {
	laws := alternatives(alternatives(schema().Defs["distribution"])[1])
	laws = slices.DeleteFunc(slices.Clone(laws), func(l *jsonschema.Schema) bool { return l.Properties["parts"] != nil })
	p := d.object(path, one(d, laws...)).(map[string]any)
	p["weight"] = d.between(.1, 3)
	return p
}

// amend makes the keys of a drawn value agree where the schema cannot say so. What is left is found by the scenario
// itself, and removed.
func (d drawer) amend(path string, v any) {
	switch x := v.(type) {
	case []any:
		for _, below := range x {
			d.amend(path+"[]", below)
		}
	case map[string]any:
		d.amendMap(path, x)
		for key, below := range x {
			d.amend(join(path, key), below)
		}
	}
}

func (d drawer) amendMap(path string, o map[string]any) {
	switch o["distribution"] {
	case "quantiles":
		q, _ := o["q"].([]any)
		slices.SortFunc(q, func(a, b any) int { return cmp.Compare(a.(float64), b.(float64)) })
		p := make([]any, len(q))
		for i := range p {
			p[i] = float64(i) / math.Max(1, float64(len(q)-1))
		}
		o["p"] = p
	case "lognormal":
		if strings.HasSuffix(path, "_time") || strings.HasSuffix(path, "after") || strings.HasSuffix(path, "start") ||
			strings.HasSuffix(path, "gap") { // of durations
			o["cv"] = d.between(.1, 3)
		} else if o["mu"] != nil || o["mean"] == nil {
			delete(o, "mean")
			delete(o, "cv")
			o["mu"], o["sigma"] = d.between(1, 6), d.between(.1, 1.5)
		} else {
			delete(o, "mu")
			delete(o, "sigma")
			o["cv"] = d.between(.1, 3)
		}
	}
	if low, high := o["min"], o["max"]; low != nil && high != nil {
		if a, ok := low.(int); ok && a > high.(int) {
			o["min"], o["max"] = high, low
		}
	}
	if strings.HasSuffix(path, "speculative") {
		if list, ok := o["acceptance"].([]any); ok {
			o["num_speculative_tokens"] = len(list)
		}
	}
	if strings.HasSuffix(path, "engine") {
		for _, family := range []string{"sglang", "tgi", "mlfq", "trtllm"} {
			if o[family] != nil && d.chance(.9) {
				o["policy"] = family
				if family == "trtllm" {
					o["policy"] = one(d, "trtllm-guaranteed-no-evict", "trtllm-max-utilization", "trtllm-static")
				}
			}
		}
		if o["swap_space"] != nil || o["host_gb_per_s"] != nil {
			o["preemption"] = "swap"
		}
	}
}

// folder has the files that scenarios name. TestMain sets it.
var folder string

// recorded is the name of a short trace in Clifftop's own format.
var recorded = sync.OnceValue(func() string {
	var b strings.Builder
	b.WriteString("arrival_s,input_tokens,output_tokens,session,content,class,priority\n")
	for i := range 60 {
		// every sixth request belongs to a session, and prompts of a session share their start
		fmt.Fprintf(&b, "%.3f,%d,%d,%s,sys:64|s%d:%d,%s,%d\n", float64(i)*.13, 200+37*(i%11), 1+13*(i%17), session(i),
			i%6, 10+10*(i%3), string("ab"[i%2]), i%3)
	}
	return create("trace.csv", b.String())
})

// session names the session of every third request.
func session(i int) string {
	if i%3 > 0 {
		return ""
	}
	return fmt.Sprintf("s%d", i%6)
}

// measured is the name of a table of step times.
var measured = sync.OnceValue(func() string {
	return create("steps.csv", "decode_seqs,sum_context,prefill_tokens,seconds\n8,800,0,0.010\n16,1600,0,0.012\n"+
		"0,0,512,0.02\n0,0,4096,0.12\n64,64000,0,0.02\n64,64000,512,0.05\n")
})

func create(name, content string) string {
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		panic(err)
	}
	return path
}

func digest(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
