package export

import (
	"io"
	"strconv"

	"clifftop/report/layout"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// IterationColumns is the header of iterations.csv, which has a row for each iteration of each replica in the order in
// which they are scheduled. wait_ms is how long the GPU had stood idle before, 0 after a start of the replica; host_ms
// is the part of duration_ms in which it waits for the host. sequences counts the batch, decodes its sequences that
// decode, and context_tokens the tokens to which these attend. kv_blocks are in use after scheduling.
const IterationColumns = "replica,start_s,duration_ms,wait_ms,host_ms,sequences,decodes,first_tokens," +
	"prefill_tokens,recomputed_tokens,lost_tokens,drafts,accepted_drafts,output_tokens,context_tokens," +
	"padded_rows,swapped_blocks,preempted,kv_blocks"

// Iterations writes iterations.csv while a run goes on.
type Iterations struct {
	event.Ignore
	w   io.Writer
	buf []byte
	err error
}

var _ event.StepObserver = (*Iterations)(nil)

// NewIterations starts the file with its header. Call [Iterations.Flush] at the end.
func NewIterations(w io.Writer) *Iterations {
	return &Iterations{w: w, buf: append(make([]byte, 0, eventBuffer+1024), IterationColumns+"\n"...)}
}

// Step writes a row.
func (t *Iterations) Step(step *event.Step) {
	s := step.Span
	b := strconv.AppendInt(t.buf, int64(s.Replica), 10)
	b = layout.AppendThousandths(append(b, ','), int64(s.Start), 9)
	for _, femtos := range [...]int64{s.First, int64(s.Wait) * clock.FemtosPerPico, s.HostFemtos} {
		b = layout.AppendThousandths(append(b, ','), femtos/1000, 6)
	}
	for _, n := range [...]int{
		len(step.Scheduled), s.Decodes, s.FirstTokens, s.PrefillTokens, s.RecomputedTokens, s.LostTokens, s.Drafts,
		s.Accepted, s.Output(),
		int(s.Context), s.PaddedRows, s.SwappedBlocks, len(step.Preempted), s.UsedBlocks,
	} {
		b = strconv.AppendInt(append(b, ','), int64(n), 10)
	}
	if t.buf = append(b, '\n'); len(t.buf) >= eventBuffer {
		t.flush()
	}
}

func (t *Iterations) flush() {
	if t.err == nil {
		_, t.err = t.w.Write(t.buf)
	}
	t.buf = t.buf[:0]
}

// Flush writes what is left and returns the first error.
func (t *Iterations) Flush() error {
	t.flush()
	return t.err
}
