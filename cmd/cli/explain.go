package cli

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/model"
	"clifftop/report"
	"clifftop/report/layout"
)

// explainFlags are those of explain.
type explainFlags struct {
	scenario scenarioFlags
	output   outputFlags
	decode   int
	context  int64
	prefill  []string
}

func newExplain() *cobra.Command {
	var f explainFlags
	c := &cobra.Command{
		Use:   "explain [SCENARIO]",
		Short: "Show where the time of one iteration goes",
		Long: `Take the time of one iteration apart: what each operation takes, what bounds it, and where the
iteration stands on the GPU's roofline. The batch is given by --decode sequences with --context
tokens each, and by prefill chunks.`,
		Example: `  clifftop explain --decode 64 --context 2048
  clifftop explain --decode 32 --prefill 2048 --prefill 512+4096 --model llama-3.1-70b --tp 4`,
		Args: atMostOne("scenario"),
		RunE: f.run,
	}
	f.scenario.register(c)
	f.output.register(c, "table", "json")
	flags := c.Flags()
	flags.IntVar(&f.decode, "decode", 0, "`N` sequences that decode (default 32, or none beside --prefill)")
	flags.Int64Var(&f.context, "context", 1024, "`C` tokens of context of each of them")
	flags.StringArrayVar(&f.prefill, "prefill", nil, "a prefill chunk of `NEW[+CACHED]` tokens; may be repeated")
	return c
}

func (f *explainFlags) run(c *cobra.Command, args []string) error {
	if err := f.output.validate(); err != nil {
		return err
	}
	b, err := parseBatch(f.decode, f.context, f.prefill)
	if err != nil {
		return err
	}
	s, err := f.scenario.load(args)
	if err != nil {
		return err
	}
	setup, err := s.Resolve()
	if err != nil {
		return err
	}
	e, err := experiments.Explain(setup, b)
	if err != nil {
		return err
	}
	x := newExplanation(setup, b, e)
	if f.output.format == "json" {
		f.output.warn(c.ErrOrStderr(), texts(setup.Warnings)) // the table has them in it
		return failed(printJSON(c.OutOrStdout(), x))
	}
	return failed(x.print(c.OutOrStdout()))
}

// parseBatch makes the batch of the flags.
func parseBatch(decode int, context int64, prefill []string) (model.Batch, error) {
	var b model.Batch
	if decode == 0 && len(prefill) == 0 {
		decode = 32
	}
	if decode < 0 || decode > 1<<20 {
		return b, fmt.Errorf("--decode: %d is not allowed (want 0 to %d)", decode, 1<<20)
	}
	if context < 1 || context > 1<<30 {
		return b, fmt.Errorf("--context: %d is not allowed (want 1 to %d)", context, 1<<30)
	}
	b.Decodes, b.Context, b.Emit = decode, int64(decode)*context, decode+len(prefill)
	for _, p := range prefill {
		fresh, cached, given := strings.Cut(p, "+")
		n, err1 := strconv.ParseInt(fresh, 10, 32)
		m, err2 := int64(0), error(nil)
		if given {
			m, err2 = strconv.ParseInt(cached, 10, 32)
		}
		if err1 != nil || err2 != nil || n < 1 || m < 0 || n+m > math.MaxInt32 {
			return b, fmt.Errorf("--prefill: %q is not a chunk (want NEW or NEW+CACHED tokens, such as 512+4096)", p)
		}
		b.Chunks = append(b.Chunks, model.Chunk{New: int32(n), Cached: int32(m)})
	}
	return b, nil
}

// explanation is the JSON form.
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
	Graph   *int      `json:"cuda_graph_tokens"` // null where no graph holds so many
}

type explainPart struct {
	Name    string  `json:"name"`
	Ms      float64 `json:"ms"`
	Share   float64 `json:"share"`
	BoundBy string  `json:"bound_by"`
	Source  string  `json:"constants"`
}

func newExplanation(setup *scenario.Setup, b model.Batch, e *model.Explanation) *explanation {
	x := &explanation{
		Schema: "clifftop.explain/1", Deployment: setup.Deployment.String(), Calibration: setup.Deployment.GPU.Calibrated.String(),
		Batch: batchJSON{Decodes: b.Decodes, Context: b.Context, Prefill: [][]int32{}, Tokens: b.Decodes},
		Ms:    e.Seconds * 1e3, FloorMs: e.Floor * 1e3, MFU: e.MFU, MBU: e.MBU, Intensity: e.Intensity, Ridge: e.Ridge,
		TFLOPs: e.FLOPs / 1e12, GB: e.Bytes / 1e9,
		Warnings: append([]report.Warning{}, setup.Warnings...),
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

// print prints the explanation for people.
func (x *explanation) print(w io.Writer) error {
	fmt.Fprintf(w, "One iteration of %s\n%s\n", x.Deployment, &x.Batch)
	switch graph := x.Batch.Graph; {
	case graph == nil:
	case *graph == x.Batch.Tokens:
		fmt.Fprintf(w, "a CUDA graph of %d tokens\n", *graph)
	default:
		fmt.Fprintf(w, "%d tokens padded to a CUDA graph of %d\n", x.Batch.Tokens, *graph)
	}
	fmt.Fprintln(w)
	if err := x.printParts(w); err != nil {
		return err
	}
	side := "below"
	if x.Intensity >= x.Ridge {
		side = "above"
	}
	text := &layout.Text{}
	text.Blank()
	text.Paragraph(fmt.Sprintf("%.0f FLOPs per byte, %s the GPU's ridge at %.0f; MFU %.0f %%, MBU %.0f %%; no step can beat %.3f ms",
		x.Intensity, side, x.Ridge, 100*x.MFU, 100*x.MBU, x.FloorMs))
	for _, warning := range texts(x.Warnings) {
		text.Paragraph("warning: " + warning)
	}
	_, err := text.WriteTo(w)
	return err
}

// String tells the batch in words.
func (b *batchJSON) String() string {
	var parts []string
	if b.Decodes > 0 {
		parts = append(parts, fmt.Sprintf("%d decodes with %d tokens of context in all", b.Decodes, b.Context))
	}
	for _, chunk := range b.Prefill {
		parts = append(parts, fmt.Sprintf("a prefill of %d tokens onto %d", chunk[0], chunk[1]))
	}
	return strings.Join(parts, ", ")
}

// printParts prints the table of operations.
func (x *explanation) printParts(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "part\t        ms\tshare\tbound by\tconstants\n")
	for _, p := range x.Parts {
		fmt.Fprintf(t, "%s\t%10.3f\t%3.0f %%\t%s\t%s\n", p.Name, p.Ms, 100*p.Share, p.BoundBy, p.Source)
	}
	fmt.Fprintf(t, "sum\t%10.3f\t100 %%\n", x.Ms)
	return t.Flush()
}
