package experiments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"clifftop/experiments/measured"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model/catalog"
	"clifftop/sim/rule"
	"clifftop/workload"
	"clifftop/workload/trace"
)

// CatalogSchema identifies the JSON form of a [Listing].
const CatalogSchema = "clifftop.catalog/1"

// Listing is what is known of one kind.
type Listing struct {
	Schema string  `json:"schema"`
	Kind   string  `json:"kind"`
	Items  []Entry `json:"items"`
}

// Entry is one thing known. Its properties are keys beside its name in JSON.
type Entry struct {
	Name       string
	Aliases    []string
	Properties []Property
	Source     string
}

// Property is a named figure or word. The name carries the unit.
type Property struct {
	Name  string
	Value any
}

// MarshalJSON writes the properties in their order.
func (e Entry) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	put := func(name string, v any) error {
		key, _ := json.Marshal(name)
		value, err := json.Marshal(v)
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
		return err
	}
	b.WriteByte('{')
	err := put("name", e.Name)
	if err == nil && e.Aliases != nil {
		err = put("aliases", e.Aliases)
	}
	for _, p := range e.Properties {
		if err == nil {
			err = put(p.Name, p.Value)
		}
	}
	if err == nil {
		err = put("source", e.Source)
	}
	b.WriteByte('}')
	return b.Bytes(), err
}

// CatalogKinds are the kinds that [Catalog] lists.
func CatalogKinds() []string {
	return []string{"models", "gpus", "policies", "routers", "versions", "presets", "formats"}
}

// Catalog lists what is known of a kind.
func Catalog(kind string) (*Listing, error) {
	l := &Listing{Schema: CatalogSchema, Kind: kind}
	switch kind {
	case "models":
		l.Items = modelEntries()
	case "gpus":
		l.Items = gpuEntries()
	case "policies":
		l.Items = ruleEntries(scenario.BuiltIn().Policies)
	case "routers":
		l.Items = ruleEntries(scenario.BuiltIn().Routers)
	case "versions":
		for _, m := range scenario.Landmarks() {
			l.Items = append(l.Items, Entry{Name: m.Version, Properties: []Property{{"change", m.Change}},
				Source: "vLLM releases and pull requests"})
		}
	case "presets":
		presets, err := workload.Presets()
		if err != nil {
			return nil, err
		}
		l.Items = presetEntries(presets)
	case "formats":
		for _, f := range trace.Formats() {
			l.Items = append(l.Items, Entry{Name: f.Name, Properties: []Property{{"kind", "trace"},
				{"layout", f.Layout}}, Source: f.Source})
		}
		for _, f := range measured.Formats() {
			l.Items = append(l.Items, Entry{Name: f.Name, Properties: []Property{{"kind", "result"},
				{"layout", f.Layout}}, Source: f.Source})
		}
	default:
		f := &yamldoc.Fault{Where: "catalog",
			Problem: fmt.Sprintf("%q is not known (want %s)", yamldoc.Short(kind), yamldoc.OneOf(CatalogKinds())),
			Hint:    yamldoc.DidYouMean(kind, CatalogKinds())}
		return nil, yamldoc.Faults{f}
	}
	return l, nil
}

func modelEntries() []Entry {
	var entries []Entry
	for _, m := range catalog.LLMs() {
		total, active := m.Params()
		entries = append(entries, Entry{Name: m.Name, Aliases: m.Aliases, Source: m.Source, Properties: []Property{
			{"params_b", round(total/1e9, 2)}, {"active_params_b", round(active/1e9, 2)},
			{"layers", m.Layers}, {"heads", m.Heads}, {"kv_heads", m.KVHeads}, {"experts", m.Experts},
			{"max_context", m.MaxContext}, {"dtype", m.Precision.String()},
		}})
	}
	return entries
}

func gpuEntries() []Entry {
	var entries []Entry
	for _, g := range catalog.GPUs() {
		price := any(nil)
		if g.USDPerHour[1] > 0 {
			price = []float64{g.USDPerHour[0], g.USDPerHour[1]}
		}
		entries = append(entries, Entry{Name: g.Name, Aliases: g.Aliases, Source: g.Source, Properties: []Property{
			{"memory_gb", round(g.MemoryBytes/1e9, 1)}, {"hbm_gb_per_s", round(g.HBMBytesPerSecond/1e9, 0)},
			{"bf16_tflops", round(g.BF16FLOPs/1e12, 0)}, {"fp8_tflops", positive(round(g.FP8FLOPs/1e12, 0))},
			{"step_times", g.Calibrated.String()}, {"usd_per_hour", price},
		}})
	}
	return entries
}

func presetEntries(presets []workload.Preset) []Entry {
	var entries []Entry
	for _, p := range presets {
		entries = append(entries, Entry{Name: p.Name, Source: p.Source, Properties: []Property{
			{"title", p.Title}, {"provenance", p.Provenance},
			{"mean_input_tokens", positive(p.Input.Mean)}, {"mean_output_tokens", positive(p.Output.Mean)},
			{"requests_per_s", positive(p.Spec.Rate())}, {"needs", p.Needs()},
		}})
	}
	return entries
}

// positive is x, or nil where it is not known.
func positive(x float64) any {
	if x <= 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return x
}

// round rounds to so many decimals.
func round(x float64, decimals int) float64 {
	scale := math.Pow(10, float64(decimals))
	return math.Round(x*scale) / scale
}

func ruleEntries[Options any](rules rule.List[Options]) (entries []Entry) {
	for _, r := range rules {
		entries = append(entries, Entry{Name: r.Name, Properties: []Property{{"does", r.Does}}, Source: r.Source})
	}
	return entries
}
