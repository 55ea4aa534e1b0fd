package scenario

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/clock"
	"clifftop/sim/route"
)

var update = flag.Bool("update", false, "rewrite the files that tests compare with")

// TestSchemaIsCurrent makes the schema from the Go types: keys, allowed values and descriptions are
// those of the code. Run with -update after a change.
func TestSchemaIsCurrent(t *testing.T) {
	m := schemaMaker{docs: fieldDocs(t)}
	s := m.of(reflect.TypeFor[Scenario](), "", reflect.ValueOf(Default()).Elem())
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "Clifftop scenario"
	s.Defs = map[string]*jsonschema.Schema{
		"duration": {AnyOf: []*jsonschema.Schema{
			{Type: "string", Pattern: yamldoc.DurationPattern}, {Const: jsonschema.Ptr(any(0))},
			{Const: jsonschema.Ptr(any("0"))},
		}},
		"router": m.router(),
		"distribution": {AnyOf: []*jsonschema.Schema{
			{Type: "integer", Minimum: jsonschema.Ptr(1.0), Maximum: jsonschema.Ptr(536870912.0)},
			m.object(reflect.TypeFor[Distribution](), reflect.Value{}),
		}},
	}
	got, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(schemaFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(got, schema(t)) {
		t.Error("scenario.schema.json is out of date: run go test ./experiments/scenario -run TestSchemaIsCurrent -update")
	}
}

// TestSchemaAgreesWithParse validates sound and faulty scenarios by both.
func TestSchemaAgreesWithParse(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal(schema(t), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{
		"{}", string(Example()), "allow_unknown: true", "allow_unknown: maybe",
		"workload: {images: {share: 0.5, count: 2}}", "workload: {images: {share: 0}}",
		"engine: {max_num_seqs: 0}", "engine: {max_num_seqs: x}", "engin: {}", "engine: {async_scheduling: true}",
		"engine: {async_scheduling: yes please}", "engine: {kernels: tgi}", "engine: {kernels: sglang}", "overheads: {frontend: 4}", "overheads: {frontend: 1h30m}",
		"overheads: {frontend: 0}",
		"step_time: {linear: {a_ms: 1, b_us: 3}}", "step_time: {lin: {}}", "step_time: linear", "step_time: table",
		"step_time: {table: a.csv}", "step_time: {table: {file: a.csv}}", "step_time: {table: 3}",
		"slo: {ttft_p95: 1s, attainment: 0.9}", "slo: {ttft_q42: 1s}", "slo: {attainment: 2}",
		"workload: {arrivals: {process: poisson, rate: 3}}", "workload: {arrivals: {process: poisson}}",
		"workload: {arrivals: {process: closed, users: 3, rate: 3}}",
		"workload: {arrivals: [{duration: 1s, process: constant, rate: 3}]}",
		"workload: {arrivals: {users: 3, think_time: {distribution: exponential, mean: 3s}}}",
		"workload: {arrivals: 3}",
		"workload: {input: {distribution: fixed, value: 3}}", "workload: {input: {distribution: fixed, mean: 3}}",
		"workload: {output: {distribution: mixture, parts: [{weight: 1, distribution: gamma, mean: 3, cv: 1}]}}",
		"workload: {prefix: {groups: 1, prompts_per_group: 2, shared_tokens: 3}}",
		"workload: {prefix: {groups: 1, shared_tokens: 3}}",
		"workload: {prefix: {by: group, groups: 1, prompts_per_group: 2, shared_tokens: 3}}",
		"workload: {prefix: {by: cat, shared_tokens: 3}}",
		"workload: {prefix: {by: user, shared_tokens: 3}}", "workload: {prefix: {by: user}}",
		"workload: {prefix: {by: user, groups: 3, shared_tokens: 3}}",
		"workload: {trace: {file: a.csv}}", "workload: {trace: {}}", "run: {warmup: 30s}", "run: {warmup: none}",
		"run: {warmup: soon}",
		"clients: {timeout: 60s, retries: 0, backoff: {base: 1s, cap: 2s}, cancel_on_timeout: true, ttft_timeout: null}",
		"clients: {retries: 1}", "clients: {cancel_on_timeout: false}", "clients: {ttft_timeout: 3s}",
		"clients: {cancel: {probability: 0.1, after: 3s}}", "clients: {cancel: {probability: 0.1}}",
		"clients: {cancel: {probability: 2, after: 3s}}",
		"clients: {cancel: {probability: 0.1, after: {distribution: lognormal, mean: 3s, cv: 1}}}",
		"clients: {retries: -1}",
		"clients: {retries: 3, retry_on: [busy], retry_budget: 0.1, honor_retry_after: false}",
		"clients: {retry_on: [error]}",
		"clients: {backoff: {base: 0, factor: 1, jitter: full}}", "clients: {backoff: {jitter: some}}",
		"clients: {backoff: {factor: 0.5}}",
		"clients: {retry_budget: 0}", "clients: {retry_budget: 1.5}", "clients: {reading: 5}", "clients: {reading: 0}",
		"clients: {timeout: -1s}",
		"engine: {retry_after: 3s}", "engine: {retry_after: soon}", "overheads: {network_in: 20ms, network_out: 0}",
		"workload: {patience: 3s}",
		"deployment: {replicas: 1, router: round-robin}", "deployment: {replicas: 2}", "deployment: {replicas: 0}",
		"deployment: {router: nearest}", "deployment: {power_limit: 400}", "deployment: {power_limit: 0}",
		"energy: {server_power: 1.3, pue: 1.2, carbon_g_per_kwh: 0, usd_per_kwh: 0.1}", "energy: {pue: 0.9}",
		"energy: {carbon_g_per_kwh: -1}", "energy: {usd_per_kwh: cheap}",
		"deployment: {router: {policy: round-robin, front_ends: 2, scrape: 50ms}}",
		"deployment: {router: {front_ends: 2}}", "deployment: {router: {policy: round-robin, front_ends: 0}}",
		"deployment: {router: {policy: round-robin, scrapes: 3}}", "deployment: {router: 3}",
		"deployment: {router: {policy: power-of-two, load: scraped, scrape: 1s}}",
		"deployment: {router: {policy: power-of-two, factor: 2}}",
		"deployment: {router: {policy: bounded-hash, factor: 0.5}}",
		"deployment: {router: {policy: llm-d, scorers: {queue: 2, kv-usage: 2, prefix: 3}, affinity: {threshold: 0.5}, picker: weighted-random}}",
		"deployment: {router: {policy: llm-d, scorers: {queues: 2}}}",
		"deployment: {router: {policy: llm-d, scorers: {}}}",
		"deployment: {router: {policy: llm-d, affinity: {threshold: 0}}}",
		"deployment: {router: {policy: dynamo, overlap_weight: 2, approximate: true, ttl: 30s}}",
		"deployment: {router: {policy: sglang, cache_threshold: 2}}",
		"engine: {order: sjf}", "engine: {order: edf}", "engine: {order: {rule: edf, within: 3s}}",
		"engine: {order: {}}", "engine: {order: first}",
		"pools: [{}]", "pools: [{name: a, replicas: 3, gpu: h200, deployment: {tensor_parallel_size: 2}, engine: {max_num_seqs: 3}, cost: {gpu_hour: 2}}, {}]",
		"pools: {}", "pools: []", "pools: [{replicas: 0}]", "pools: [{role: prefill}]", "pools: [{role: both}]",
		"pools: [{deployment: {replicas: 2}}]", "pools: [{deployment: {router: random}}]",
		"pools: [{engine: {max_num_seqs: 0}}]", "pools: [{workload: {}}]",
		"engine: {speculative: null, max_num_queued_reqs: null}", "engine: {speculative: {}}",
		"engine: {speculative: {method: eagle, num_speculative_tokens: 3, acceptance: 0.7}}",
		"engine: {speculative: {method: ngram, num_speculative_tokens: 3, acceptance: [0.7, 0.5], match: 0.5}}",
		"engine: {speculative: {method: eagle, num_speculative_tokens: 3, acceptance: 0.7, match: 0.5}}",
		"engine: {speculative: {method: draft, num_speculative_tokens: 3, acceptance: 0.7}}",
		"engine: {speculative: {method: mtp, num_speculative_tokens: 3, acceptance: []}}",
		"engine: {speculative: {method: mtp, num_speculative_tokens: 0, acceptance: 1}}",
		"engine: {speculative: {method: mtp, num_speculative_tokens: 1, acceptance: 1.5}}",
		"engine: {max_num_queued_reqs: 3}",
		"run: {replications: 1}", "run: {replications: 2}", "run: {replications: 0}", "run: {precision: 0.02}",
		"run: {precision: 2%}", "run: {precision: 0}",
		"run: {precision: 2}", "run: {precision: much}",
		"workload: {input: 512, output: {distribution: geometric, mean: 20}}", "workload: {input: 0}",
		"workload: {input: 1.5}",
		"workload: {sessions: {turns: 3, first_prompt: 50, later_user_tokens: 20, system_prompt: 1000, think_time: 5s}}",
		"workload: {sessions: {turns: {distribution: log-series, mean: 1.7}, first_prompt: 50, later_user_tokens: 20, system_prompt: {tokens: [5, 6], weights: [1, 2], share: 0.5}, turn_gap: {distribution: lognormal, mean: 3m, cv: 1}}}",
		"workload: {sessions: {system_prompt: {groups: 3}}}", "workload: {sessions: {too_long: cut}}",
		"workload: {sessions: {think_time: -5s}}",
		"workload: {classes: [{name: a, weight: 1, priority: 3, slo: {ttft_p95: 1s}}, {name: b, weight: 2, preset: code-azure23, input: 5}], class_weights: sessions}",
		"workload: {headcount: {people: 2000, adoption: 0.6, active_at_peak: 0.2}}",
		"workload: {headcount: {people: 0, adoption: 0.6, active_at_peak: 0.2}}",
		"workload: {arrivals: {process: superposed, rate: 3, sources: 20, top_share: 0.3, top10_share: 0.7, source_cv: [1, 1, 1, 2, 5]}}",
		"workload: {classes: [{name: a, weight: -1}]}", "workload: {classes: {}}", "workload: {class_weights: users}",
		"workload: {lora: support}", "workload: {lora: {adapters: 32, zipf: 1, share: 0.8}}", "workload: {lora: {zipf: 1}}",
		"workload: {lora: {adapters: 0}}", "workload: {lora: 3}", "workload: {lora: null}", "engine: {max_loras: 0}",
		"engine: {max_cudagraph_capture_size: 0}",
		"workload: {classes: [{name: a, weight: 1, lora: tuned}]}\nengine: {max_loras: 4}",
		"workload: {sessions: {edited_history: 2}}", "workload: {sessions: {turns: 0}}",
		"offload: {tiers: [{name: host, size: 64GiB, bandwidth: 25GB/s}]}",
		"offload: {tiers: [{name: host, size: 64 GiB, bandwidth: 200Gb/s, latency: 10us, eviction: arc, write: back}], " +
			"chunk_tokens: 16, fetch: always, min_tokens: 32}",
		"offload: {tiers: [{name: host, size: 64, bandwidth: 25GB/s}]}",
		"offload: {tiers: [{name: host, size: 64GiB, bandwidth: 25GB}]}",
		"offload: {tiers: [{size: 64GiB, bandwidth: 25GB/s}]}",
		"offload: {tiers: [{name: host, size: 64GiB, bandwidth: 25GB/s, eviction: fifo}]}",
		"offload: {tiers: [{name: host, size: 64GiB, bandwidth: 25GB/s, speed: 3}]}", "offload: {chunk_tokens: 0}",
		"offload: {fetch: never}", "offload: 3",
		"pools: [{role: prefill}, {role: decode}]\ndisaggregation: {max_backlog_tokens: 20000}",
		"disaggregation: {max_backlog_tokens: 0}", "disaggregation: {max_backlog_tokens: many}",
		"lifecycle: {}", "lifecycle: 3",
		"lifecycle: {cold_start: {distribution: lognormal, mean: 2m, cv: 0.3}, grace: 0, probe: 1s, hold: 0}",
		"lifecycle: {grace: 30}", "lifecycle: {hold: -1}",
		"lifecycle: {failures: [{kind: crash, at: 3s, replica: 0}, {kind: drain, at: 3s, replica: 0, for: 3s}, {kind: slow, at: 3s, replica: 0, for: 3s, factor: 2.5}, {kind: rolling-restart, at: 0}]}",
		"lifecycle: {failures: [{kind: crash, at: 3s}]}", "lifecycle: {failures: [{at: 3s, replica: 0}]}",
		"lifecycle: {failures: [{kind: link-loss, at: 3s, replica: 0}]}",
		"lifecycle: {failures: [{kind: slow, at: 3s, replica: 0, for: 3s, factor: 0.5}]}",
		"lifecycle: {failures: [{kind: crash, at: 3s, replica: 0, factor: 2}]}",
		"lifecycle: {failures: {kind: crash, at: 3s, replica: 0}}",
		"lifecycle: {random_crashes: {mtbf: 6h, mttr: 5m}}", "lifecycle: {random_crashes: {mtbf: 6h}}",
		"lifecycle: {autoscale: {policy: hpa, max: 4, target: 5}}",
		"lifecycle: {autoscale: [{policy: keda, pool: a, min: 0, target: 5, polling_interval: 15s}, {policy: knative, " +
			"pool: b, target: 100, panic_threshold: 3}]}",
		"lifecycle: {autoscale: {policy: hpa, max: 4}}", "lifecycle: {autoscale: {max: 4, target: 5}}",
		"lifecycle: {autoscale: []}", "lifecycle: {autoscale: {policy: hpa, target: 5, panic_threshold: 3}}",
		"lifecycle: {autoscale: {policy: hpa, target: 5, tolerance: 1}}",
		"plan: {}", "plan: 3", "plan: {gpus: [h100], dtypes: [fp8], engine: {max_num_seqs: [64, 256]}, prices: {h100: 2.5}}",
		"plan: {growth: -1}", "plan: {engine: {max_seqs: [64]}}", "plan: {engine: {max_num_seqs: 64}}",
		"plan: {prices: {h100: -1}}",
		"plan: {on_prem: {usd_per_gpu: 30000, life_years: 5}}", "plan: {on_prem: {}}",
		"plan: {api: {usd_per_million_input: 0.1}}",
	}
	files, _ := filepath.Glob("../examples/*.yaml")
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(data))
	}
	for _, text := range texts {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		instance, _ := json.Marshal(v)
		_ = json.Unmarshal(instance, &v)
		_, byParse := Parse("s.yaml", []byte(text))
		bySchema := resolved.Validate(v)
		if (byParse == nil) != (bySchema == nil) {
			t.Errorf("%s\nParse says %v\nthe schema says %v", text, byParse, bySchema)
		}
	}
}

