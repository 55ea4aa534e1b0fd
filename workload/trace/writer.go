package trace

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// Writer writes requests in Clifftop's own format without loss: a reader gets the same arrivals, lengths, shared
// prefixes, sessions, classes, priorities and adapters; with [Columns], also replicas and cancellations. Call Flush at
// the end.
type Writer struct {
	w       *bufio.Writer
	classes []string
	columns Columns
	line    []byte
}

// Columns selects the columns of a trace in Clifftop's own format.
type Columns struct {
	// Full adds session, content, class and priority to arrival and lengths.
	Full bool
	// LoRA adds the number of the LoRA adapter. It implies Full.
	LoRA bool
	// Replica adds the replica that the client addresses, Cancel when it cancels. Each implies Full.
	Replica, Cancel bool
	// KV adds which KV is kept and loaded ([workload.Transfer]). It implies Replica.
	KV bool
	// Waits adds the wait of requests after the output of the previous one. It implies Full.
	Waits bool
}

// NewWriter writes the header. classes is the list that [workload.Request.Class] indexes.
func NewWriter(w io.Writer, c Columns, classes []string) *Writer {
	c.Replica = c.Replica || c.KV
	c.Full = c.Full || c.Waits || c.LoRA || c.Replica || c.Cancel
	t := &Writer{w: bufio.NewWriterSize(w, 64<<10), columns: c, classes: classes}
	names := nativeColumns[:len(nativeColumns):len(nativeColumns)]
	if c.Full {
		names = append(names, nativeExtras...)
	}
	if c.LoRA {
		names = append(names, loraColumn)
	}
	if c.Replica {
		names = append(names, replicaColumn)
	}
	if c.Cancel {
		names = append(names, cancelColumn)
	}
	if c.KV {
		names = append(names, kvColumn)
	}
	if c.Waits {
		names = append(names, waitColumn)
	}
	t.line = append(append(t.line, strings.Join(names, ",")...), '\n')
	t.w.Write(t.line) // bufio.Writer keeps the error
	return t
}

// Write writes a request. Requests must be written in order of arrival.
func (t *Writer) Write(r *workload.Request) error {
	t.line = appendSeconds(t.line[:0], r.Arrival)
	return t.request(r, noWait)
}

// WriteRow writes a row: its request and its follow-ups. It returns an error if the columns cannot hold the
// follow-ups.
func (t *Writer) WriteRow(r *Row) error {
	if len(r.Then) > 0 && (!t.columns.Waits || r.Session == 0) {
		return fmt.Errorf("request %d has follow-ups, which need a session and the column wait_s", r.ID)
	}
	if err := t.Write(&r.Request); err != nil {
		return err
	}
	for i := range r.Then {
		x := &r.Then[i]
		next := r.Request
		next.Turn += int32(i) + 1
		next.InputTokens, next.OutputTokens, next.Content = x.InputTokens, x.OutputTokens, x.Content
		t.line = t.line[:0]
		if err := t.request(&next, x.Wait); err != nil {
			return err
		}
	}
	return nil
}

// noWait is the wait of a request with an arrival.
const noWait = clock.Duration(-1)

