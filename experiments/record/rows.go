package record

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"clifftop/experiments/live/text"
	"clifftop/sim/clock"
	"clifftop/workload"
	"clifftop/workload/trace"
)

// Ways to count output tokens, in the column counted.
const (
	byUsage  = "usage"  // the server says it
	byChunks = "chunks" // one token for each chunk of the stream
	byText   = "text"   // the tokenizer counts the output
)

// heading stands above the header of a trace.
const heading = "# Recorded by clifftop record: lengths, times and salted hashes of prompts, no text.\n"

// maxRows is the number of later requests for which a row waits. A request that lasts longer has none.
const maxRows = 1 << 18

// rows writes the rows of a trace in order of arrival. A row waits until its request and all earlier ones have ended.
type rows struct {
	out    *bufio.Writer
	failed func(error) // may be nil
	broken bool

	template *text.Template
	tokens   text.Tokenizer
	exact    bool // tokens is the tokenizer of the model
	contents *contents

	waiting []*row
	first   int64 // number of waiting[0]

	line  bytes.Buffer // a row, or the header
	trace *trace.Writer
}

// row is a request with its outputs.
type row struct {
	request *request // nil if it could not be kept
	ended   *exchange
	outputs []*output // of each prompt, its choices
}

func newRows(o *Options) (*rows, error) {
	r := &rows{out: bufio.NewWriterSize(o.Out, 1<<16), failed: o.Failed, tokens: o.Tokenizer, exact: o.Tokenizer != nil}
	if !r.exact {
		r.tokens = text.Estimate{}
	}
	r.template = text.NewTemplate(r.tokens, 0)
	var err error
	if r.contents, err = newContents(o.Salt); err != nil {
		return nil, err
	}
	r.trace = trace.NewWriter(&r.line, trace.Columns{Cancel: true}, nil)
	if err := r.trace.Flush(); err != nil {
		return nil, err
	}
	r.put(heading + strings.TrimSuffix(r.line.String(), "\n") + "," + strings.Join(trace.RecordColumns(), ",") + "\n")
	return r, nil
}

// put writes text. The first error ends the trace.
func (r *rows) put(s string) {
	if r.broken {
		return
	}
	if _, err := r.out.WriteString(s); err != nil {
		r.fail(err)
	}
}

func (r *rows) fail(err error) {
	r.broken = true
	if r.failed != nil {
		r.failed(err)
	}
}

// flush hands what was written to the file.
func (r *rows) flush() {
	if r.broken || r.out.Buffered() == 0 {
		return
	}
	if err := r.out.Flush(); err != nil {
		r.fail(err)
	}
}

// close writes what is left. Requests that have not ended have no row.
func (r *rows) close() {
	for _, x := range r.waiting {
		r.write(x)
	}
	r.waiting = nil
	r.flush()
}

// arrive places the prompts of a request; nil has no row.
func (r *rows) arrive(number int64, q *request) {
	if len(r.waiting) == 0 {
		r.first = number
	}
	x := &row{request: q}
	r.waiting = append(r.waiting, x)
	if len(r.waiting) > maxRows {
		r.waiting[0].request = nil
		r.pop()
	}
	if q == nil || r.broken {
		return
	}
	for i := range q.prompts {
		tokens := q.prompts[i].tokens(r.template)
		for range q.n {
			x.outputs = append(x.outputs, r.contents.place(tokens, q.session))
		}
		q.prompts[i] = prompt{} // the text is not needed any more
	}
}

// end completes a request, and reports whether it has rows.
func (r *rows) end(x *exchange) bool {
	i := x.number - r.first
	if i < 0 || i >= int64(len(r.waiting)) || r.waiting[i].request == nil {
		return false
	}
	w := r.waiting[i]
	w.ended = x
	has := r.complete(w)
	for len(r.waiting) > 0 && (r.waiting[0].ended != nil || r.waiting[0].request == nil) {
		r.pop()
	}
	return has && !r.broken
}

// pop writes the first row.
func (r *rows) pop() {
	r.write(r.waiting[0])
	r.waiting[0] = nil
	r.waiting = r.waiting[1:]
	r.first++
}

// complete counts the tokens of a request that has ended.
func (r *rows) complete(w *row) (has bool) {
	x, n := w.ended, len(w.outputs)
	input, output := r.counts(x, n, w.request.n)
	for i, o := range w.outputs {
		var c choice
		if i < len(x.answer.choices) {
			c = x.answer.choices[i]
		}
		o.chunks = c.chunks
		o.received, o.counted = output(i)
		o.asked = o.received
		switch x.outcome() {
		case cancelled: // the request asked for more than it got
			o.asked = max(w.request.most, o.received+1)
		case rejected, failed:
			o.asked = 0
		}
		var tokens []uint32
		if x.outcome() != rejected {
			tokens = r.tokens.Encode(string(c.text))
		}
		r.contents.ended(o, input(i), tokens)
		has = has || o.input > 0
	}
	x.answer.choices = nil
	return has
}

