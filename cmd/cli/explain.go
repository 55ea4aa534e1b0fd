package cli

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/model"
	"clifftop/report"
	"clifftop/report/layout"
)

type explainCommand struct {
	scenario scenarioFlags
	output   console.OutputFlags
	decode   int
	context  int64
	prefill  []string
}

func newExplain() *cobra.Command {
	var e explainCommand
	c := &cobra.Command{
		Use:   "explain [SCENARIO]",
		Short: "Show where the time of one iteration goes",
		Long: `Show the time of each operation in one iteration, what limits the operation, and the position of the
iteration on the GPU's roofline. The batch consists of --decode sequences with --context tokens each, and of
prefill chunks.`,
		Example: `  clifftop explain --decode 64 --context 2048
  clifftop explain --decode 32 --prefill 2048 --prefill 512+4096 --model llama-3.1-70b --tp 4`,
		Args: console.AtMostOne("scenario"),
		RunE: e.run,
	}
	e.scenario.register(c)
	e.output.RegisterFormat(c, "table", "json")
	flags := c.Flags()
	flags.IntVar(&e.decode, "decode", 0, "`N` sequences in decode (default 32, or 0 with --prefill)")
	flags.Int64Var(&e.context, "context", 1024, "`C` tokens of context per decode sequence")
	flags.StringArrayVar(&e.prefill, "prefill", nil, "a prefill chunk of `NEW[+CACHED]` tokens; repeatable")
	return c
}

func (e *explainCommand) run(c *cobra.Command, args []string) error {
	batch, err := e.batch()
	if err != nil {
		return err
	}
	setup, err := e.scenario.resolve(args)
	if err != nil {
		return err
	}
	explained, warnings, err := experiments.Explain(setup, batch)
	if err != nil {
		return err
	}
	if !e.output.HasWarnings() {
		e.output.Warn(c, warningTexts(warnings))
	}
	return console.Failed(e.output.Print(c, newExplanation(setup, batch, &explained, warnings)))
}

// batch returns the batch that the flags describe.
func (e *explainCommand) batch() (model.Batch, error) {
	var b model.Batch
	decode := e.decode
	if decode == 0 && len(e.prefill) == 0 {
		decode = 32
	}
	if decode < 0 || decode > 1<<20 {
		return b, fmt.Errorf("--decode: %d is not allowed (want 0 to %d)", decode, 1<<20)
	}
	if e.context < 1 || e.context > 1<<30 {
		return b, fmt.Errorf("--context: %d is not allowed (want 1 to %d)", e.context, 1<<30)
	}
	b.Decodes, b.Context, b.Emit = decode, int64(decode)*e.context, decode+len(e.prefill)
	for _, text := range e.prefill {
		chunk, ok := parseChunk(text)
		if !ok {
			return b, fmt.Errorf("--prefill: %q is not a chunk (want NEW or NEW+CACHED tokens, such as 512+4096)", text)
		}
		b.Chunks = append(b.Chunks, chunk)
	}
	return b, nil
}

func parseChunk(text string) (c model.Chunk, ok bool) {
	fresh, cached, given := strings.Cut(text, "+")
	n, err1 := strconv.ParseInt(fresh, 10, 32)
	m, err2 := int64(0), error(nil)
	if given {
		m, err2 = strconv.ParseInt(cached, 10, 32)
	}
	ok = err1 == nil && err2 == nil && n >= 1 && m >= 0 && n+m <= math.MaxInt32
	return model.Chunk{New: int32(n), Cached: int32(m)}, ok
}

// explanation is the result of explain, in the form of its JSON.
type explanation struct {
	Schema      string           `json:"schema"`
	Deployment  string           `json:"deployment"`
	Calibration string           `json:"calibration"`
	Batch       batchJSON        `json:"batch"`
	Ms          float64          `json:"ms"`
	FloorMs     float64          `json:"floor_ms"`
	MFU         float64          `json:"mfu"`
	MBU         float64          `json:"mbu"`
	Intensity   float64          `json:"flops_per_byte"`
	Ridge       float64          `json:"ridge_flops_per_byte"`
	TFLOPs      float64          `json:"tflops_per_gpu"`
	GB          float64          `json:"gb_per_gpu"`
	Parts       []explainPart    `json:"parts"`
	Warnings    []report.Warning `json:"warnings"`
}

