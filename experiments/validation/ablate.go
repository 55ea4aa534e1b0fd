package validation

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/model"
	"clifftop/report/layout"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
)

// part is a part of the model of served runs that can be taken away, to see what it is worth. Nothing is
// fitted again.
type part struct {
	Name string
	// Without says what takes the part's place.
	Without string

	settings []scenario.Setting
	kernels  func(*model.KernelOptions)
	gpu      func(*model.GPU)
	formats  func(*model.Deployment)
	timer    func(model.StepTimer) model.StepTimer
	warm     bool
}

// ablated returns settings of keys, each followed by its value.
func ablated(pairs ...string) (list []scenario.Setting) {
	for pair := range slices.Chunk(pairs, 2) {
		list = append(list, scenario.Setting{Key: pair[0], Value: pair[1], Flag: "ablation"})
	}
	return list
}

// allParts are the parts, the most telling first.
func allParts() []part {
	return []part{
		{Name: "async loop", Without: "an iteration is composed when the one before it has ended",
			settings: ablated("engine.async_scheduling", "false")},
		{Name: "prefix cache", Without: "every prompt is computed in full",
			settings: ablated("engine.enable_prefix_caching", "false")},
		{Name: "shared KV read once", Without: "every sequence reads the blocks that it shares",
			timer: changing(func(b *model.Batch) { b.SharedTokens = 0 })},
		{Name: "decode attention p-norm", Without: "a sequence's own cost and the reading of its cache add up",
			kernels: func(o *model.KernelOptions) { o.AdditiveDecode = true }},
		{Name: "expert kernels apart", Without: "constants of tables that mix expert-parallel rows in (H100, H200), " +
			"and no padding of tiles", gpu: mixedExperts},
		{Name: "experts as served", Without: "the tables' Triton kernels for MXFP4 on Hopper, and their tiles on " +
			"Blackwell", kernels: func(o *model.KernelOptions) { o.Tables.MoE = true }},
		{Name: "attention in 16 bits", Without: "attention has the format of the other weights where experts are in " +
			"NVFP4", formats: func(d *model.Deployment) { d.AttentionDtype = d.Dtype }},
		{Name: "fused all-reduce", Without: "all-reduce and norm are kernels apart",
			kernels: func(o *model.KernelOptions) { o.FuseAllReduce = false }},
		{Name: "all-reduce by size", Without: "one latency and bandwidth of all-reduces for all sizes and engines, " +
			"and 3 us for fused ones", kernels: func(o *model.KernelOptions) { o.Tables.AllReduce = true }},
		{Name: "front end of vLLM 0.16", Without: "4.2 ms and 2.8 us per token in all releases",
			settings: ablated("overheads.frontend", "4.2ms", "overheads.frontend_per_token", "2.8us")},
		{Name: "unfused layer kernels", Without: "MiniMax's layers, recurrent layers under SGLang and sparse " +
			"attention under vLLM run the usual kernels alone",
			kernels: func(o *model.KernelOptions) { o.FuseLayerKernels = true }},
		{Name: "kinds of layers", Without: "recurrent layers are their matrix products alone, sparse and compressed " +
			"attention reads everything, and there is one residual stream",
			kernels: func(o *model.KernelOptions) { o.PlainLayers = true }},
		{Name: "expert imbalance", Without: "expert-parallel ranks are loaded alike",
			kernels: func(o *model.KernelOptions) { o.ExpertImbalance = 1 }},
		{Name: "dense products as served", Without: "the older tables' bandwidth (L40S), and their time per inner " +
			"element of NVFP4", kernels: func(o *model.KernelOptions) { o.Tables.GEMM = true }},
		{Name: "mixed attention as served", Without: "mixed tiles run at 0.8 of the prefill's rate (A100, L40S)",
			kernels: func(o *model.KernelOptions) { o.Tables.MixedAttention = true }},
		{Name: "sampler sort", Without: "sampling with top-p costs as greedy does",
			settings: ablated("workload.sampling", "greedy")},
		{Name: "streaming delay", Without: "clients see a token when its iteration ends",
			settings: ablated("overheads.stream_per_sequence", "0")},
		{Name: "front end", Without: "requests reach the engine when they are sent",
			settings: ablated("overheads.frontend", "0", "overheads.frontend_per_token", "0")},
		{Name: "front end per token", Without: "5.8 ms for every prompt, as one of 575 tokens has",
			settings: ablated("overheads.frontend", "5.8ms", "overheads.frontend_per_token", "0")},
		{Name: "overheads of served runs", Without: "0.6 ms an iteration and 3 us a sequence, as kernel tables had it",
			kernels: func(o *model.KernelOptions) {
				o.Overheads = &model.Overheads{Step: 600 * clock.Microsecond, Sequence: 3 * clock.Microsecond}
			}},
		{Name: "latent attention in fp8", Without: "multi-head latent attention multiplies in 16 bits (Blackwell)",
			gpu: func(g *model.GPU) { g.Kernels.Common.MLADecodeFP8 = 0 }},
		{Name: "latent attention with 32 heads", Without: "it reads as fast as with other numbers of heads (Blackwell)",
			gpu: func(g *model.GPU) { g.Kernels.Common.MLADecode32Heads = 0 }},
		{Name: "tokens of all ranks", Without: "other data-parallel ranks have as many tokens as this one",
			timer: changing(func(b *model.Batch) { b.GroupTokens, b.BusiestTokens = 0, 0 })},
		{Name: "padded ranks", Without: "vLLM before 0.17 pads data-parallel ranks only in CUDA graphs",
			kernels: func(o *model.KernelOptions) { o.PadRanks = false }},
		{Name: "exchange by kind", Without: "ranks exchange tokens with experts by a gather",
			settings: ablated("deployment.all2all_backend", "allgather_reducescatter")},
		{Name: "engine of pools", Without: "pools have the kernels, the host and the front end of vLLM",
			settings: ablated("engine.kernels", "auto")},
		{Name: "cold start", Without: "the experts' kernels are compiled before", warm: true},
		{Name: "unequal contexts", Without: "attention takes all contexts of a batch as equal (Blackwell)",
			kernels: func(o *model.KernelOptions) { o.EqualContexts = true }},
		{Name: "launches", Without: "the host launches kernels beyond CUDA graphs in no time",
			kernels: func(o *model.KernelOptions) { o.HostLaunches = false }},
		{Name: "graph padding", Without: "batches cost by their own size",
			kernels: func(o *model.KernelOptions) { o.PadGraphs, o.HostLaunches = false, false }},
		{Name: "routing dispersion", Without: "experts are all liked alike",
			kernels: func(o *model.KernelOptions) { o.RoutingDispersion = math.Inf(1) }},
	}
}

