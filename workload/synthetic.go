package workload

import (
	"fmt"
	"math"
	"slices"

	"clifftop/sim/clock"
)

// New returns the source of the traffic that s describes. The same seed gives the same requests: request k of an open
// loop, or of a user of a closed loop, has the same lengths with any arrivals. It returns the errors of
// [Spec.Validate].
func New(s Spec, seed uint64) (Source, error) {
	src, err := s.source(seed)
	if err != nil || s.Images.Count == 0 {
		return src, err
	}
	return withImages(src, s.Images, seed), nil
}

// source returns the traffic without images.
func (s Spec) source(seed uint64) (Source, error) {
	var f fieldFaults
	t := s.compile(&f)
	if err := f.Err(); err != nil {
		return nil, err
	}
	kinds := s.classes(t.parts, seed)
	if s.needsMix() {
		return newClassMix(s, &t, kinds, seed)
	}
	l := loop{bodies: kinds[0].bodies, limits: s.limits(&t)}
	if s.Closed() {
		return newClosedLoop(l, s.Arrivals[0], seed), nil
	}
	o := &openLoop{loop: l, phaseArrivals: t.starts(l.end, seed)}
	o.err = o.advance(o.id, o.requests)
	return o, nil
}

// limits end the traffic.
type limits struct {
	id       int64 // of the next request
	requests int64 // maximum number
	end      clock.Time
}

func (s Spec) limits(t *traffic) limits {
	l := limits{requests: s.Requests, end: clock.Never}
	if s.Requests == 0 {
		l.requests = math.MaxInt64
	}
	if s.Duration > 0 {
		l.end = clock.Time(s.Duration)
	}
	if s.Closed() {
		l.end = min(l.end, t.windows[0].End)
	}
	return l
}

// early returns the error unless all requests were sent.
func (l *limits) early(err error) error {
	if l.id >= l.requests {
		return nil
	}
	return err
}

// Sent returns the number of requests so far.
func (l *limits) Sent() int64 { return l.id }

// EndAfter changes the number of requests after which the traffic ends. It must not be below [limits.Sent].
func (l *limits) EndAfter(requests int64) { l.requests = requests }

// bodies draws the lengths and the texts of requests.
type bodies struct {
	input, output   Lengths
	given           *givenInput // outputs that depend on the prompt; output is nil then
	inputs, outputs *RNG
	prompts         []prompt  // prompts that repeat; empty if all are unique
	texts           []Content // prefixes of the users' prompts; may be empty
	adapters        *adapterLaw
}

// cutOutputs limits the outputs to a number of tokens; 0 is no limit.
func (b *bodies) cutOutputs(limit int32) {
	cut := func(l Lengths) Lengths { return Clipped{Law: l, Min: 1, Max: limit} }
	switch {
	case limit <= 0:
	case b.output != nil:
		b.output = cut(b.output)
	case b.given != nil:
		given := *b.given
		given.Rows = slices.Clone(given.Rows)
		for i, law := range given.Rows {
			given.Rows[i] = cut(law)
		}
		b.given = &given
	}
}

// fill draws the body of request k of an entity; index selects the repeated prompt.
func (b *bodies) fill(r *Request, entity, k uint64, index int64) {
	if len(b.prompts) > 0 {
		p := &b.prompts[index%int64(len(b.prompts))]
		r.InputTokens, r.Content = p.tokens, &p.content
	} else {
		b.inputs.Seek(entity, k)
		r.InputTokens = b.input.Sample(&b.inputs.pcg)
		if len(b.texts) > 0 {
			r.Content = &b.texts[r.User]
		}
	}
	r.Adapter = b.adapters.of(entity, k)
	b.outputs.Seek(entity, k)
	r.OutputTokens = b.answer(int64(r.InputTokens))
}

// answer draws the output length for a prompt.
func (b *bodies) answer(input int64) int32 {
	if b.given != nil {
		return b.given.SampleGiven(int32(min(input, MaxTokens)), &b.outputs.pcg)
	}
	return b.output.Sample(&b.outputs.pcg)
}

// loop is the common part of open and closed loops.
type loop struct {
	bodies
	limits
}

// phaseArrivals are the arrivals of an open loop: of one process, or of several phases in turn.
type phaseArrivals struct {
	processes []process
	windows   []PhaseWindow
	until     clock.Time // end of the traffic
	seed      uint64
	stage     int
	arrivals  Arrivals
	at        clock.Time // next arrival; Never if there is none
}

// starts begins the first phase.
func (t *traffic) starts(until clock.Time, seed uint64) phaseArrivals {
	s := phaseArrivals{processes: t.processes, windows: t.windows, until: until, seed: seed}
	s.begin(0)
	return s
}

func (s *phaseArrivals) begin(stage int) {
	s.stage = stage
	s.arrivals = s.processes[stage].Start(s.seed, uint64(stage))
}

// advance finds the next arrival, which sends request id of requests. It returns an error if that is too late for a
// run.
func (s *phaseArrivals) advance(id, requests int64) error {
	for {
		w := &s.windows[s.stage]
		at := s.arrivals.Next()
		if w.Start > 0 {
			at = at.Add(clock.Duration(w.Start))
		}
		if at < w.End && at < s.until && at <= clock.Time(clock.MaxRun) {
			s.at = at
			return nil
		}
		s.at = clock.Never
		if at >= w.End && w.End < s.until && s.stage+1 < len(s.processes) {
			s.begin(s.stage + 1)
			continue
		}
		if at > clock.Time(clock.MaxRun) && s.until == clock.Never && w.End == clock.Never && id < requests {
			return fmt.Errorf("request %d would arrive after more than %v (want a higher rate or fewer requests)", id,
				clock.MaxRun)
		}
		return nil
	}
}

// openLoop sends requests at the instants of one or more arrival processes.
type openLoop struct {
	loop
	phaseArrivals
	err error
}

// Peek returns the arrival of the next request.
func (o *openLoop) Peek() (clock.Time, bool) {
	return o.at, o.at != clock.Never && o.id < o.requests
}

func (o *openLoop) Next() Request {
	r := Request{ID: o.id, Arrival: o.at}
	o.fill(&r, 0, uint64(o.id), o.id)
	o.id++
	o.err = o.advance(o.id, o.requests)
	return r
}

// Done does nothing: an open loop does not wait for outputs.
func (o *openLoop) Done(*Request, End) bool { return false }

// Err returns the error that ended the source before its limits, or nil.
func (o *openLoop) Err() error { return o.early(o.err) }

var _ Source = (*openLoop)(nil)