type batchJSON struct {
	Decodes int       `json:"decodes"`
	Context int64     `json:"sum_context"`
	Prefill [][]int32 `json:"prefill_new_cached"`
	Tokens  int       `json:"tokens"`
	Graph   *int      `json:"cuda_graph_tokens"` // null if no graph is that large
}

type explainPart struct {
	Name    string  `json:"name"`
	Ms      float64 `json:"ms"`
	Share   float64 `json:"share"`
	BoundBy string  `json:"bound_by"`
	Source  string  `json:"constants"`
}

func newExplanation(setup *scenario.Setup, b model.Batch, e *model.Explanation,
	warnings []report.Warning) *explanation {
	x := &explanation{
		Schema:      "clifftop.explain/1",
		Deployment:  setup.Pools[0].Deployment.String(),
		Calibration: setup.Pools[0].Deployment.GPU.Calibrated.String(),
		Batch:       batchJSON{Decodes: b.Decodes, Context: b.Context, Prefill: [][]int32{}, Tokens: b.Decodes},
		Ms:          e.Seconds * 1e3,
		FloorMs:     e.Floor * 1e3,
		MFU:         e.MFU,
		MBU:         e.MBU,
		Intensity:   e.Intensity,
		Ridge:       e.Ridge,
		TFLOPs:      e.FLOPs / 1e12,
		GB:          e.Bytes / 1e9,
		Warnings:    append([]report.Warning{}, warnings...),
	}
	for _, c := range b.Chunks {
		x.Batch.Tokens += int(c.New)
		x.Batch.Prefill = append(x.Batch.Prefill, []int32{c.New, c.Cached})
	}
	if graph := experiments.GraphTokens(setup, x.Batch.Tokens); graph > 0 {
		x.Batch.Graph = &graph
	}
	for _, t := range e.Terms {
		x.Parts = append(x.Parts, explainPart{t.Name, t.Seconds * 1e3, t.Seconds / e.Seconds, string(t.BoundBy), t.Row})
	}
	return x
}

func (x *explanation) WriteTable(w io.Writer) error {
	fmt.Fprintf(w, "One iteration of %s\n%s\n", x.Deployment, &x.Batch)
	switch graph := x.Batch.Graph; {
	case graph == nil:
	case *graph == x.Batch.Tokens:
		fmt.Fprintf(w, "a CUDA graph of %d tokens\n", *graph)
	default:
		fmt.Fprintf(w, "%d tokens padded to a CUDA graph of %d\n", x.Batch.Tokens, *graph)
	}
	fmt.Fprintln(w)
	if err := x.writeParts(w); err != nil {
		return err
	}
	side := "below"
	if x.Intensity >= x.Ridge {
		side = "above"
	}
	text := &layout.Text{}
	text.Blank()
	text.Paragraph(fmt.Sprintf("%.0f FLOPs per byte, %s the GPU's ridge at %.0f; MFU %.0f %%, MBU %.0f %%; "+
		"lower bound of the step %.3f ms",
		x.Intensity, side, x.Ridge, 100*x.MFU, 100*x.MBU, x.FloorMs))
	for _, warning := range warningTexts(x.Warnings) {
		text.Paragraph("warning: " + warning)
	}
	_, err := text.WriteTo(w)
	return err
}

// String describes the batch in words.
func (b *batchJSON) String() string {
	var parts []string
	if b.Decodes > 0 {
		parts = append(parts, fmt.Sprintf("%d decodes with %d tokens of context in total", b.Decodes, b.Context))
	}
	for _, chunk := range b.Prefill {
		parts = append(parts, fmt.Sprintf("a prefill of %d tokens after %d cached", chunk[0], chunk[1]))
	}
	return strings.Join(parts, ", ")
}

// writeParts writes the table of operations.
func (x *explanation) writeParts(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "part\t        ms\tshare\tbound by\tconstants\n")
	for _, p := range x.Parts {
		fmt.Fprintf(t, "%s\t%10.3f\t%3.0f %%\t%s\t%s\n", p.Name, p.Ms, 100*p.Share, p.BoundBy, p.Source)
	}
	fmt.Fprintf(t, "sum\t%10.3f\t100 %%\n", x.Ms)
	return t.Flush()
}
