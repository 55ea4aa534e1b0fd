package scenario

import (
	"encoding/json"
	"fmt"
	"slices"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/pattern"
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

// Arrivals is a sequence of stages. A map in the scenario is one stage without an end.
type Arrivals struct {
	Stages []Stage
	Listed bool
}

// MarshalJSON writes the map or the list.
func (a Arrivals) MarshalJSON() ([]byte, error) {
	if !a.Listed && len(a.Stages) == 1 {
		return json.Marshal(a.Stages[0])
	}
	return json.Marshal(a.Stages)
}

func (a *Arrivals) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	*a = Arrivals{}
	if n.Kind != yamldoc.List {
		if n.Kind != yamldoc.Map {
			d.Wrong(n, key, "a map such as {process: poisson, rate: 8}, or a list of stages")
			return
		}
		a.Stages = make([]Stage, 1)
		d.Value(n, key, &a.Stages[0], "")
		for _, only := range []string{"name", "duration"} {
			if m := n.Get(only); m != nil {
				d.Fault(m.At, yamldoc.Join(key, only), "this key is allowed in a list of phases only", "")
			}
		}
		return
	}
	a.Listed = true
	d.Value(n, key, &a.Stages, "")
	if len(n.Items) == 0 {
		d.Fault(n.At, key, "the list is empty (want one phase or more)", "")
	}
	for i, item := range n.Items {
		last := i == len(n.Items)-1
		if item.Kind == yamldoc.Map && item.Get("duration") == nil && !last {
			d.Fault(item.At, yamldoc.Join(key, fmt.Sprint(i)),
				"duration is missing (only the last phase may have no end)", "")
		}
		if p := a.Stages[i].Process; len(n.Items) > 1 && (p == "closed" || p == "all-at-once") {
			d.Fault(item.At, yamldoc.Join(key, fmt.Sprint(i)),
				p+" cannot be one of several phases (want a process with a rate)", "")
		}
	}
}

// Stage is an arrival process and how long it lasts.
type Stage struct {
	// Name labels the phase in results.
	Name string `json:"name,omitempty"`
	// Duration is the length of the phase.
	Duration *yamldoc.Duration `json:"duration,omitempty" range:"(0,)"`
	// Process is the arrival process. The default is closed if users are given, otherwise the preset's, or poisson
	// if the preset has no rate.
	Process string `json:"process,omitempty" one:"constant poisson gamma weibull all-at-once closed on-off cox profile superposed"`
	// Rate is the mean, in requests per second.
	Rate *float64 `json:"rate,omitempty" range:"(0,10000000]"`
	// CV is the coefficient of variation of the gaps between arrivals: of gamma, and within the bursts of on-off,
	// where it is 1 when left out.
	CV *float64 `json:"cv,omitempty" range:"[0.01,100]"`
	// Shape is that of the Weibull law of gaps.
	Shape *float64 `json:"shape,omitempty" range:"[0.1,100]"`
	// Users is the number of clients in a closed loop; each sends its next request after the response to the last
	// one.
	Users *int `json:"users,omitempty" range:"[1,10000000]"`
	// ThinkTime is how long a user waits before the next request.
	ThinkTime *ThinkTime `json:"think_time,omitempty"`
	// Ramp spreads the users' first requests over this time.
	Ramp *yamldoc.Duration `json:"ramp,omitempty"`
	// OnMean and OffMean are the mean lengths of bursts and of the pauses between them.
	OnMean  *yamldoc.Duration `json:"on_mean,omitempty" range:"(0,)"`
	OffMean *yamldoc.Duration `json:"off_mean,omitempty" range:"(0,)"`
	// Sigma is the standard deviation of the logarithm of the rate.
	Sigma *float64 `json:"sigma,omitempty" range:"(0,5]"`
	// Rho is the correlation of the logarithm of the rate from one step to the next.
	Rho *float64 `json:"rho,omitempty" range:"[0,1)"`
	// Step is how long the rate stays the same.
	Step *yamldoc.Duration `json:"step,omitempty" range:"(0,)"`
	// MeanOver is the time over which the rate of cox is the mean: each run, each hour, or the long run (process).
	MeanOver string `json:"mean_over,omitempty" one:"run hour process"`
	// Hourly is the rate over a day or a week relative to its mean: the name of a profile, or 24 or 168 relative
	// rates, starting at midnight or on Monday.
	Hourly *Hourly `json:"hourly,omitempty"`
	// Begin is the time of that day or week at which the traffic starts.
	Begin *yamldoc.Duration `json:"begin,omitempty" range:"[0,)"`
	// Sources is the number of clients of superposed, each with its own rate and burstiness.
	Sources *int `json:"sources,omitempty" range:"[11,100000]"`
	// TopShare and Top10Share are the parts of the requests that come from the first client, and from the first ten.
	TopShare   *float64 `json:"top_share,omitempty" range:"(0,1)"`
	Top10Share *float64 `json:"top10_share,omitempty" range:"(0,1)"`
	// SourceCV are quantiles of the coefficient of variation of the clients' gaps, weighted by requests: at 0.05, 0.25,
	// 0.5, 0.75 and 0.95.
	SourceCV []float64 `json:"source_cv,omitempty" range:"[0.05,100]"`
}