// schemaFile is the JSON Schema that users get.
const schemaFile = "../scenario.schema.json"

func schema(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// schemaMaker turns types into schemas.
type schemaMaker struct {
	docs map[string]string // of TYPE.FIELD
}

// of is the schema of a type whose default is def, which may be invalid for none.
func (m schemaMaker) of(t reflect.Type, tag reflect.StructTag, def reflect.Value) *jsonschema.Schema {
	if only := tag.Get("only"); only != "" {
		return theOnly(only)
	}
	if t.Kind() == reflect.Pointer {
		return nullable(m.of(t.Elem(), tag, reflect.Value{}))
	}
	if s := m.special(t); s != nil {
		return s
	}
	s := &jsonschema.Schema{}
	names := yamldoc.NamesOf(t, tag)
	switch t.Kind() {
	case reflect.Struct:
		return m.object(t, def)
	case reflect.Slice:
		s.Type, s.Items = "array", m.of(t.Elem(), tag, reflect.Value{})
	case reflect.String, reflect.Bool, reflect.Uint8:
		if t.Kind() == reflect.Bool && len(names) == 0 {
			s.Type = "boolean"
			break
		}
		s.Type = "string"
		for _, name := range names {
			s.Enum = append(s.Enum, name)
		}
		if s.Enum == nil && tag.Get("empty") == "" {
			s.MinLength = jsonschema.Ptr(1)
		}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		s.Type = "integer"
		bounds(s, tag)
	case reflect.Float64:
		s.Type = "number"
		bounds(s, tag)
	default:
		panic("no value of a scenario is decoded into " + t.String())
	}
	return s
}

// theOnly is the schema of one value, given as YAML.
func theOnly(text string) *jsonschema.Schema {
	if text == "null" {
		return &jsonschema.Schema{Type: "null"}
	}
	var v any = text
	_ = json.Unmarshal([]byte(text), &v) // a name is not JSON, and stays what it is
	return &jsonschema.Schema{Const: jsonschema.Ptr(v)}
}

func bounds(s *jsonschema.Schema, tag reflect.StructTag) {
	r := yamldoc.ParseRange(tag.Get("range"))
	if !math.IsInf(r.Low, 0) {
		if r.LowOpen {
			s.ExclusiveMinimum = &r.Low
		} else {
			s.Minimum = &r.Low
		}
	}
	if !math.IsInf(r.High, 0) {
		if r.HighOpen {
			s.ExclusiveMaximum = &r.High
		} else {
			s.Maximum = &r.High
		}
	}
}

// special is the schema of a type with a syntax of its own, or nil.
func (m schemaMaker) special(t reflect.Type) *jsonschema.Schema {
	duration := &jsonschema.Schema{Ref: "#/$defs/duration"}
	names := func(names ...any) *jsonschema.Schema { return &jsonschema.Schema{Enum: names} }
	either := func(s ...*jsonschema.Schema) *jsonschema.Schema { return &jsonschema.Schema{AnyOf: s} }
	none := reflect.Value{}
	switch t {
	case reflect.TypeFor[yamldoc.Duration](), reflect.TypeFor[clock.Duration]():
		return duration
	case reflect.TypeFor[Distribution]():
		return &jsonschema.Schema{Ref: "#/$defs/distribution"}
	case reflect.TypeFor[yamldoc.Share]():
		return either(&jsonschema.Schema{Type: "number", ExclusiveMinimum: jsonschema.Ptr(0.0),
			ExclusiveMaximum: jsonschema.Ptr(1.0)},
			&jsonschema.Schema{Type: "string", Pattern: yamldoc.SharePattern})
	case reflect.TypeFor[yamldoc.ByteSize]():
		return &jsonschema.Schema{Type: "string", Pattern: yamldoc.ByteSizePattern}
	case reflect.TypeFor[yamldoc.ByteRate]():
		return &jsonschema.Schema{Type: "string", Pattern: yamldoc.ByteRatePattern}
	case reflect.TypeFor[Toggle]():
		return names("auto", true, false)
	case reflect.TypeFor[Warmup]():
		return either(names("auto", "none"), duration)
	case reflect.TypeFor[Acceptance]():
		p := &jsonschema.Schema{Type: "number", Minimum: jsonschema.Ptr(0.0), Maximum: jsonschema.Ptr(1.0)}
		return either(p, &jsonschema.Schema{Type: "array", MinItems: jsonschema.Ptr(1), Items: p})
	case reflect.TypeFor[Counts](), reflect.TypeFor[SystemPrompt]():
		n := &jsonschema.Schema{Type: "integer", Minimum: jsonschema.Ptr(0.0), Maximum: jsonschema.Ptr(536870912.0)}
		several := &jsonschema.Schema{Type: "array", MinItems: jsonschema.Ptr(1), Items: n}
		if t == reflect.TypeFor[Counts]() {
			return either(n, several)
		}
		s := m.object(t, none)
		s.Required = []string{"tokens"}
		return either(n, several, s)
	case reflect.TypeFor[LoRA]():
		s := m.object(t, none)
		s.Required = []string{"adapters"}
		return either(&jsonschema.Schema{Type: "string", MinLength: jsonschema.Ptr(1)}, s)
	case reflect.TypeFor[ThinkTime]():
		s := m.object(t, none)
		s.Required = []string{"mean"}
		return either(duration, s)
	case reflect.TypeFor[Hourly]():
		var known []any
		for _, name := range hourlyNames() {
			known = append(known, name)
		}
		hours := func(n int) *jsonschema.Schema {
			rate := &jsonschema.Schema{Type: "number", Minimum: jsonschema.Ptr(0.0), Maximum: jsonschema.Ptr(1e6)}
			return &jsonschema.Schema{Type: "array", MinItems: &n, MaxItems: &n, Items: rate}
		}
		return either(names(known...), hours(24), hours(168))
	case reflect.TypeFor[Arrivals]():
		stage := m.object(reflect.TypeFor[Stage](), none)
		single := stage.CloneSchemas()
		for _, v := range single.AnyOf {
			delete(v.Properties, "name")
			delete(v.Properties, "duration")
		}
		return either(single, &jsonschema.Schema{Type: "array", MinItems: jsonschema.Ptr(1), Items: stage})
	case reflect.TypeFor[Autoscale]():
		one := m.object(reflect.TypeFor[Autoscaler](), none)
		return either(one, &jsonschema.Schema{Type: "array", MinItems: jsonschema.Ptr(1), Items: one.CloneSchemas()})
	case reflect.TypeFor[Prices]():
		price := &jsonschema.Schema{Type: "number", Minimum: jsonschema.Ptr(0.0), Maximum: jsonschema.Ptr(1e6)}
		return &jsonschema.Schema{Type: "object", AdditionalProperties: price}
	case reflect.TypeFor[Knobs]():
		o := closed()
		for _, name := range yamldoc.Keys(reflect.TypeFor[Engine]()) {
			single := &jsonschema.Schema{Types: []string{"number", "string", "boolean", "null"}}
			o.Properties[name] = &jsonschema.Schema{Type: "array", MinItems: jsonschema.Ptr(1), Items: single}
		}
		return o
	case reflect.TypeFor[OnPrem]():
		s := m.object(t, none)
		s.Required = []string{"usd_per_gpu"}
		return s
	case reflect.TypeFor[API]():
		s := m.object(t, none)
		s.Required = []string{"usd_per_million_input", "usd_per_million_output"}
		return s
	case reflect.TypeFor[Order]():
		var rules []any
		for _, r := range BuiltIn().Orders {
			if yamldoc.KeysWith(r.New()).Required == nil {
				rules = append(rules, r.Name)
			}
		}
		slices.SortFunc(rules, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		return either(names(rules...), m.object(reflect.TypeFor[Order](), none))
	case reflect.TypeFor[Router]():
		return &jsonschema.Schema{Ref: "#/$defs/router"}
	case reflect.TypeFor[route.Weights]():
		o := closed()
		for _, name := range (route.Weights{}).Names() {
			o.Properties[name] = &jsonschema.Schema{Type: "number", Minimum: jsonschema.Ptr(0.0),
				Maximum: jsonschema.Ptr(1e9)}
		}
		o.MinProperties = jsonschema.Ptr(1)
		return o
	case reflect.TypeFor[[]Pool]():
		return &jsonschema.Schema{Type: "array", MinItems: jsonschema.Ptr(1),
			Items: m.of(reflect.TypeFor[Pool](), "", none)}
	case reflect.TypeFor[Pool]():
		s := m.object(t, none)
		layout := s.Properties["deployment"].AnyOf[0]
		for _, name := range []string{"replicas", "router"} {
			delete(layout.Properties, name)
			layout.PropertyOrder = slices.DeleteFunc(layout.PropertyOrder, func(p string) bool { return p == name })
		}
		for _, name := range []string{"engine", "overheads", "step_time", "cost"} {
			s.Properties[name] = &jsonschema.Schema{Ref: "#/properties/" + name,
				Description: s.Properties[name].Description}
		}
		return s
	case reflect.TypeFor[SLO]():
		share := &jsonschema.Schema{Type: "number", Minimum: jsonschema.Ptr(0.0), Maximum: jsonschema.Ptr(1.0)}
		return &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{"attainment": share, "wait_probability": share,
				"hours":   {Type: "number", ExclusiveMinimum: jsonschema.Ptr(0.0), ExclusiveMaximum: jsonschema.Ptr(1.0)},
				"horizon": duration},
			PatternProperties: map[string]*jsonschema.Schema{
				sloOtherPattern: duration,
				sloTokenPattern: either(duration, &jsonschema.Schema{Type: "string", Pattern: yamldoc.SpeedPattern}),
			},
			AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
		}
	case reflect.TypeFor[StepTime]():
		one := func(name string, s *jsonschema.Schema) *jsonschema.Schema {
			o := closed()
			o.Properties[name] = s
			o.Required = []string{name}
			return o
		}
		return either(names("kernels", "roofline"), one("kernels", nullable(closed())),
			one("roofline", nullable(m.object(reflect.TypeFor[RooflineStep](), none))),
			one("linear", m.object(reflect.TypeFor[LinearStep](), none)),
			one("table", either(&jsonschema.Schema{Type: "string", MinLength: jsonschema.Ptr(1)},
				m.object(reflect.TypeFor[tableKeys](), none))))
	}
	return nil
}

func closed() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
}

