package export

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"clifftop/report/layout"
	"clifftop/sim/clock"
)

// events writes the trace-event format of Chrome, which Perfetto reads too, as a JSON object: its description is
// "Trace Event Format" of the Catapult project. Instants are in microseconds, to the nanosecond.
type events struct {
	w   io.Writer
	buf []byte
	n   int64 // written
	err error
}

const eventBuffer = 64 << 10

func newEvents(w io.Writer) *events {
	return &events{w: w, buf: append(make([]byte, 0, eventBuffer+4096), `{"traceEvents":[`...)}
}

// track is where an event is drawn.
type track struct{ process, thread int }

// begin starts an event of a phase; its object is left open.
func (e *events) begin(phase byte, on track, name string) {
	if e.n++; e.n > 1 {
		e.buf = append(e.buf, ',')
	}
	e.buf = append(append(e.buf, "\n{\"ph\":\""...), phase, '"')
	e.number("pid", int64(on.process))
	e.number("tid", int64(on.thread))
	e.text("name", name)
}

func (e *events) end() {
	if e.buf = append(e.buf, '}'); len(e.buf) >= eventBuffer {
		e.flush()
	}
}

// key appends the name of a member; it needs no escapes.
func (e *events) key(name string) {
	if last := e.buf[len(e.buf)-1]; last != '{' {
		e.buf = append(e.buf, ',')
	}
	e.buf = append(append(append(e.buf, '"'), name...), '"', ':')
}

func (e *events) number(name string, v int64) {
	e.key(name)
	e.buf = strconv.AppendInt(e.buf, v, 10)
}

// text appends a member with a text, whose escapes are JSON's.
func (e *events) text(name, v string) {
	e.key(name)
	quoted, err := json.Marshal(v)
	if err != nil && e.err == nil {
		e.err = err
	}
	e.buf = append(e.buf, layout.Lines(string(quoted))...)
}

// at appends the instant of an event.
func (e *events) at(t clock.Time) {
	e.key("ts")
	e.buf = layout.AppendThousandths(e.buf, nanos(t)*1000, 3)
}

// during appends a slice's start and length, so that slices that touch do not overlap by rounding.
func (e *events) during(from, to clock.Time) {
	e.at(from)
	e.key("dur")
	e.buf = layout.AppendThousandths(e.buf, (nanos(to)-nanos(from))*1000, 3)
}

// nanos is an instant in nanoseconds, rounded down.
func nanos(t clock.Time) int64 { return int64(t) / int64(clock.Nanosecond) }

func (e *events) openArgs() {
	e.key("args")
	e.buf = append(e.buf, '{')
}

func (e *events) closeArgs() { e.buf = append(e.buf, '}') }

// named gives a process or a thread its name and its place among the others.
func (e *events) named(what string, on track, name string, place int) {
	e.begin('M', on, what+"_name")
	e.openArgs()
	e.text("name", name)
	e.closeArgs()
	e.end()
	e.begin('M', on, what+"_sort_index")
	e.openArgs()
	e.number("sort_index", int64(place))
	e.closeArgs()
	e.end()
}

// note marks an instant of a process with words.
func (e *events) note(on track, at clock.Time, text string) {
	e.begin('i', on, text)
	e.at(at)
	e.text("s", "p")
	e.end()
}

func (e *events) flush() {
	if e.err == nil {
		_, e.err = e.w.Write(e.buf)
	}
	e.buf = e.buf[:0]
}

// close ends the file with data about the whole of it.
func (e *events) close(other any) error {
	data, err := json.Marshal(other)
	if err != nil {
		return fmt.Errorf("the description of a timeline: %w", err)
	}
	e.buf = append(e.buf, "\n],\"displayTimeUnit\":\"ms\",\"otherData\":"...)
	e.buf = append(append(e.buf, layout.Lines(string(data))...), '}', '\n')
	e.flush()
	return e.err
}

// thinning limits the number of events of one kind. The first half of the budget has all events, the next quarter every
// fourth one, the next eighth every sixteenth one, and so on. The file so covers a run of any length.
type thinning struct {
	stride int64 // what is written stands for so many
	quota  int64 // of the stage
	used   int64
}

const (
	thinner   = 4   // by how much the stride grows
	leastLeft = 256 // what a stage may write at least
	maxStride = 1 << 40
)

func newThinning(limit int64) thinning { return thinning{stride: 1, quota: max(limit/2, leastLeft)} }

// spend counts what was written, and reports whether the stride has grown.
func (t *thinning) spend(n int64) bool {
	if t.used += n; t.used < t.quota {
		return false
	}
	t.used, t.quota = 0, max(t.quota/2, leastLeft)
	t.stride = min(t.stride*thinner, maxStride)
	return true
}

// shows reports whether a pause after some work is drawn: at first always, and the longer the stride, the longer it has
// to be.
func (t *thinning) shows(pause, work clock.Duration) bool {
	return pause > 0 && (t.stride == 1 || int64(pause)/t.stride >= int64(work))
}