func (s *Stage) Variants() (string, map[string]yamldoc.VariantKeys) {
	rate := []string{"rate"}
	return "process", map[string]yamldoc.VariantKeys{
		"":            {Optional: []string{"process", "rate", "mean_over", "users", "think_time", "ramp"}},
		"constant":    {Required: rate},
		"poisson":     {Required: rate},
		"gamma":       {Required: []string{"rate", "cv"}},
		"weibull":     {Required: []string{"rate", "shape"}},
		"all-at-once": {},
		"closed":      {Required: []string{"users"}, Optional: []string{"think_time", "ramp"}},
		"on-off":      {Required: []string{"rate", "on_mean", "off_mean"}, Optional: []string{"cv"}},
		"cox":         {Required: []string{"rate", "sigma", "rho", "step"}, Optional: []string{"mean_over"}},
		"profile":     {Required: []string{"rate", "hourly"}, Optional: []string{"begin"}},
		"superposed":  {Required: []string{"rate", "sources", "top_share", "top10_share", "source_cv"}},
		"*":           {Optional: []string{"name", "duration"}},
	}
}

func (s *Stage) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	if s.Users != nil && s.Rate != nil && n.Get("process") == nil {
		d.Fault(n.Get("users").At, yamldoc.Join(key, "users"),
			"users and rate are given together (want one: users make a closed loop, a rate an open one)", "")
	}
	if s.Process == "" && s.Users != nil {
		s.Process = "closed"
	}
	if s.Process == "" && s.Users == nil && (s.ThinkTime != nil || s.Ramp != nil) {
		d.Fault(n.At, key, "users is missing (a closed loop needs it)", "")
	}
}

// Distribution is a law of lengths in tokens. Draws are clipped to Min and Max and rounded to at
// least 1. A number alone is a fixed length.
type Distribution struct {
	// Weight is the share of this law in a mixture.
	Weight *float64 `json:"weight,omitempty" range:"(0,)"`
	// Law names the distribution.
	Law string `json:"distribution" one:"fixed uniform lognormal gamma weibull geometric log-series mixture quantiles"`
	// Value is the one length of the fixed law.
	Value *int `json:"value,omitempty" range:"[1,536870912]"`
	// Mean is the mean before clipping.
	Mean *float64 `json:"mean,omitempty" range:"(0,536870912]"`
	// CV is the coefficient of variation before clipping.
	CV *float64 `json:"cv,omitempty" range:"(0,100]"`
	// Mu and Sigma are the mean and standard deviation of the logarithm.
	Mu    *float64 `json:"mu,omitempty" range:"[-20,20]"`
	Sigma *float64 `json:"sigma,omitempty" range:"(0,10]"`
	// Shape is that of the Weibull law.
	Shape *float64 `json:"shape,omitempty" range:"[0.1,100]"`
	// Parts are the laws of a mixture, each with its weight.
	Parts []Distribution `json:"parts,omitempty"`
	// P and Q are probabilities from 0 to 1 and the quantiles at them.
	P []float64 `json:"p,omitempty" range:"[0,1]"`
	Q []float64 `json:"q,omitempty" range:"[0,536870912]"`
	// Min and Max clip the draws.
	Min *int `json:"min,omitempty" range:"[1,536870912]"`
	Max *int `json:"max,omitempty" range:"[1,536870912]"`
}