// changed is a timer of batches that are changed before.
type changed struct {
	model.StepTimer
	change func(*model.Batch)
}

// Span implements [model.StepTimer].
func (c changed) Span(b *model.Batch) (first, slope int64, n int) {
	other := *b
	c.change(&other)
	return c.StepTimer.Span(&other)
}

// changedPadder is changed for a timer that knows the cost of padding.
type changedPadder struct {
	model.Padder
	changed changed
}

// Span implements [model.StepTimer].
func (c changedPadder) Span(b *model.Batch) (first, slope int64, n int) { return c.changed.Span(b) }

func changing(change func(*model.Batch)) func(model.StepTimer) model.StepTimer {
	return func(t model.StepTimer) model.StepTimer {
		c := changed{t, change}
		if p, ok := t.(model.Padder); ok {
			return changedPadder{p, c}
		}
		return c
	}
}

// mixedExperts gives the experts the additive form, with the constants that were fitted over tables of expert-parallel
// and tensor-parallel runs together, where imbalance between ranks counts as slow kernels.
func mixedExperts(g *model.GPU) {
	type constants struct{ launch, memory, compute float64 }
	tables := map[string]map[model.Precision]constants{
		"h100-sxm": {model.BF16: {45.65e-6, 0.9885, 0.4815}, model.FP8: {44.62e-6, 0.9728, 0.2824},
			model.MXFP4: {56.88e-6, 0.8071, 0.3634}},
		"h200-sxm": {model.BF16: {47.76e-6, 1, 0.4901}, model.FP8: {44.07e-6, 0.9327, 0.2794},
			model.MXFP4: {55.5e-6, 0.5779, 0.3629}},
	}
	for precision, c := range tables[g.Name] {
		m := &g.Kernels.MoE[precision]
		m.Launch, m.Memory, m.Compute = c.launch, c.memory, c.compute
		m.TileRows, m.ShortK, m.Exponent = 0, 0, 1
	}
}

