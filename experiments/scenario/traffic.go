package scenario

import (
	"fmt"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/workload/trace"
)

// Workload is the traffic: a preset with whole keys of it replaced, or a trace.
type Workload struct {
	// Preset names the base; null is chat-azure23 where there is no trace. The keys below replace the
	// preset's whole key.
	Preset *string `json:"preset"`
	// Trace replays recorded requests.
	Trace *Trace `json:"trace"`
	// Arrivals says when requests arrive: one process, or a list of phases.
	Arrivals *Arrivals `json:"arrivals"`
	// Input is the distribution of prompt lengths, in tokens.
	Input *Distribution `json:"input"`
	// Output is the distribution of output lengths, in tokens.
	Output *Distribution `json:"output"`
	// Prefix makes prompts share their first tokens.
	Prefix *Prefix `json:"prefix"`
	// Sessions makes requests turns of conversations instead of single requests.
	Sessions *Sessions `json:"sessions"`
	// LoRA says which adapters requests use; null is the base model.
	LoRA *LoRA `json:"lora,omitempty"`
	// Images adds images to prompts, for models with an encoder of images; null is none. Their tokens are not counted
	// in Input.
	Images *Images `json:"images,omitempty"`
	// Classes mixes several kinds of traffic. Each arrival, or each user of a closed loop, belongs to one of them.
	Classes []Class `json:"classes"`
	// ClassWeights is the unit of the weights of classes in an open loop: requests, or sessions, where a
	// conversation counts as much as a single request.
	ClassWeights string `json:"class_weights" one:"requests sessions"`
	// Headcount derives arrivals and classes from the number of people in a company.
	Headcount *Headcount `json:"headcount"`
	// MaxTokens is the output limit that clients send. It cuts longer outputs, and policies reserve KV for it. A
	// shorter output ends with a stop token that the engine cannot predict. Null is no limit: clients then declare the
	// exact output length.
	MaxTokens *int `json:"max_tokens" range:"[1,1000000000]"`
	// Sampling is how the engine picks tokens, which costs time.
	Sampling string `json:"sampling" one:"greedy top_p"`
}

// Images says which requests have images. An image follows the shared part of a prompt. The encoder computes it in the
// iteration that computes its first token.
type Images struct {
	// Share is the fraction of requests that have images.
	Share float64 `json:"share" range:"(0,1]"`
	// Count is the number of images of such a request.
	Count int `json:"count" range:"[1,4096]"`
	// Tokens is the number of tokens of an image; null is that of the model's record.
	Tokens *int `json:"tokens" range:"[1,65536]"`
}

// SetDefaults is one image in every request.
func (i *Images) SetDefaults() { i.Share, i.Count = 1, 1 }

// Trace is a file of recorded requests and what to do with them, in the order of the keys.
type Trace struct {
	// File is a path, relative to the scenario file.
	File string `json:"file"`
	// Format is the layout of the file; auto tells it by the header.
	Format string `json:"format"`
	// Mode is the treatment of bad rows: stop, skip and count, or repair.
	Mode string `json:"mode" one:"strict skip fix"`
	// From and To cut a slice of the recorded time, which then begins at 0.
	From *yamldoc.Duration `json:"from"`
	To   *yamldoc.Duration `json:"to"`
	// WarmPrefix fills the prefix cache with the rows before from, without load.
	WarmPrefix bool `json:"warm_prefix"`
	// Classes keeps only the rows of these classes.
	Classes []string `json:"classes,omitempty"`
	// Dequantise spreads rows over the ticks of a coarse clock; auto does where half of the rows share a tick.
	Dequantise Toggle `json:"dequantise"`
	// Scale multiplies the load, by thinning below 1 and superposition above.
	Scale *float64 `json:"scale" range:"(0,1000]"`
	// Rate scales the trace to this mean rate, in requests per second. A trace without times gets Poisson arrivals.
	Rate *float64 `json:"rate" range:"(0,1000000]"`
	// Speedup divides all times.
	Speedup *float64 `json:"speedup" range:"(0,1000000]"`
	// Loop plays the trace this many times in sequence; the passes share no prefixes.
	Loop *int `json:"loop" range:"[1,1000000]"`
	// Limit ends the trace after this many rows.
	Limit *int `json:"limit" range:"[1,1000000000]"`
	// Cap is the treatment of requests longer than max_model_len; null leaves them to the engine, which rejects
	// prompts and cuts outputs.
	Cap *string `json:"cap" one:"drop truncate-input truncate-output"`
	// ZeroOutput is the treatment of rows without output; null leaves them to the mode.
	ZeroOutput *string `json:"zero_output" one:"drop one"`
	// MaxBadFraction is the share of bad rows above which mode skip stops; null is 0.01.
	MaxBadFraction *float64 `json:"max_bad_fraction" range:"(0,1]"`
	// BlockTokens is the number of tokens of a block id; null is the format's, such as 512 of Mooncake's.
	BlockTokens *int `json:"block_tokens" range:"[1,1048576]"`

	// Statistics sums the trace up, in results.
	Statistics *TraceStatistics `json:"statistics,omitempty" resolved:"only"`
}

