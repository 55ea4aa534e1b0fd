package workload

import (
	"fmt"
	"math"

	"clifftop/sim/clock"
)

// New makes the source of the traffic that s describes. The same seed gives the same requests:
// in an open loop the k-th request, in a closed loop the k-th request of each user, has the same
// lengths whatever the arrivals.
func New(s Spec, seed uint64) (Source, error) {
	var f faults
	t := s.compile(&f)
	if err := f.err(); err != nil {
		return nil, err
	}
	l := loop{
		input: t.input, output: t.output, given: t.given,
		inputs: NewStream(seed, purposeInput), outputs: NewStream(seed, purposeOutput),
		requests: s.Requests, end: clock.Never,
	}
	switch {
	case s.Prefix.By == "user":
		l.texts = s.Prefix.texts(s.Arrivals[0].Users)
	case s.Prefix != (PrefixSpec{}):
		l.prompts = s.Prefix.prompts(l.input, l.inputs)
	}
	if s.Requests == 0 {
		l.requests = math.MaxInt64
	}
	if s.Duration > 0 {
		l.end = clock.Time(s.Duration)
	}
	if s.Closed() {
		l.end = min(l.end, t.windows[0].End)
		return newClosedLoop(l, s.Arrivals[0], seed), nil
	}
	o := &openLoop{loop: l, processes: t.processes, windows: t.windows, seed: seed}
	o.begin(0)
	o.advance()
	return o, nil
}

// loop is what open and closed loops have in common: the bodies of requests, and the limits.
type loop struct {
	input, output   Lengths
	given           *GivenInput
	inputs, outputs *Stream
	prompts         []prompt  // that repeat; empty when every prompt is unique
	texts           []Content // that users' prompts begin with; empty if they have none
	id              int64     // of the next request
	requests        int64     // limit
	end             clock.Time
}

// fill draws the body of request k of an entity; index is its place in the rotation of prompts.
func (l *loop) fill(r *Request, entity, k uint64, index int64) {
	if len(l.prompts) > 0 {
		p := &l.prompts[index%int64(len(l.prompts))]
		r.InputTokens, r.Content = p.tokens, &p.content
	} else {
		l.inputs.Seek(entity, k)
		r.InputTokens = l.input.Sample(&l.inputs.pcg)
		if len(l.texts) > 0 {
			r.Content = &l.texts[r.User]
		}
	}
	l.outputs.Seek(entity, k)
	if l.given != nil {
		r.OutputTokens = l.given.SampleGiven(r.InputTokens, &l.outputs.pcg)
	} else {
		r.OutputTokens = l.output.Sample(&l.outputs.pcg)
	}
}

// openLoop sends requests at the instants of a process, or of several in turn.
type openLoop struct {
	loop
	processes []Process
	windows   []StageWindow
	seed      uint64
	stage     int
	arrivals  Arrivals
	at        clock.Time // of the next request; Never when there is none
	err       error
}

// begin starts a stage.
func (o *openLoop) begin(stage int) {
	o.stage = stage
	o.arrivals = o.processes[stage].Start(o.seed, uint64(stage))
}

// advance finds the next arrival.
func (o *openLoop) advance() {
	for {
		w := &o.windows[o.stage]
		at := o.arrivals.Next()
		if w.Start > 0 {
			at = at.Add(clock.Duration(w.Start))
		}
		if at < w.End && at < o.end && at <= clock.Time(clock.MaxRun) {
			o.at = at
			return
		}
		o.at = clock.Never
		if at >= w.End && w.End < o.end && o.stage+1 < len(o.processes) {
			o.begin(o.stage + 1)
			continue
		}
		if at > clock.Time(clock.MaxRun) && o.end == clock.Never && w.End == clock.Never && o.id < o.requests {
			o.err = fmt.Errorf("request %d would arrive after more than %v (want a higher rate or fewer requests)", o.id, clock.MaxRun)
		}
		return
	}
}

// Peek returns the arrival of the next request.
func (o *openLoop) Peek() (clock.Time, bool) {
	return o.at, o.at != clock.Never && o.id < o.requests
}

// Next returns the next request.
func (o *openLoop) Next() Request {
	r := Request{ID: o.id, Arrival: o.at}
	o.fill(&r, 0, uint64(o.id), o.id)
	o.id++
	o.advance()
	return r
}

// Done has no effect: an open loop does not wait for answers.
func (o *openLoop) Done(*Request, End) bool { return false }

// Err tells why the source ended before its limits.
func (o *openLoop) Err() error { return o.err }

var _ Source = (*openLoop)(nil)
