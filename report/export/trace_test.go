package export_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/report/export"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// traceEvent is one of the trace-event format.
type traceEvent struct {
	Phase   string `json:"ph"`
	Process *int   `json:"pid"`
	Thread  *int   `json:"tid"`
	Name    string
	At      *float64       `json:"ts"`
	Length  *float64       `json:"dur"`
	Scope   string         `json:"s"`
	Args    map[string]any `json:"args"`
}

type timeline struct {
	Events []traceEvent   `json:"traceEvents"`
	Unit   string         `json:"displayTimeUnit"`
	Other  map[string]any `json:"otherData"`
}

func readTimeline(t *testing.T, data []byte) *timeline {
	t.Helper()
	var tl timeline
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&tl); err != nil {
		t.Fatal(err)
	}
	return &tl
}

// check holds a timeline to the format: each event has the members that its phase needs, and the slices of a
// track lie in each other or apart.
func (tl *timeline) check(t *testing.T) {
	t.Helper()
	type track struct{ process, thread int }
	open := map[track][]int64{} // ends of the slices that hold the next one, in nanoseconds
	last := map[track]int64{}
	slices := map[track][]traceEvent{}
	for i, e := range tl.Events {
		if e.Process == nil || e.Thread == nil || *e.Process < 1 || e.Name == "" {
			t.Fatalf("event %d has no track or name: %+v", i, e)
		}
		on := track{*e.Process, *e.Thread}
		switch e.Phase {
		case "M":
			if _, ok := e.Args["name"].(string); !ok && strings.HasSuffix(e.Name, "_name") {
				t.Fatalf("event %d has no name: %+v", i, e)
			}
		case "C":
			for key, v := range e.Args {
				if n, ok := v.(float64); !ok || n < 0 {
					t.Fatalf("event %d: %s is %v", i, key, v)
				}
			}
			if e.At == nil || len(e.Args) == 0 {
				t.Fatalf("event %d counts nothing: %+v", i, e)
			}
		case "X":
			if e.At == nil || e.Length == nil || *e.At < 0 || *e.Length < 0 {
				t.Fatalf("event %d has no time: %+v", i, e)
			}
			slices[on] = append(slices[on], e)
		case "i":
			if e.At == nil || e.Scope != "p" {
				t.Fatalf("event %d has no time or scope: %+v", i, e)
			}
		default:
			t.Fatalf("event %d: phase %q", i, e.Phase)
		}
	}
	nanos := func(v *float64) int64 { return int64(math.Round(*v * 1000)) }
	for on, list := range slices {
		sortEvents(list)
		for _, e := range list {
			start := nanos(e.At)
			end := start + nanos(e.Length)
			stack := open[on]
			for len(stack) > 0 && stack[len(stack)-1] <= start {
				stack = stack[:len(stack)-1]
			}
			if len(stack) > 0 && end > stack[len(stack)-1] {
				t.Fatalf("process %d, thread %d: %s at %d ns ends at %d, after what it began in, %d", on.process,
					on.thread, e.Name, start, end, stack[len(stack)-1])
			}
			open[on], last[on] = append(stack, end), start
		}
	}
}

func TestTrace(t *testing.T) {
	each(t, func(t *testing.T, r *ran) {
		tl := readTimeline(t, r.trace.Bytes())
		tl.check(t)
		if tl.Other["sampling"] != "none: everything is shown" {
			t.Errorf("sampling: %v", tl.Other["sampling"])
		}
		var busy, output float64
		requests, chunks, absences, replicas := 0, 0, 0, 0
		for _, e := range tl.Events {
			switch {
			case e.Name == "process_name" && strings.HasPrefix(e.Args["name"].(string), "replica "):
				replicas++
			case e.Phase != "X":
			case *e.Thread == 1:
				busy += *e.Length
				output += e.Args["output_tokens"].(float64)
			case strings.HasPrefix(e.Name, "request "):
				requests++
			case e.Name == "chunk" || e.Name == "recompute":
				chunks++
			case e.Name == "preempted":
				absences++
			}
		}
		preemptions := 0
		for _, rec := range r.records {
			preemptions += int(rec.Preemptions)
		}
		if replicas != r.setup.Report.Replicas {
			t.Errorf("%d processes of replicas", replicas)
		}
		if requests != len(r.records) || chunks == 0 {
			t.Errorf("%d requests and %d chunks of %d requests", requests, chunks, len(r.records))
		}
		if absences > preemptions || (preemptions > 0) != (absences > 0) {
			t.Errorf("%d absences by %d preemptions", absences, preemptions)
		}
		if math.Abs(busy-r.busy) > 1e-6*r.busy+1 || output != float64(r.output) {
			t.Errorf("busy for %g us, want %g, with %g tokens, want %d", busy, r.busy, output, r.output)
		}
	})
}