func nullable(s *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, {Type: "null"}}}
}

// object is the schema of a struct; of one with variants, a choice.
func (m schemaMaker) object(t reflect.Type, def reflect.Value) *jsonschema.Schema {
	if u, ok := reflect.New(t).Interface().(yamldoc.Variants); ok {
		return m.choice(t, u)
	}
	s := closed()
	for _, f := range yamldoc.Fields(t) {
		if x, ok := reflect.New(f.Type).Interface().(*PolicyOptions); ok {
			m.sections(s, x)
			continue
		}
		name := yamldoc.Key(f)
		if name == "" {
			continue
		}
		var d reflect.Value
		if def.IsValid() {
			d = def.FieldByIndex(f.Index)
		}
		p := m.of(f.Type, f.Tag, d)
		p.Description = m.doc(f, t.String())
		switch {
		case d.IsValid() && yamldoc.Unset(d, f.Tag):
			p = nullable(p)
			p.Description, p.AnyOf[0].Description = p.AnyOf[0].Description, ""
		case d.IsValid() && f.Type.Kind() != reflect.Struct && f.Type.Kind() != reflect.Pointer:
			plain, _ := yamldoc.Plain(d, f.Tag)
			p.Default, _ = json.Marshal(plain)
		}
		if f.Type.Kind() == reflect.Struct && m.special(f.Type) == nil {
			p = nullable(p)
			p.Description, p.AnyOf[0].Description = p.AnyOf[0].Description, ""
		}
		s.Properties[name] = p
		s.PropertyOrder = append(s.PropertyOrder, name)
	}
	switch t {
	case reflect.TypeFor[Trace]():
		s.Required = []string{"file"}
	case reflect.TypeFor[Cancel]():
		s.Required = []string{"probability", "after"}
	case reflect.TypeFor[RandomCrashes]():
		s.Required = []string{"mtbf", "mttr"}
	}
	return s
}