// request writes the columns after the arrival.
func (t *Writer) request(r *workload.Request, wait clock.Duration) error {
	b := strconv.AppendInt(append(t.line, ','), int64(r.InputTokens), 10)
	b = strconv.AppendInt(append(b, ','), int64(r.OutputTokens), 10)
	if t.columns.Full {
		b = append(b, ',')
		if r.Session != 0 {
			b = strconv.AppendInt(b, int64(r.Session), 10)
		}
		b = appendContent(append(b, ','), r)
		b = append(b, ',')
		if c := int(r.Class); c < len(t.classes) {
			b = appendText(b, t.classes[c])
		} else if c > 0 {
			return fmt.Errorf("request %d has class %d of %d", r.ID, c, len(t.classes))
		}
		b = append(b, ',')
		if r.Priority != 0 {
			b = strconv.AppendInt(b, int64(r.Priority), 10)
		}
	}
	if t.columns.LoRA {
		if b = append(b, ','); r.Adapter != 0 {
			b = strconv.AppendInt(b, int64(r.Adapter), 10)
		}
	}
	if t.columns.Replica {
		if b = append(b, ','); r.Replica != 0 {
			b = strconv.AppendInt(b, int64(r.Replica)-1, 10)
		}
	}
	if t.columns.Cancel {
		if b = append(b, ','); r.Client != nil && r.Client.Cancel > 0 {
			b = appendSeconds(b, clock.Time(r.Client.Cancel))
		}
	}
	if t.columns.KV {
		b = appendTransfer(append(b, ','), r.Transfer)
	}
	if t.columns.Waits {
		if b = append(b, ','); wait != noWait {
			b = appendSeconds(b, clock.Time(wait))
		}
	}
	t.line = append(b, '\n')
	_, err := t.w.Write(t.line)
	return err
}

// appendTransfer appends what happens to the KV of a prompt.
func appendTransfer(b []byte, t *workload.Transfer) []byte {
	switch {
	case t == nil:
		return b
	case t.Keeps:
		return append(b, keepsKV...)
	case t.From > 0:
		b = append(strconv.AppendInt(b, int64(t.From)-1, 10), ':')
		return strconv.AppendInt(b, t.Of, 10)
	}
	return b
}

// Flush writes buffered data and returns the first error of the writer.
func (t *Writer) Flush() error { return t.w.Flush() }

// appendSeconds appends an instant in seconds with as many decimals as it needs.
func appendSeconds(b []byte, t clock.Time) []byte {
	b = strconv.AppendInt(b, int64(t)/second, 10)
	fraction := int64(t) % second
	if fraction == 0 {
		return b
	}
	b = append(b, '.')
	for unit := second / 10; fraction > 0; unit /= 10 {
		b = append(b, byte('0'+fraction/unit))
		fraction %= unit
	}
	return b
}

// appendContent appends the segments. Outputs of the session are written as @out if they are the latest ones, as in
// a conversation.
func appendContent(b []byte, r *workload.Request) []byte {
	if r.Content == nil {
		return b
	}
	segments := r.Content.Segments
	answers := outputsAtEnd(r)
	for i, s := range segments {
		if i > 0 {
			b = append(b, '|')
		}
		if answers > 0 && s.ID == workload.OutputID(r.Session, r.Turn-answers) {
			b = append(b, answerName...)
			answers--
		} else {
			b = append(b, '#')
			for shift := 60; shift >= 0; shift -= 4 {
				b = append(b, "0123456789abcdef"[s.ID>>shift&15])
			}
		}
		b = append(b, ':')
		b = strconv.AppendInt(b, int64(s.Tokens), 10)
	}
	return b
}

// outputsAtEnd returns n if the content holds exactly the session's latest n outputs in order; otherwise 0.
func outputsAtEnd(r *workload.Request) int32 {
	if r.Session == 0 {
		return 0
	}
	next := int32(-1) // turn of the next expected output
	n := int32(0)
	for _, s := range r.Content.Segments {
		for turn := range r.Turn {
			if s.ID != workload.OutputID(r.Session, turn) {
				continue
			}
			if next >= 0 && turn != next {
				return 0
			}
			next = turn + 1
			n++
			break
		}
	}
	if next != r.Turn {
		return 0
	}
	return n
}

// appendText quotes a text if CSV needs it. Line ends, which the reader does not accept, become spaces.
func appendText(b []byte, s string) []byte {
	s = strings.NewReplacer("\n", " ", "\r", " ").Replace(s)
	if !strings.ContainsAny(s, `,"`) {
		return append(b, s...)
	}
	return append(append(append(b, '"'), strings.ReplaceAll(s, `"`, `""`)...), '"')
}
