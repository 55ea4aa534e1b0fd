package scenario

import (
	"clifftop/sim/clock"
	"clifftop/workload"
	"clifftop/workload/trace"
)

// ProbeLoad is one load for a probe: a rate of Poisson arrivals, or a number of users.
type ProbeLoad struct {
	Rate     float64
	Users    int
	Requests int64   // 0 for no limit
	Seconds  float64 // 0 for no limit
	// Surge begins with so many seconds at five times the rate, of synthetic traffic; 0 is none.
	Surge float64
}

// surge is the rate of a [ProbeLoad.Surge] as a multiple of the rate that follows.
const surge = 5

// probe is the trace at another load. Without a rate it is one request after another.
func (r *Recording) probe(l ProbeLoad) (workload.Source, error) {
	load := r.Load
	load.Scale, load.Rate = 0, l.Rate
	if r.Timeless && l.Rate == 0 {
		load.Rate = 1 // any will do
	}
	load.Limit, load.Duration, load.AllowLargeScale = l.Requests, clock.FromSeconds(l.Seconds), true
	src, err := trace.Replay(r.Opener, load)
	if err != nil || l.Users == 0 {
		return src, err
	}
	return &oneByOne{src: src}, nil
}

// oneByOne sends each request when the last has ended, whatever its recorded arrival.
type oneByOne struct {
	src  *trace.Source
	at   clock.Time
	busy bool
}

// Peek returns the arrival of the next request.
func (o *oneByOne) Peek() (clock.Time, bool) {
	_, ok := o.src.Peek()
	return o.at, ok && !o.busy
}

func (o *oneByOne) Next() workload.Request {
	r := o.src.Next()
	r.Arrival, o.busy = o.at, true
	return r
}

// Done lets the next request come.
func (o *oneByOne) Done(r *workload.Request, end workload.End) bool {
	o.at, o.busy = end.At, false
	return o.src.Done(r, end)
}

func (o *oneByOne) Err() error { return o.src.Err() }

// at is the traffic at another load, and without bursts where it is synthetic.
func (t *Traffic) at(l ProbeLoad, seed uint64) (workload.Source, error) {
	if t.Recording != nil {
		return t.Recording.probe(l)
	}
	spec := t.Spec
	stage := workload.Phase{Process: "poisson", Rate: l.Rate}
	if l.Users > 0 {
		stage = workload.Phase{Process: "closed", Users: int32(l.Users), Ramp: clock.FromSeconds(l.Seconds / 20)}
		if spec.Closed() {
			stage.ThinkTime = spec.Arrivals[0].ThinkTime
		}
	}
	spec.Arrivals = []workload.Phase{stage}
	if l.Surge > 0 {
		first := workload.Phase{Process: "poisson", Rate: surge * l.Rate, Duration: clock.FromSeconds(l.Surge)}
		spec.Arrivals = []workload.Phase{first, stage}
	}
	spec.Requests, spec.Duration = l.Requests, clock.FromSeconds(l.Seconds)
	return workload.New(spec, seed)
}