// doc describes a field of a struct: its tag or its comment.
func (m schemaMaker) doc(f reflect.StructField, of string) string {
	if doc := f.Tag.Get("doc"); doc != "" {
		return strings.ToUpper(doc[:1]) + doc[1:] + "."
	}
	return m.docs[of+"."+f.Name]
}

// sections adds the options of policies to the schema of the engine.
func (m schemaMaker) sections(s *jsonschema.Schema, o *PolicyOptions) {
	for _, section := range o.Keys() {
		options := reflect.ValueOf(o.Part(section)).Elem()
		p := nullable(m.object(options.Type(), options))
		var policies []string
		for _, r := range BuiltIn().Policies {
			if r.Section == section {
				policies = append(policies, r.Name)
			}
		}
		p.Description = "Options of policy " + yamldoc.OneOf(policies) + "."
		s.Properties[section] = p
		s.PropertyOrder = append(s.PropertyOrder, section)
	}
}

// router is the schema of routers.
func (m schemaMaker) router() *jsonschema.Schema {
	var rules []any
	for _, name := range BuiltIn().Routers.Names() {
		rules = append(rules, name)
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Enum: rules},
		m.object(reflect.TypeFor[Router](), reflect.Value{})}}
}

// ruled are the types of which a map without the deciding key is refused.
var ruled = []reflect.Type{reflect.TypeFor[Distribution](), reflect.TypeFor[Order](), reflect.TypeFor[Router](),
	reflect.TypeFor[Failure](), reflect.TypeFor[Autoscaler]()}

