package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// form writes the responses of an endpoint.
type form interface {
	// open appends what a stream sends for a choice before its first chunk.
	open(b []byte, c *call, x *choice) []byte
	// chunk appends a chunk: the tokens from…x.done. The last one has the reason of the end.
	chunk(b []byte, c *call, x *choice, from int32) []byte
	// done appends what follows all chunks, without the end mark.
	done(b []byte, c *call) []byte
	// whole appends the response of a call that does not stream.
	whole(b []byte, c *call) []byte
}

// sse writes the events of a call.
type sse struct {
	c       *call
	w       http.ResponseWriter
	control *http.ResponseController
	buffer  []byte
	begun   bool      // the header has been sent
	renewed time.Time // when the deadline was set
}

// stream sends the outputs as server-sent events, each chunk when it is due.
func (c *call) stream(ctx context.Context, w http.ResponseWriter) error {
	o := &sse{c: c, w: w, control: http.NewResponseController(w), buffer: make([]byte, 0, 1<<10)}
	f := c.listen(ctx)
	n := o.first(ctx, f)
	for open := len(c.choices); ; n = f.next(ctx) {
		switch {
		case n.err == nil:
			o.add(n.of, n.chunk.Tokens)
			if n.of.done >= n.of.total {
				continue // the end comes with the last token
			}
		case errors.Is(n.err, io.EOF):
			n.of.close()
			o.last(n.of)
			open--
		default:
			return o.fail(n)
		}
		if open > 0 && len(o.buffer) < maxBuffered && f.more() {
			continue
		}
		if open == 0 {
			o.buffer = append(c.form.done(o.buffer, c), doneEvent...)
		}
		if err := o.flush(); err != nil || open == 0 {
			return err
		}
	}
}

// doneEvent ends a stream.
const doneEvent = "data: [DONE]\n\n"

// maxBuffered is the number of buffered bytes at which events are written although more are due.
const maxBuffered = 32 << 10

// first waits for the first news. If it takes long, the header is sent before it.
func (o *sse) first(ctx context.Context, f *feed) news {
	hold, cancel := context.WithTimeout(ctx, o.c.server.limits.Hold)
	n := f.next(hold)
	cancel()
	if n.err == nil || !errors.Is(n.err, context.DeadlineExceeded) || ctx.Err() != nil {
		return n
	}
	if o.flush() != nil {
		return news{err: context.Canceled}
	}
	return f.next(ctx)
}

// add appends the events of a chunk. The last chunk waits for the result of the request, which comes with it.
func (o *sse) add(x *choice, tokens int32) {
	from := x.done
	if from == 0 {
		o.buffer = o.c.form.open(o.buffer, o.c, x)
	}
	if x.done += tokens; x.done < x.total {
		o.buffer = o.c.form.chunk(o.buffer, o.c, x, from)
		return
	}
	x.last = from
}

// last appends the last chunk of a choice that has ended.
func (o *sse) last(x *choice) {
	if x.done < x.total { // cut at the context length of a pool
		x.last, x.total, x.reason = x.done, x.done, "length"
	}
	o.buffer = o.c.form.chunk(o.buffer, o.c, x, x.last)
}

// flush writes the events that were appended. A client that does not read them within the time limit is gone.
func (o *sse) flush() error {
	if !o.begun {
		o.begun = true
		o.c.label(o.w.Header())
		h := o.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		h.Set("X-Content-Type-Options", "nosniff")
		o.w.WriteHeader(http.StatusOK)
	}
	if now := time.Now(); now.Sub(o.renewed) > o.c.server.limits.WriteTimeout/4 {
		o.renewed = now
		_ = o.control.SetWriteDeadline(now.Add(o.c.server.limits.WriteTimeout)) // a writer of a test has none
	}
	if len(o.buffer) > 0 {
		if _, err := o.w.Write(o.buffer); err != nil {
			return errGone
		}
		o.buffer = o.buffer[:0]
	}
	if o.control.Flush() != nil {
		return errGone
	}
	return nil
}

// fail ends a stream whose request did not complete. Before the first chunk, the error is the response. After it, a
// rejection is an event, as in vLLM, and a failed replica cuts the connection.
func (o *sse) fail(n news) error {
	err := o.c.broken(n)
	var f *failure
	if !o.begun || !errors.As(err, &f) {
		return err
	}
	if f.status == http.StatusBadGateway {
		_ = o.flush() // what came before the failure
		return errCut
	}
	o.buffer = append(o.buffer, "data: "...)
	o.buffer = append(o.buffer, f.body()...)
	o.buffer = append(o.buffer, "\n\n"+doneEvent...)
	return o.flush()
}

// appendText appends the text of the tokens from…to of a choice, as the inside of a string of JSON.
func (s *Server) appendText(b []byte, x *choice, from, to int32) []byte {
	for k := from; k < to; k++ {
		_, piece := s.filler.Token(x.number, int(k))
		if keep := x.end.Text - x.bytes; keep < len(piece) {
			x.bytes += len(piece)
			piece = piece[:max(0, keep)]
		} else {
			x.bytes += len(piece)
		}
		b = appendEscaped(b, piece)
	}
	return b
}

// appendEscaped appends text as the inside of a string of JSON.
func appendEscaped(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(text) // a string has no error
			return append(b, quoted[1:len(quoted)-1]...)
		}
	}
	return append(b, text...)
}

func appendQuoted(b []byte, text string) []byte {
	return append(appendEscaped(append(b, '"'), text), '"')
}

func appendIDs(b []byte, ids []uint32) []byte {
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(id), 10)
	}
	return append(b, ']')
}

// appendReason appends the reason of the end, and the stop string.
func appendReason(b []byte, x *choice, over bool) []byte {
	if !over {
		return append(b, `"finish_reason":null,"stop_reason":null`...)
	}
	b = append(b, `"finish_reason":"`...)
	b = append(b, x.reason...)
	b = append(b, `","stop_reason":`...)
	if x.end.Stop == "" {
		return append(b, "null"...)
	}
	return appendQuoted(b, x.end.Stop)
}
