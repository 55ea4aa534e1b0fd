package scenario

import (
	"encoding/json"
	"slices"
	"strconv"

	"clifftop/experiments/scenario/yamldoc"
)

// Planning says what clifftop plan chooses from, for which traffic, and at which prices. Every key has a default.
type Planning struct {
	// PeakRate is the mean rate of the busiest hour, in requests per second; null is that of the traffic.
	PeakRate *float64 `json:"peak_rate" range:"(0,10000000]"`
	// Growth is how much more traffic is planned for, as a fraction: 0.3 is 30 % more.
	Growth float64 `json:"growth" range:"[0,1000]"`
	// GPUs are the candidates; null is all GPUs of the catalog, or the scenario's if it is given.
	GPUs []string `json:"gpus"`
	// Dtypes are the formats of the weights to try.
	Dtypes []string `json:"dtypes" one:"auto bf16 fp16 fp8 int4 nvfp4 mxfp4"`
	// KVCacheDtypes are the formats of the KV cache to try; null is the scenario's.
	KVCacheDtypes []string `json:"kv_cache_dtypes" one:"auto bf16 fp16 fp8"`
	// TensorParallelSizes are the numbers of GPUs that share every layer; those that the model cannot take are
	// passed over.
	TensorParallelSizes []int `json:"tensor_parallel_sizes" range:"[1,1024]"`
	// PipelineParallelSizes are the numbers of stages to try.
	PipelineParallelSizes []int `json:"pipeline_parallel_sizes" range:"[1,1024]"`
	// ExpertParallel spreads the experts of a mixture whole over the GPUs that share a layer, rather than
	// parts of each; auto tries both.
	ExpertParallel Toggle `json:"expert_parallel"`
	// Engine holds knobs of the engine with the values to try, such as {max_num_seqs: [64, 256]}.
	Engine Knobs `json:"engine"`
	// Fewest asks for the smallest max_num_seqs with which one replica suffices, rather than for the fewest replicas.
	Fewest *string `json:"fewest" one:"max_num_seqs"`
	// MaxGPUs is the most GPUs that a plan may have in all.
	MaxGPUs int `json:"max_gpus" range:"[1,1000000]"`
	// Within ends the search for plans that cost more than so many times the cheapest found.
	Within float64 `json:"within" range:"[1,1000]"`
	// Budget is the number of requests that may be simulated to verify the best plans hour by hour.
	Budget float64 `json:"budget" range:"[0,1000000000000]"`
	// Spare is the number of replicas whose failure a plan shall survive.
	Spare int `json:"spare" range:"[0,1000]"`
	// UnvalidatedError is the error assumed of step times that no measured run bears out.
	UnvalidatedError float64 `json:"unvalidated_error" range:"[0,0.9]"`
	// Unmeasured is what becomes of candidates that no measured run stands behind: with apart they are listed after the
	// others and recommended only if there are no others, with ranked they compete.
	Unmeasured string `json:"unmeasured" one:"apart ranked"`
	// Prices are US dollars per GPU and hour, by GPU name; they replace those of the catalog.
	Prices Prices `json:"prices"`
	// StartUp is how long a new replica takes until it serves, where replicas follow the load.
	StartUp yamldoc.Duration `json:"start_up" range:"[0,3600]"`
	// IdlePower is the part of a GPU's design power that it draws when idle, where that of the catalog does not apply.
	IdlePower float64 `json:"idle_power" range:"[0,1]"`
	// OnPrem compares with GPUs of one's own; null does not.
	OnPrem *OnPrem `json:"on_prem"`
	// API compares with the price of an API; null does not.
	API *API `json:"api"`
}

// OnPrem holds what GPUs of one's own cost.
type OnPrem struct {
	// USDPerGPU is the purchase price of a GPU with its share of server, network and racks.
	USDPerGPU *float64 `json:"usd_per_gpu" range:"(0,100000000]"`
	// LifeYears is over how many years it is written off.
	LifeYears float64 `json:"life_years" range:"(0,50]"`
	// ServerPower is the power of a server as a multiple of its GPUs' design power.
	ServerPower float64 `json:"server_power" range:"[1,10]"`
	// PUE is the power of the data centre as a multiple of that of the servers.
	PUE float64 `json:"pue" range:"[1,10]"`
	// USDPerKWh is the price of energy.
	USDPerKWh float64 `json:"usd_per_kwh" range:"[0,100]"`
	// StaffUSDPerMonth is what it costs to keep the servers running, in all.
	StaffUSDPerMonth float64 `json:"staff_usd_per_month" range:"[0,100000000]"`
}

func (o *OnPrem) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	d.Require(n, key, "want the purchase price of a GPU with its share of the server", "usd_per_gpu")
}

