package export

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"clifftop/report/layout"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// Detailed keeps what `vllm bench serve --save-detailed` writes of each request, under the keys of
// vllm/benchmarks/serve.py as of vLLM 0.13. A request that is sent more than once counts once, from its first attempt.
//
// Gaps are measured between the iterations of the GPU; the summary has the gaps between the chunks that clients get.
// They differ by little unless the front end merges tokens. Times are measured at the client. Gaps are kept up to a
// limit, since there is one for each token: the lists of requests that end after it was reached are empty, and
// [Detailed.Cut] counts them.
type Detailed struct {
	limit    int // of gaps
	gaps     int
	cut      int
	requests []detail
	open     map[int64]*outputs // by attempt
}

var _ event.StepObserver = (*Detailed)(nil)

// DetailedGaps is the number of gaps between outputs that are kept: 80 MB of memory, and 110 MB of the file.
const DetailedGaps = 10_000_000

// NewDetailed keeps at most so many gaps; 0 is [DetailedGaps].
func NewDetailed(gaps int) *Detailed {
	if gaps == 0 {
		gaps = DetailedGaps
	}
	return &Detailed{limit: gaps, open: map[int64]*outputs{}}
}

type detail struct {
	id            int64
	sent          clock.Time
	ttft, latency clock.Duration // zero for failures, as vLLM has them
	input, output int32
	failure       string
	gaps          []int64 // nanoseconds
}

// outputs are the output tokens of an attempt so far.
type outputs struct {
	last clock.Time
	gaps []int64
}

// Arrived begins to follow an attempt.
func (d *Detailed) Arrived(_ clock.Time, r *workload.Request) {
	d.open[r.ID] = &outputs{last: clock.Never}
}

// Step notes which sequences have an output at the iteration's end.
func (d *Detailed) Step(s *event.Step) {
	end := s.Span.End(s.Span.N)
	for k := range s.Scheduled {
		share := &s.Scheduled[k]
		o := d.open[share.Request]
		if o == nil || !share.Emits {
			continue
		}
		if o.last != clock.Never {
			o.gaps = append(o.gaps, nanos(end)-nanos(o.last))
		}
		o.last = end
	}
}

// Finished keeps a request that will not be sent again.
func (d *Detailed) Finished(rec *event.Record) {
	o := d.open[rec.Request.ID]
	delete(d.open, rec.Request.ID)
	if rec.Again {
		return
	}
	id, sent := rec.Request.First()
	r := detail{id: id, sent: sent, input: rec.Request.InputTokens}
	if rec.Outcome != event.Completed {
		r.failure = rec.Outcome.String()
	} else {
		if o != nil && len(o.gaps) > 0 && o.last > rec.LastToken {
			o.gaps = o.gaps[:len(o.gaps)-1] // the token of an iteration that was composed before the end was known
		}
		r.ttft, r.latency, r.output = rec.ClientFirst.Sub(sent), rec.ClientLast.Sub(sent), rec.Tokens
		switch {
		case o == nil:
		case d.gaps+len(o.gaps) > d.limit:
			d.cut++
		default:
			r.gaps = o.gaps
			d.gaps += len(o.gaps)
		}
	}
	d.requests = append(d.requests, r)
}

// Cut is the number of requests whose gaps were left out because there were too many.
func (d *Detailed) Cut() int { return d.cut }

// Write writes the result: the summary's keys in their order, then the lists, a line for each key.
func (d *Detailed) Write(w io.Writer, summary map[string]any) error {
	slices.SortFunc(d.requests, func(a, b detail) int { return cmp.Compare(a.id, b.id) })
	j := &jsonLines{w: w, b: []byte("{")}
	for _, key := range slices.Sorted(maps.Keys(summary)) {
		data, err := json.Marshal(summary[key])
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		j.key(key)
		j.b = append(j.b, layout.Lines(string(data))...)
	}
	if d.cut > 0 {
		j.key("clifftop_note")
		j.b = append(j.b, fmt.Sprintf(`"itls: the lists of %d requests are empty: %d gaps are kept"`, d.cut, d.gaps)...)
	}
	seconds := func(b []byte, t clock.Duration) []byte { return layout.AppendThousandths(b, int64(t), 9) }
	for _, list := range []struct {
		key  string
		each func(b []byte, r *detail) []byte
	}{
		{"input_lens", func(b []byte, r *detail) []byte { return strconv.AppendInt(b, int64(r.input), 10) }},
		{"output_lens", func(b []byte, r *detail) []byte { return strconv.AppendInt(b, int64(r.output), 10) }},
		{"ttfts", func(b []byte, r *detail) []byte { return seconds(b, r.ttft) }},
		{"itls", appendGaps},
		{"latencies", func(b []byte, r *detail) []byte { return seconds(b, r.latency) }},
		{"start_times", func(b []byte, r *detail) []byte { return seconds(b, clock.Duration(r.sent)) }},
		{"queue_times", func(b []byte, r *detail) []byte { return append(b, "0.0"...) }},
		{"generated_texts", func(b []byte, r *detail) []byte { return append(b, `""`...) }},
		{"errors", func(b []byte, r *detail) []byte { return append(append(append(b, '"'), r.failure...), '"') }},
	} {
		j.key(list.key)
		j.b = append(j.b, '[')
		for i := range d.requests {
			if i > 0 {
				j.b = append(j.b, ',', ' ')
			}
			j.b = list.each(j.b, &d.requests[i])
			j.full()
		}
		j.b = append(j.b, ']')
	}
	j.b = append(j.b, "\n}\n"...)
	j.flush()
	return j.err
}

// appendGaps appends the gaps of a request in seconds.
func appendGaps(b []byte, r *detail) []byte {
	b = append(b, '[')
	for i, gap := range r.gaps {
		if i > 0 {
			b = append(b, ',')
		}
		b = layout.AppendThousandths(b, gap*1000, 9)
	}
	return append(b, ']')
}

// jsonLines writes the members of an object.
type jsonLines struct {
	w   io.Writer
	b   []byte
	n   int
	err error
}

func (j *jsonLines) key(name string) {
	if j.n++; j.n > 1 {
		j.b = append(j.b, ',')
	}
	j.b = append(append(append(j.b, "\n\""...), name...), `": `...)
}

func (j *jsonLines) full() {
	if len(j.b) >= eventBuffer {
		j.flush()
	}
}

func (j *jsonLines) flush() {
	if j.err == nil {
		_, j.err = j.w.Write(j.b)
	}
	j.b = j.b[:0]
}
