package collect

import (
	"io"
	"strconv"

	"clifftop/report/layout"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// RequestColumns is the header of requests.csv. Instants are in seconds since the start of the run and
// empty where they were not reached; client_first_s and client_last_s are as the client sees them.
// Latencies are in milliseconds; tpot_ms is empty for answers of one token. The reason is that of a rejection:
// busy, where a limit of the queue was reached, not_ready, where no replica took requests, or too_long, for what
// exceeds the model's context or the KV pool.
//
// output_tokens is the length of the output that the engine delivered, and asked_tokens what it has without an early end,
// such as that of a timeout. The class is its name; it is empty where the traffic has no classes.
//
// A row is an attempt. Those of one request have its number and sent_s, when the first was sent, from which ttft_ms and
// e2e_ms count; attempt numbers them from 0. The ending is how the attempt ended for the client, again whether another
// one follows, and retry_causes how the earlier ones ended. The replica is the number of the one that it was sent to,
// from 0 on.
const RequestColumns = "request,session,user,class,outcome,reason,arrival_s,queued_s,scheduled_s,first_token_s,last_token_s," +
	"client_first_s,client_last_s,released_s,input_tokens,cached_tokens,output_tokens,asked_tokens," +
	"recomputed_tokens,preemptions,queue_ms,ttft_ms,tpot_ms,e2e_ms,ending,again,retry_causes,attempt,sent_s,replica"

// endings are the names of what clients meet.
var endings = [...]string{
	workload.Answered: "answered", workload.TimedOutFirst: "ttft_timeout", workload.TimedOut: "timeout",
	workload.Cancelled: "cancelled", workload.RefusedBusy: "busy", workload.RefusedTooLong: "too_long",
	workload.Disconnected: "disconnected",
}

// A RequestWriter writes requests.csv, a row for each finished attempt in the order in which they end. Call
// [RequestWriter.Flush] at the end.
type RequestWriter struct {
	w       io.Writer
	buf     []byte
	err     error
	classes func(uint16) string
}

// NameClasses sets the names of classes, by their number.
func (w *RequestWriter) NameClasses(name func(class uint16) string) { w.classes = name }

const csvBuffer = 64 << 10

// NewRequestWriter starts the file with its header.
func NewRequestWriter(w io.Writer) *RequestWriter {
	buf := make([]byte, 0, csvBuffer+1024)
	return &RequestWriter{w: w, buf: append(append(buf, RequestColumns...), '\n')}
}

// Finished writes a row. Errors are kept for Flush.
func (w *RequestWriter) Finished(rec *event.Record) {
	r := &rec.Request
	first, sent := r.First()
	b := strconv.AppendInt(w.buf, first, 10)
	for _, n := range [...]int64{int64(r.Session), int64(r.User)} {
		b = strconv.AppendInt(append(b, ','), n, 10)
	}
	if b = append(b, ','); w.classes != nil {
		b = append(b, layout.CSVField(w.classes(r.Class))...)
	}
	b = append(append(b, ','), rec.Outcome.String()...)
	b = append(append(b, ','), [...]string{event.NotRefused: "", event.NeverFits: "too_long", event.Busy: "busy",
		event.NotReady: "not_ready"}[rec.Refusal]...)
	for _, at := range [...]clock.Time{
		r.Arrival, rec.Queued, rec.Scheduled, rec.FirstToken, rec.LastToken, rec.ClientFirst, rec.ClientLast,
		rec.Released,
	} {
		if b = append(b, ','); at != clock.Never {
			b = layout.AppendThousandths(b, int64(at), 9)
		}
	}
	for _, n := range [...]int32{
		r.InputTokens, rec.CachedTokens, rec.Tokens, r.OutputTokens, rec.RecomputedTokens, rec.Preemptions,
	} {
		b = strconv.AppendInt(append(b, ','), int64(n), 10)
	}
	between := func(from, to clock.Time, n int64) {
		if b = append(b, ','); from != clock.Never && to != clock.Never && n > 0 {
			b = layout.AppendThousandths(b, int64(to-from)/n, 6)
		}
	}
	between(rec.Queued, rec.Scheduled, 1)
	between(sent, rec.ClientFirst, 1)
	between(rec.ClientFirst, rec.ClientLast, int64(rec.Tokens)-1)
	between(sent, rec.ClientLast, 1)
	b = append(append(b, ','), endings[rec.Ending]...)
	b = strconv.AppendBool(append(b, ','), rec.Again)
	b = appendCauses(append(b, ','), r)
	b = strconv.AppendInt(append(b, ','), int64(r.Attempt()), 10)
	b = layout.AppendThousandths(append(b, ','), int64(sent), 9)
	if b = append(b, ','); rec.Replica >= 0 {
		b = strconv.AppendInt(b, int64(rec.Replica), 10)
	}
	w.buf = append(b, '\n')
	if len(w.buf) >= csvBuffer {
		w.write()
	}
}

// appendCauses appends how the earlier attempts of a request ended, joined by bars.
func appendCauses(b []byte, r *workload.Request) []byte {
	if r.Attempt() == 0 {
		return b
	}
	start := len(b)
	for e, name := range endings {
		if r.Client.Earlier.Has(workload.Ending(e)) {
			if len(b) > start {
				b = append(b, '|')
			}
			b = append(b, name...)
		}
	}
	return b
}

func (w *RequestWriter) write() {
	if w.err == nil {
		_, w.err = w.w.Write(w.buf)
	}
	w.buf = w.buf[:0]
}

// Flush writes what is left and returns the first error.
func (w *RequestWriter) Flush() error {
	w.write()
	return w.err
}