// API holds the prices of an API, in US dollars per million tokens.
type API struct {
	USDPerMillionInput  *float64 `json:"usd_per_million_input" range:"[0,1000000]"`
	USDPerMillionOutput *float64 `json:"usd_per_million_output" range:"[0,1000000]"`
	// USDPerMillionCached is for input tokens found in the prefix cache; null is as for other input.
	USDPerMillionCached *float64 `json:"usd_per_million_cached_input" range:"[0,1000000]"`
}

func (a *API) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	d.Require(n, key, "", "usd_per_million_input", "usd_per_million_output")
}

func (o *OnPrem) SetDefaults() {
	*o = OnPrem{LifeYears: 4, ServerPower: 1.45, PUE: 1.3, USDPerKWh: 0.12}
}

func (p *Planning) SetDefaults() {
	*p = Planning{
		Dtypes: []string{"auto", "fp8", "int4"}, TensorParallelSizes: []int{1, 2, 4, 8},
		PipelineParallelSizes: []int{1},
		MaxGPUs:               64, Within: 3, Budget: 1e7, Spare: 1, UnvalidatedError: 0.15, Unmeasured: "apart",
		StartUp:   yamldoc.Duration(5 * 60 * 1e12),
		IdlePower: 0.25,
	}
}

// Prices are US dollars per GPU and hour by the names of GPUs.
type Prices map[string]float64

func (p *Prices) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	*p = Prices{}
	if n.Kind != yamldoc.Map {
		d.Wrong(n, key, "a map such as {h100-sxm: 2.5}")
		return
	}
	for _, f := range n.Fields {
		full := yamldoc.Join(key, f.Name)
		if _, twice := (*p)[f.Name]; twice {
			d.Fault(f.At, full, "the key is given twice", "")
			continue
		}
		price := 0.0
		d.Value(f.Value, full, &price, `range:"[0,1000000]"`)
		if f.Value.Kind != yamldoc.Null {
			(*p)[f.Name] = price
		}
	}
}

// Knob is a knob of the engine and the values to try.
type Knob struct {
	Name   string
	Values []string // as YAML
}

// Knobs are knobs of the engine in the order in which they were given.
type Knobs []Knob

func (k Knobs) MarshalJSON() ([]byte, error) {
	m := map[string][]json.RawMessage{}
	for _, knob := range k {
		for _, v := range knob.Values {
			raw := json.RawMessage(v)
			if !json.Valid(raw) {
				raw, _ = json.Marshal(v)
			}
			m[knob.Name] = append(m[knob.Name], raw)
		}
	}
	return json.Marshal(m)
}

func (k *Knobs) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	*k = nil
	if n.Kind != yamldoc.Map {
		d.Wrong(n, key, "a map such as {max_num_seqs: [64, 256]}")
		return
	}
	known := yamldoc.KeysOf(&Engine{})
	for _, f := range n.Fields {
		full := yamldoc.Join(key, f.Name)
		switch {
		case !slices.Contains(known, f.Name):
			d.Fault(f.At, full, "unknown key (want a knob of the engine)", yamldoc.DidYouMean(f.Name, known))
		case slices.ContainsFunc(*k, func(o Knob) bool { return o.Name == f.Name }):
			d.Fault(f.At, full, "the key is given twice", "")
		case f.Value.Kind != yamldoc.List || len(f.Value.Items) == 0:
			d.Wrong(f.Value, full, "a list of values such as [64, 256]")
		default:
			*k = append(*k, decodeKnob(d, f, full))
		}
	}
}

// decodeKnob reads the values of one knob, each of which must be one that the engine takes.
func decodeKnob(d *yamldoc.Decoder, f yamldoc.Field, key string) Knob {
	knob := Knob{Name: f.Name}
	for i, item := range f.Value.Items {
		at := yamldoc.Join(key, strconv.Itoa(i))
		if item.Kind == yamldoc.List || item.Kind == yamldoc.Map {
			d.Wrong(item, at, "a single value")
			continue
		}
		engine := defaultEngine()
		field, tag := yamldoc.FieldOf(&engine, f.Name)
		d.Value(item, at, field, tag)
		text := item.Text
		if item.Kind == yamldoc.Null {
			text = "null"
		}
		knob.Values = append(knob.Values, text)
	}
	return knob
}

func (p *Planning) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	for _, l := range []struct {
		name string
		n    int
	}{{"gpus", len(p.GPUs)}, {"dtypes", len(p.Dtypes)}, {"tensor_parallel_sizes", len(p.TensorParallelSizes)},
		{"pipeline_parallel_sizes", len(p.PipelineParallelSizes)}} {
		if v := n.Get(l.name); v != nil && v.Kind == yamldoc.List && l.n == 0 {
			d.Fault(v.At, yamldoc.Join(key, l.name), "the list is empty (want one value or more)", "")
		}
	}
}