// without is the case less a part. Of runs in pools only the settings are taken away: their workers keep their timers.
func (c *Case) without(p part) (*Case, error) {
	t := *c
	if c.setup == nil || c.Refused != "" || c.Bad != "" {
		return &t, nil
	}
	if p.warm {
		t.cold = coldStart{}
		return &t, nil
	}
	s, err := c.scenario.With(p.settings...)
	if err != nil {
		return nil, err
	}
	u, err := c.resolved(s)
	if err != nil {
		return nil, err
	}
	t.setup = u.Staged(c.setup.Report.Stages)
	if c.Rows[0].Pools() {
		return &t, nil
	}
	timer := u.Pools[0].Config.Timer
	if p.kernels != nil || p.gpu != nil || p.formats != nil {
		d, o := *u.Pools[0].Deployment, u.Pools[0].KernelOptions()
		if p.formats != nil {
			p.formats(&d)
		}
		if p.gpu != nil {
			p.gpu(&d.GPU)
		}
		if p.kernels != nil {
			p.kernels(&o)
		}
		if timer, err = model.NewKernels(&d, o); err != nil {
			return nil, err
		}
	}
	if p.timer != nil {
		timer = p.timer(timer)
	}
	t.setup = t.setup.Configured(func(c *engine.Config) { c.Timer = timer })
	return &t, nil
}

// Ablation has the contribution of each part of the model: the errors over rows with all parts, and without one.
type Ablation struct {
	Schema    string    `json:"schema"`
	Clifftop  string    `json:"clifftop"`
	Reference string    `json:"reference"`
	Rows      int       `json:"rows"`
	Parts     []Removed `json:"parts"`
}

// Removed is one part taken away; the first of an ablation is none.
type Removed struct {
	Part    string   `json:"part"`
	Without string   `json:"without"`
	Errors  []Spread `json:"errors"` // over rows
}

// AblationSchema identifies the JSON form of an [Ablation].
const AblationSchema = "clifftop.ablation/1"

// OpenLoop keeps the rows that an ablation looks at where nothing else is said: of vLLM under an open loop that is
// not overloaded.
func OpenLoop(r *Row) bool { return r.Engine == "vllm" && !r.Closed() && !r.Overloaded() }

// Ablate simulates the cases as they are and with each part taken away, and sums up the rows that keep lets through.
func Ablate(ctx context.Context, ref *Reference, cases []*Case, keep func(*Row) bool, o Options) (*Ablation, error) {
	parts := slices.Concat([]part{{Name: "nothing"}}, allParts())
	a := &Ablation{Schema: AblationSchema, Clifftop: experiments.Version, Reference: ref.Name}
	progress := o.Progress
	for i, p := range parts {
		reduced := make([]*Case, len(cases))
		for k, c := range cases {
			var err error
			if reduced[k], err = c.without(p); err != nil {
				return nil, fmt.Errorf("%s without %s: %w", c.Rows[0].ID, p.Name, err)
			}
		}
		if progress != nil {
			o.Progress = func(done, total int) { progress(i*total+done, len(parts)*total) }
		}
		r, err := Run(ctx, ref, reduced, keep, o)
		if err != nil {
			return nil, err
		}
		var scored []*Result
		for k := range r.Rows {
			if r.Rows[k].Status == Scored {
				scored = append(scored, &r.Rows[k])
			}
		}
		a.Rows = max(a.Rows, len(scored))
		a.Parts = append(a.Parts, Removed{Part: p.Name, Without: p.Without, Errors: spreads(scored)})
	}
	return a, nil
}

// WriteTable writes the ablation for people.
func (a *Ablation) WriteTable(w io.Writer) error { return a.write(w, newLayout(false)) }

// WriteMarkdown writes the same table as Markdown.
func (a *Ablation) WriteMarkdown(w io.Writer) error { return a.write(w, newLayout(true)) }

func (a *Ablation) write(w io.Writer, t *layout.Text) error {
	t.Heading("Errors (rows: %d) with one part taken away and nothing fitted again: mean size / median in %%", a.Rows)
	grid := [][]string{summedHead("without")}
	for _, p := range a.Parts {
		line := []string{p.Part}
		for _, m := range summed {
			cell := "–"
			if s := of(p.Errors, m.metric); s != nil {
				cell = size(s.Mean) + " / " + size(s.Median)
			}
			line = append(line, cell)
		}
		grid = append(grid, line)
	}
	t.Table(grid, 1, 1)
	t.Heading("In place of the part")
	for _, p := range a.Parts {
		if p.Without != "" {
			t.Item("", p.Part+": "+p.Without)
		}
	}
	_, err := t.WriteTo(w)
	return err
}

// WriteCSV writes a row for each part and metric.
func (a *Ablation) WriteCSV(w io.Writer) error {
	rows := [][]string{{"part", "metric", "rows", "median", "mean", "bias"}}
	for _, p := range a.Parts {
		for _, s := range p.Errors {
			rows = append(rows, []string{p.Part, s.Metric, fmt.Sprint(s.N), exact(s.Median), exact(s.Mean),
				exact(s.Bias)})
		}
	}
	return writeCSV(w, rows)
}