func (l *Distribution) Variants() (string, map[string]yamldoc.VariantKeys) {
	return "distribution", map[string]yamldoc.VariantKeys{
		"":           {Optional: []string{"distribution"}},
		"fixed":      {Required: []string{"value"}},
		"uniform":    {Required: []string{"min", "max"}},
		"lognormal":  {Optional: []string{"mean", "cv", "mu", "sigma"}},
		"gamma":      {Required: []string{"mean", "cv"}},
		"weibull":    {Required: []string{"mean", "shape"}},
		"geometric":  {Required: []string{"mean"}},
		"log-series": {Required: []string{"mean"}},
		"mixture":    {Required: []string{"parts"}},
		"quantiles":  {Required: []string{"p", "q"}},
		"*":          {Optional: []string{"min", "max", "weight"}},
	}
}

// partOfMixture matches the key of a part of a mixture.
var partOfMixture = pattern.New(`\.parts\.\d+$`)

func (l *Distribution) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	if l.Law == "" {
		if n.Get("distribution") == nil {
			d.Fault(n.At, key, "distribution is missing (want fixed, uniform, lognormal, gamma, weibull, geometric, "+
				"log-series, mixture or quantiles)", "")
		}
		return
	}
	if w := n.Get("weight"); w != nil && w.Kind != yamldoc.Null && !partOfMixture.Get().MatchString(key) {
		d.Fault(w.At, yamldoc.Join(key, "weight"), "weight is for the parts of a mixture (want none here)", "")
	}
	if l.Min != nil && l.Max != nil && *l.Min > *l.Max {
		d.Refuse(n.Get("max"), yamldoc.Join(key, "max"), fmt.Sprintf("min, %d, or more", *l.Min))
	}
	byMean, byLog := l.Mean != nil && l.CV != nil, l.Mu != nil && l.Sigma != nil
	switch {
	case l.Law == "lognormal" && (byMean == byLog || (l.Mean != nil || l.CV != nil) && (l.Mu != nil || l.Sigma != nil)):
		d.Fault(n.At, key, "lognormal needs mean and cv, or mu and sigma", "")
	case l.Law == "quantiles" && l.P != nil && l.Q != nil:
		l.checkQuantiles(d, n, key)
	case l.Law == "mixture" && l.Parts != nil:
		for i, part := range n.Get("parts").Items {
			if part.Kind == yamldoc.Number || part.Kind == yamldoc.Map && part.Get("weight") == nil {
				d.Fault(part.At, yamldoc.Join(key, fmt.Sprintf("parts.%d", i)), "weight is missing", "")
			}
		}
		if len(l.Parts) == 0 {
			d.Fault(n.Get("parts").At, yamldoc.Join(key, "parts"), "the list is empty (want one part or more)", "")
		}
	}
}

func (l *Distribution) checkQuantiles(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	p, q := n.Get("p"), n.Get("q")
	switch {
	case len(l.P) != len(l.Q):
		d.Fault(q.At, yamldoc.Join(key, "q"),
			fmt.Sprintf("%d values for %d probabilities (want as many)", len(l.Q), len(l.P)), "")
	case len(l.P) < 2 || l.P[0] != 0 || l.P[len(l.P)-1] != 1 || !slices.IsSorted(l.P):
		d.Fault(p.At, yamldoc.Join(key, "p"), "the probabilities do not rise from 0 to 1", "")
	case !slices.IsSorted(l.Q):
		d.Fault(q.At, yamldoc.Join(key, "q"), "the quantiles do not rise", "")
	}
}

// Prefix makes prompts share their first tokens. By groups, prompt i of the run has identity i modulo
// Groups × PromptsPerGroup, and the prompts of a group lead with the same SharedTokens. By user, all prompts of
// a closed loop's user lead with the same SharedTokens, and go on with something new.
type Prefix struct {
	// By says which prompts share a prefix: those of a group, or those of each user of a closed loop.
	By string `json:"by,omitempty" one:"group user"`
	// Groups is the number of shared prefixes.
	Groups *int `json:"groups,omitempty" range:"[1,4194304]"`
	// PromptsPerGroup is the number of distinct prompts that share a prefix.
	PromptsPerGroup *int `json:"prompts_per_group,omitempty" range:"[1,4194304]"`
	// SharedTokens is the length of the prefix; it is a part of the prompt's length.
	SharedTokens int `json:"shared_tokens" range:"[0,536870912]"`
}

func (p *Prefix) Variants() (string, map[string]yamldoc.VariantKeys) {
	groups := []string{"groups", "prompts_per_group", "shared_tokens"}
	return "by", map[string]yamldoc.VariantKeys{
		"":      {Required: groups},
		"group": {Required: groups},
		"user":  {Required: []string{"shared_tokens"}},
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