// choice is the schema of a struct whose keys depend on one of them.
func (m schemaMaker) choice(t reflect.Type, u yamldoc.Variants) *jsonschema.Schema {
	decider, variants := u.Variants()
	choice := &jsonschema.Schema{}
	var values []string
	for v := range variants {
		values = append(values, v)
	}
	slices.Sort(values)
	for _, v := range values {
		if v == "*" || v == "" && slices.Contains(ruled, t) {
			continue
		}
		s := closed()
		keys := slices.Concat(variants[v].Required, variants[v].Optional, variants["*"].Optional)
		for _, key := range keys {
			if key == decider {
				continue
			}
			of, f := fieldOf(t, key)
			x, extended := u.(yamldoc.Extended)
			if extended = extended && f.Name == ""; extended {
				of, f = fieldOf(reflect.TypeOf(x.Extension(v)).Elem(), key)
			}
			p := &jsonschema.Schema{}
			if key == "parts" {
				p = &jsonschema.Schema{Type: "array", MinItems: jsonschema.Ptr(1), Items: &jsonschema.Schema{
					Type: "object", Required: []string{"distribution", "weight"}}}
			} else {
				p = m.of(f.Type, f.Tag, reflect.Value{})
			}
			if extended && f.Type.Kind() != reflect.Pointer {
				p = nullable(p)
			}
			p.Description = m.doc(f, of.String())
			s.Properties[key] = p
		}
		s.Required = slices.Clone(variants[v].Required)
		if v != "" {
			s.Properties[decider] = &jsonschema.Schema{Const: jsonschema.Ptr(any(v))}
			s.Required = append(s.Required, decider)
		}
		choice.AnyOf = append(choice.AnyOf, s)
	}
	return choice
}

// fieldOf is the field of a struct under a key, with the struct that declares it.
func fieldOf(t reflect.Type, key string) (reflect.Type, reflect.StructField) {
	for _, f := range reflect.VisibleFields(t) {
		if yamldoc.Key(f) != key {
			continue
		}
		for _, i := range f.Index[:len(f.Index)-1] {
			t = t.Field(i).Type
		}
		return t, f
	}
	return t, reflect.StructField{}
}

// fieldDocs reads the comments of the package's struct fields.
func fieldDocs(t *testing.T) map[string]string {
	docs := map[string]string{}
	files, _ := filepath.Glob("*.go")
	more, _ := filepath.Glob("*/*.go")
	for _, name := range append(files, more...) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, name := range f.Names {
						docs[file.Name.Name+"."+spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
					}
				}
			}
			return true
		})
	}
	return docs
}