// TestTraceIsExact compares slices with the records of requests.
func TestTraceIsExact(t *testing.T) {
	r := one(t, "preempted")
	tl := readTimeline(t, r.trace.Bytes())
	begin := map[string]traceEvent{}
	phases := map[string]map[string]traceEvent{}
	var on string
	for _, e := range tl.Events {
		if e.Phase != "X" || *e.Thread == 1 {
			continue
		}
		if strings.HasPrefix(e.Name, "request ") {
			on = e.Name
			begin[on], phases[on] = e, map[string]traceEvent{}
		} else {
			phases[on][e.Name] = e
		}
	}
	same := func(name string, got *float64, want clock.Time) {
		t.Helper()
		if got == nil || math.Abs(*got-float64(want)/1e6) > 0.0011 {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for _, rec := range r.records {
		name := fmt.Sprintf("request %d", rec.Request.ID)
		e, ok := begin[name]
		if !ok {
			t.Fatalf("%s is missing", name)
		}
		same(name, e.At, rec.Request.Arrival)
		q, d := phases[name]["queue"], phases[name]["decode"]
		if rec.Scheduled > rec.Queued {
			same(name+" queue", q.At, rec.Queued)
		}
		same(name+" decode", d.At, rec.FirstToken)
		end := *d.At + *d.Length
		same(name+" end", &end, rec.LastToken)
		if got := e.Args["preemptions"].(float64); got != float64(rec.Preemptions) {
			t.Errorf("%s: %g preemptions, want %d", name, got, rec.Preemptions)
		}
	}
}

// TestTraceIsThinned gives a timeline room for less than there is.
func TestTraceIsThinned(t *testing.T) {
	u := resolved(t, "run: {requests: 1500}")
	const limit = 10_000
	var whole, thin bytes.Buffer
	all, some := experiments.NewTrace(u, &whole), export.NewTrace(&thin, export.TraceInfo{Events: limit})
	output := 0
	res, err := experiments.RunSetup(context.Background(), u,
		experiments.RunOptions{Observers: []event.Observer{all, some}, Span: func(s *event.Span) {
			output += s.N * s.Output()
		}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []interface{ Close() error }{all, some} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	tl, full := readTimeline(t, thin.Bytes()), readTimeline(t, whole.Bytes())
	tl.check(t)
	if len(tl.Events) > limit*3/2 || len(full.Events) < 3*limit {
		t.Errorf("%d events of %d", len(tl.Events), len(full.Events))
	}
	got, notes := 0, 0
	for _, e := range tl.Events {
		if e.Phase == "X" && *e.Thread == 1 {
			got += int(e.Args["output_tokens"].(float64))
		}
		if e.Phase == "i" {
			notes++
		}
	}
	if got != output || notes == 0 {
		t.Errorf("iterations stand for %d tokens of %d, and there are %d notes", got, output, notes)
	}
	if text := fmt.Sprint(tl.Other["sampling"]); !strings.Contains(text, "late iterations are joined, up to ") {
		t.Errorf("sampling: %s", text)
	}
	if shown := tl.Other["requests_shown"].(float64); shown >= float64(res.Summary.Requests.Offered) || shown < 100 {
		t.Errorf("%g requests are shown", shown)
	}
}

// TestPausesAreThinned gives a timeline room for less than there are pauses, after each iteration.
func TestPausesAreThinned(t *testing.T) {
	u := resolved(t, "run: {requests: 60000}\nworkload: {arrivals: {process: poisson, rate: 1}, output: {distribution: fixed, value: 1}}")
	const limit = 10_000
	var thin bytes.Buffer
	trace := export.NewTrace(&thin, export.TraceInfo{Events: limit})
	if _, err := experiments.RunSetup(context.Background(), u,
		experiments.RunOptions{Observers: []event.Observer{trace}}); err != nil {
		t.Fatal(err)
	}
	if err := trace.Close(); err != nil {
		t.Fatal(err)
	}
	tl := readTimeline(t, thin.Bytes())
	tl.check(t)
	if n := len(tl.Events); n < limit/2 || n > limit*3/2 {
		t.Errorf("%d events, want about %d", n, limit)
	}
	got := 0
	for _, e := range tl.Events {
		if e.Phase == "X" && *e.Thread == 1 {
			got += int(e.Args["output_tokens"].(float64))
		}
	}
	if got != 60000 {
		t.Errorf("iterations stand for %d tokens of 60000", got)
	}
}