// counts returns the number of tokens of each prompt, 0 if it is unknown, and of each output.
func (r *rows) counts(x *exchange, outputs, n int) (input func(int) int, output func(int) (int, string)) {
	a := &x.answer
	one := func(i int) (int, string) {
		switch {
		case i >= len(a.choices):
			return 0, byText
		case a.stream && !r.exact:
			return len(a.choices[i].chunks), byChunks
		}
		return r.tokens.Count(string(a.choices[i].text)), byText
	}
	if len(a.choices) > 0 && a.choices[0].sglang.Prompt > 0 {
		return func(i int) int {
				if i < len(a.choices) {
					return a.choices[i].sglang.Prompt
				}
				return 0
			}, func(i int) (int, string) {
				if i < len(a.choices) {
					return a.choices[i].sglang.Completion, byUsage
				}
				return 0, byUsage
			}
	}
	if a.usage == nil {
		return func(int) int { return 0 }, one
	}
	// The usage is a sum: over the prompts, and over all outputs.
	prompts := max(1, outputs/max(1, n))
	input = func(int) int {
		if prompts > 1 {
			return 0 // the tokenizer distinguishes them
		}
		return a.usage.Prompt
	}
	total := 0
	for i := range outputs {
		c, _ := one(i)
		total += c
	}
	output = func(i int) (int, string) {
		if outputs == 1 || total == 0 {
			return a.usage.Completion / max(1, outputs), byUsage
		}
		c, _ := one(i)
		return int(math.Round(float64(c) / float64(total) * float64(a.usage.Completion))), byUsage
	}
	return input, output
}

// write writes the rows of a request that has ended.
func (r *rows) write(w *row) {
	if r.broken || w.request == nil || w.ended == nil {
		return
	}
	for i, o := range w.outputs {
		if o.input == 0 {
			continue
		}
		q := workload.Request{
			Arrival: clock.Time(w.ended.at.Nanoseconds()) * clock.Time(clock.Nanosecond), Priority: w.request.priority,
			InputTokens: int32(min(o.input, workload.MaxTokens)), OutputTokens: int32(min(o.asked, workload.MaxTokens)),
		}
		r.contents.number(o, &q)
		if w.ended.outcome() == cancelled {
			after := clock.Duration(w.ended.took.Nanoseconds()) * clock.Nanosecond
			q.Client = &workload.Client{Cancel: max(1, after)}
		}
		r.line.Reset()
		if err := r.trace.Write(&q); err == nil {
			err = r.trace.Flush()
			_ = err // a bytes.Buffer takes everything
		}
		line := strings.TrimSuffix(r.line.String(), "\n")
		r.put(line + "," + cells(w, o, i))
	}
}

// cells returns the columns of [trace.RecordColumns] of an output, and the end of the line.
func cells(w *row, o *output, i int) string {
	x := w.ended
	e2e, gaps := x.took, gaps(o.chunks)
	var first string
	if n := len(o.chunks); n > 0 && x.answer.stream {
		first, e2e = seconds(o.chunks[0]), o.chunks[n-1]
	}
	var cached string
	if d := x.answer.usage; i == 0 && d != nil && d.Details != nil {
		cached = strconv.Itoa(d.Details.Cached)
	}
	status := ""
	if x.status != 0 {
		status = strconv.Itoa(x.status)
	}
	record := append([]string{x.outcome(), status, strconv.Itoa(o.received), o.counted, first, seconds(e2e)}, gaps...)
	record = append(record, cached, clean(w.request.model))
	var b strings.Builder
	c := csv.NewWriter(&b)
	_ = c.Write(record) // a strings.Builder takes everything
	c.Flush()
	return b.String()
}

// gaps returns the mean, the median, the 99th percentile and the maximum of the times between chunks.
func gaps(chunks []time.Duration) []string {
	if len(chunks) < 2 {
		return []string{"", "", "", ""}
	}
	list := make([]time.Duration, len(chunks)-1)
	for i := range list {
		list[i] = chunks[i+1] - chunks[i]
	}
	slices.Sort(list)
	n := len(list)
	rank := func(p int) time.Duration { return list[(p*n+99)/100-1] }
	mean := (chunks[n] - chunks[0]) / time.Duration(n)
	return []string{seconds(mean), seconds(rank(50)), seconds(rank(99)), seconds(list[n-1])}
}

// seconds writes a duration with microseconds.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 6, 64) }

// maxName is the length of a model's name in a row, in bytes.
const maxName = 200

// clean makes a name fit a line.
func clean(name string) string {
	name = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(name, ""))
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "")
	}
	return name
}
