package traces

import (
	"context"
	"fmt"
	"io"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report/inspect"
	"clifftop/workload/trace"
)

// Inspect reads a trace and says what it is like: as it is recorded where load is nil, else after its rows
// were selected and its load changed. Prefixes are compared in blocks of so many tokens, 0 for the usual.
func Inspect(ctx context.Context, file *scenario.TraceFile, load *trace.Load, blockTokens int32) (*inspect.Result,
	error) {
	file.Interrupted = ctx.Err
	var rows trace.Reader
	var classes func() []string
	var changed *trace.Transformed
	if load == nil {
		f, err := file.Open()
		if err != nil {
			return nil, err
		}
		defer f.Close()
		rows, classes = f, f.Classes
	} else {
		var err error
		if changed, err = trace.Transform(file.Open, *load); err != nil {
			return nil, err
		}
		defer changed.Close()
		rows, classes = changed, changed.Classes
	}
	x, err := inspect.Trace(&interruptible{rows, ctx}, blockTokens, classes)
	if err != nil {
		return nil, err
	}
	x.Account(file.Last())
	x.Clifftop, x.SHA256 = experiments.Version, file.SHA256()
	if changed != nil {
		x.Applied = append(x.Applied, changed.Applied()...)
	}
	return x, nil
}

// Convert selects rows of a trace, changes their load, and writes them in Clifftop's own format, gzipped if asked for.
// Comments before the header name the source and the changes. It returns the number of rows written.
func Convert(ctx context.Context, w io.Writer, file *scenario.TraceFile, load trace.Load, zip bool) (rows int64,
	err error) {
	file.Interrupted = ctx.Err
	applied, err := appliedTo(ctx, file, load)
	if err != nil {
		return 0, err
	}
	changed, err := trace.Transform(file.Open, load)
	if err != nil {
		return 0, err
	}
	defer changed.Close()
	if applied == nil {
		applied = changed.Applied()
	}
	source := fmt.Sprintf("clifftop %s, from %s, format %s", experiments.Version, file.Path, file.Last().Format())
	if sum := file.SHA256(); sum != "" {
		source += ", sha256 " + sum
	}
	out, err := newTraceOutput(w, append([]string{source}, applied...), columnsOf(changed.Stats()), changed.Classes(),
		zip)
	if err != nil {
		return 0, err
	}
	in := interruptible{changed, ctx}
	for {
		r, err := in.Next()
		if err == io.EOF {
			return rows, out.Close()
		}
		if err == nil {
			err = out.WriteRow(&r)
		}
		if err != nil {
			return rows, err
		}
		rows++
	}
}

// columnsOf are the columns that rows so summed up need.
func columnsOf(s trace.Stats) trace.Columns {
	return trace.Columns{Full: !s.Plain, LoRA: s.Adapters > 0, Waits: s.Requests > s.Rows}
}

// appliedTo counts what a cap changes, which is known only at the end; it is nil where there is none.
func appliedTo(ctx context.Context, file *scenario.TraceFile, load trace.Load) ([]string, error) {
	if load.MaxTotal == 0 {
		return nil, nil
	}
	changed, err := trace.Transform(file.Open, load)
	if err != nil {
		return nil, err
	}
	defer changed.Close()
	in := interruptible{changed, ctx}
	for {
		if _, err := in.Next(); err == io.EOF {
			return changed.Applied(), nil
		} else if err != nil {
			return nil, err
		}
	}
}

// interruptible is a reader that ends with the context.
type interruptible struct {
	trace.Reader
	ctx context.Context
}

func (i *interruptible) Next() (trace.Row, error) {
	r, err := i.Reader.Next()
	const every = 1 << 12
	if err == nil && r.ID%every == 0 {
		err = i.ctx.Err()
	}
	return r, err
}