// TraceStatistics sums a trace up, after slicing and before scaling.
type TraceStatistics struct {
	Rows             int64    `json:"rows"`
	Requests         int64    `json:"requests"` // More than rows where a row is a session
	SpanS            float64  `json:"span_s"`
	RequestsPerS     float64  `json:"requests_per_s"`
	MeanInputTokens  float64  `json:"mean_input_tokens"`
	MeanOutputTokens float64  `json:"mean_output_tokens"`
	Sessions         int32    `json:"sessions"`
	Applied          []string `json:"applied"` // what was done to it, in order

	SHA256  string               `json:"sha256,omitempty"`  // of the file, if it was read to its end
	Dropped map[trace.Code]int64 `json:"dropped,omitempty"` // rows by the rule that they break
	Fixed   map[trace.Code]int64 `json:"fixed,omitempty"`   // rows that were mended
	Noted   map[trace.Code]int64 `json:"noted,omitempty"`   // rows that look odd
}

func (t *Trace) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	if t.File == "" && n.Get("file") == nil {
		d.Fault(n.At, key, "file is missing", "")
	}
	if t.Scale != nil && t.Rate != nil {
		d.Fault(n.Get("rate").At, yamldoc.Join(key, "rate"), "rate and scale are given together (want one)", "")
	}
	if t.From != nil && t.To != nil && *t.From >= *t.To {
		d.Refuse(n.Get("to"), yamldoc.Join(key, "to"), "more than from, "+t.From.String())
	}
	if t.Format == "" {
		t.Format = "auto"
	}
	if t.Mode == "" {
		t.Mode = "strict"
	}
}

// besideTrace are the keys that cannot stand beside a trace.
var besideTrace = []string{"preset", "arrivals", "input", "output", "prefix", "sessions", "classes", "headcount"}

func (w *Workload) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	checkSessions(d, n, key, w.Sessions, w.Input, w.Prefix)
	if w.Headcount != nil {
		for _, other := range []string{"preset", "input", "output", "prefix", "sessions", "classes"} {
			if v := n.Get(other); v != nil && v.Kind != yamldoc.Null {
				d.Fault(v.At, yamldoc.Join(key, other),
					other+" and headcount are given together (want one: headcount.classes name the presets)", "")
			}
		}
	}
	names := map[string]bool{}
	for i, c := range w.Classes {
		if names[c.Name] && c.Name != "" {
			d.Fault(n.Get("classes").Items[i].At, yamldoc.Join(key, fmt.Sprintf("classes.%d.name", i)),
				fmt.Sprintf("%q is the name of an earlier class (want another)", c.Name), "")
		}
		names[c.Name] = true
	}
	if w.Classes != nil && len(w.Classes) == 0 {
		d.Fault(n.Get("classes").At, yamldoc.Join(key, "classes"), "the list is empty (want one class or more)", "")
	}
	if w.Trace == nil {
		return
	}
	for _, other := range besideTrace {
		if v := n.Get(other); v != nil && v.Kind != yamldoc.Null {
			d.Fault(v.At, yamldoc.Join(key, other),
				other+" and trace are given together (want one: a trace brings its own)", "")
		}
	}
}
