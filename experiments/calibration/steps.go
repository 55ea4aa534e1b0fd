package calibration

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"clifftop/experiments"
	"clifftop/model"
)

// Step is one measured iteration.
type Step struct {
	Line    int
	Batch   model.Batch
	Seconds float64
}

// stepColumns are the columns of measured iterations. The last is optional.
var stepColumns = []string{"decode_seqs", "sum_context", "prefill_tokens", "seconds", "prefill_cached"}

// stepSpread is how much measured iterations differ from what a few constants can explain, as a fraction.
const stepSpread = 0.04

// ReadSteps reads measured iterations from CSV: decode_seqs sequences decode with sum_context tokens before them
// together, beside a chunk of prefill_tokens (0 for none) that has prefill_cached tokens before it, in seconds.
func ReadSteps(name string, r io.Reader) ([]Step, error) {
	c := csv.NewReader(r)
	head, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: the header cannot be read (want columns decode_seqs, sum_context, prefill_tokens, seconds): %w", name, err)
	}
	at := map[string]int{}
	for i, h := range head {
		at[h] = i
	}
	for _, want := range stepColumns[:4] {
		if _, ok := at[want]; !ok {
			return nil, fmt.Errorf("%s:1: column %s is missing (want decode_seqs, sum_context, prefill_tokens, seconds)", name, want)
		}
	}
	var steps []Step
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		line, _ := c.FieldPos(0)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s := Step{Line: line}
		var v [5]float64
		for k, column := range stepColumns {
			i, ok := at[column]
			if !ok {
				continue
			}
			x, err := strconv.ParseFloat(row[i], 64)
			whole := column == "seconds" || x == math.Trunc(x)
			if err != nil || !(x >= 0 && x <= 1e9) || !whole {
				return nil, fmt.Errorf("%s:%d: %s is %q (want a number from 0 to 1e9, whole but for seconds)", name, line, column, row[i])
			}
			v[k] = x
		}
		decodes, context, chunk, cached := int(v[0]), int64(v[1]), int(v[2]), int(v[4])
		s.Batch = model.Batch{Decodes: decodes, Context: context, Emit: decodes}
		if chunk > 0 {
			s.Batch.Chunks = []model.Chunk{{New: int32(chunk), Cached: int32(cached)}}
			s.Batch.Emit++
		}
		if s.Seconds = v[3]; s.Seconds == 0 || decodes+chunk == 0 || context < int64(decodes) {
			return nil, fmt.Errorf("%s:%d: not an iteration that can be (want sequences or prompt tokens, a context of one token or more for each sequence, and a time above 0)", name, line)
		}
		steps = append(steps, s)
	}
	if len(steps) < 2 {
		return nil, fmt.Errorf("%s: %d iterations are too few (want two or more)", name, len(steps))
	}
	return steps, nil
}

// FitSteps fits constants to measured iterations of a scenario's deployment.
func FitSteps(ctx context.Context, name string, u *experiments.Setup, steps []Step, o Options) (*Result, error) {
	d := u.Deployment
	parameters, err := Choose(o.Fit, d.LLM.Experts > 0, false)
	if err != nil {
		return nil, err
	}
	p := &problem{parameters: parameters, progress: o.Progress}
	names := make([]string, len(steps))
	for i, s := range steps {
		p.observations = append(p.observations, observation{run: i, metric: "seconds", spread: stepSpread})
		names[i] = fmt.Sprintf("line %d", s.Line)
	}
	p.residuals = func(_ context.Context, x []float64) ([]float64, error) {
		own := *d
		record(d.GPU.Name, parameters, x, 0).Correct(&own.GPU)
		timer, err := model.NewKernels(&own, u.KernelOptions())
		if err != nil {
			return nil, err
		}
		list := make([]float64, len(steps))
		for i := range steps {
			first, _, _ := timer.Span(&steps[i].Batch)
			list[i] = math.Log(float64(first) / 1e15 / steps[i].Seconds)
		}
		return list, nil
	}
	f, err := p.solve(ctx)
	if err != nil {
		return nil, err
	}
	return p.result(f, d.GPU.Name, 0, names, fmt.Sprintf("%d iterations of %s", len(steps), name)), nil
}
