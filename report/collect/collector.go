package collect

import (
	"math/bits"

	"clifftop/model"
	"clifftop/report"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/workload"
)

// Options tell a [Collector] what it cannot see. The zero Options measure the whole run on one GPU.
type Options struct {
	Warmup Warmup
	SLO    *report.SLO // nil for none
	// End is the end of the window; 0 means the last arrival.
	End clock.Time
	// Expected is about how long the run will be, if known: buckets of time then have their width from
	// the start, instead of growing to it.
	Expected clock.Duration
	// Closed says that users wait until the server has done with their requests before they ask again, so that a
	// growing number in the system is no sign of overload.
	Closed bool
	// GPUs and Replicas of the whole system; 0 means 1.
	GPUs, Replicas int
	// PipelineStages is the number of those of each replica that work on batches of their own; 0 means 1. Where
	// replicas differ in it, Fleet tells.
	PipelineStages int
	// MaxNumSeqs is the number of seats of all replicas together, 0 for no limit.
	MaxNumSeqs int
	// UsableBlocks is the number of KV blocks of all replicas together; 0, or engine.UnlimitedBlocks or
	// more, is an unlimited pool.
	UsableBlocks int64
	// Work lets the summary tell how well the hardware was used; nil leaves that open.
	Work *Work
	// Power is the energy of iterations on a GPU of the system; nil means unknown. Where there is a Fleet, its replicas
	// have their own.
	Power *model.StepPower
	// Facility is what the GPUs need around them.
	Facility Facility
	// USDPerHour is the price of the whole system; 0 means unknown.
	USDPerHour float64
	// Reading is how fast users read, in tokens per second; 0 where nothing is said of it.
	Reading float64
	// Tiers are the names of the tiers that KV is offloaded to, the same on all replicas.
	Tiers []string
	// Stages are the parts of the run with traffic of their own. A run of several is not expected to be steady,
	// so that an automatic warm-up cuts nothing from it.
	Stages []StageSpan
	// Classes are the kinds of requests that are also reported apart, by the number of their class.
	Classes []ClassSpan
	// Requests, if not nil, is given every finished request.
	Requests *RequestWriter
	// Gantt, if not nil, is filled with the first iterations and requests.
	Gantt *report.Gantt
	// Fleet says of each replica what it is, by its number; they are then also measured apart. Nil for a single engine.
	Fleet []ReplicaOptions
	// Lifecycle says that replicas of the fleet start, fail or end, so that their number changes.
	Lifecycle bool
}

// Work says what a replica's hardware does for each unit of what a [event.Span] counts, so that its
// utilisation can be told. Attention of prefills, whose context a span does not carry, is left out.
type Work struct {
	FLOPsPerToken        float64 // for each token computed, attention and output layer apart
	FLOPsPerContextToken float64 // for each token of context that a decode attends to
	FLOPsPerEmit         float64 // for each token produced: the output layer
	BytesPerIteration    float64 // weights read
	BytesPerContextToken float64 // KV read
	BytesPerToken        float64 // KV written for each token computed
	PeakFLOPsPerS        float64 // of all GPUs of a replica
	PeakBytesPerS        float64 // of all GPUs of a replica
}

// A Collector is a [event.Observer] that measures a run and makes a [report.Summary] of it. Make one for each
// run with [New].
type Collector struct {
	opts   Options
	limits limits
	line   timeline
	reservoir
	stages   stages
	classes  classes
	parts    []*part // of a fleet, by replica
	sloHours *sloHours
	minutes  minutes

	unrouted int64 // attempts that ended before they were sent to a replica
	divided  bool  // spans are also counted in parts of the run, one by one

	now clock.Time // the last instant seen, of whatever kind
	occupancy
	tierTraffic

	paid      []paidFrom // where replicas come and go; none for all, all the time
	held      int        // requests at the router, and since when
	heldSince clock.Time

	shared      *sharedWindow // of runs that are compared; nil for a window of its own
	lastArrival clock.Time
	totals      totals
	warnings    []report.Warning
	partial     bool
}

// Classes of waiting, by what holds the first request in the queue back.
const (
	gapNone = iota
	gapKV
	gapBudget
	gapSeats
	gapPolicy
	gapBoundary
	gapIdle
	gapClasses
)

// New makes a collector for one run.
func New(opts Options) *Collector {
	opts.GPUs, opts.Replicas, opts.PipelineStages = max(opts.GPUs, 1), max(opts.Replicas, 1),
		max(opts.PipelineStages, 1)
	opts.UsableBlocks = limitedBlocks(opts.UsableBlocks)
	opts.Lifecycle = opts.Lifecycle && opts.Fleet != nil
	if opts.Fleet != nil {
		opts.Power = nil
	}
	// The width is chosen so that the edges of the window are edges of buckets.
	width := defaultWidth
	if d := opts.Warmup.Duration; opts.End > 0 {
		width = max(clock.Duration((opts.End+maxBuckets-1)/maxBuckets), 1)
	} else if d > 0 {
		for d > defaultWidth && d%2 == 0 {
			d /= 2
		}
		if d <= 2*defaultWidth {
			width = d
		}
	}
	for opts.End == 0 && width*maxBuckets < opts.Expected/2 {
		width *= 2
	}
	c := &Collector{
		opts: opts, limits: newLimits(opts.SLO), line: newTimeline(width, mostBuckets(len(opts.Fleet)), true),
		reservoir: reservoir{exact: ExactSamples}, occupancy: newOccupancy(),
		tierTraffic: tierTraffic{tiers: len(opts.Tiers)},
		stages:      newStages(opts.Stages), classes: newClasses(opts), parts: newParts(opts, width),
		sloHours: newSLOHours(opts.SLO),
	}
	c.divided = c.stages != nil || c.sloHours != nil && c.sloHours.gaps || opts.Gantt != nil
	return c
}

// limitedBlocks is a number of KV blocks, or 0 for an unlimited pool.
func limitedBlocks(blocks int64) int64 {
	if blocks >= engine.UnlimitedBlocks {
		return 0
	}
	return blocks
}

var (
	_ event.LevelObserver = (*Collector)(nil)
	_ event.SpanObserver  = (*Collector)(nil)
	_ event.EdgeObserver  = (*Collector)(nil)
	_ event.TokenObserver = (*Collector)(nil)
	_ event.FleetObserver = (*Collector)(nil)
	_ event.MoveObserver  = (*Collector)(nil)
)

// Edge is the end of the time bucket that an instant lies in.
func (c *Collector) Edge(past clock.Time) clock.Time {
	return c.line.end(c.line.index(past))
}

// Arrived implements [event.Observer].
func (c *Collector) Arrived(at clock.Time, r *workload.Request) {
	if c.classes != nil {
		c.classes.arrived(at, r)
	}
	c.now = max(c.now, at)
	add(&c.totals.arrivals, int64(at))
	if !c.totals.arrived(r) {
		return
	}
	c.line.at(at).arrivals++
	if c.stages != nil {
		c.stages.at(at).arrivals++
	}
	if c.sloHours != nil {
		c.sloHours.at(at).arrivals++
	}
	c.lastArrival = max(c.lastArrival, at)
	if !c.opts.Closed {
		c.minutes.arrived(at)
	}
}

// Levels implements [event.LevelObserver].
func (c *Collector) Levels(at clock.Time, l *event.Levels) {
	o := &c.occupancy
	if at > c.line.open.end {
		o.enter(&c.line, at)
	}
	c.now = max(c.now, at)
	o.levels[inSystem].set(at, l.System)
	o.levels[waiting].set(at, l.Waiting)
	o.levels[running].set(at, l.Running)
	o.levels[decoding].set(at, l.Decoding)
	if g := gapClass(l, c.opts.MaxNumSeqs); g != o.gap {
		o.holdGap(at)
		o.gap = g
	}
	if l.Held != c.held {
		c.fillHeld(at)
		c.held = l.Held
	}
}

// Gap implements [event.TokenObserver]. It does nothing: what counts are the gaps that clients see, which are in spans.
func (c *Collector) Gap(clock.Time, clock.Duration, int) {}

// Preempted implements [event.TokenObserver].
func (c *Collector) Preempted(at clock.Time) {
	c.line.at(at).preemptions++
	c.totals.preemptions++
}

// Dropped implements [event.TokenObserver].
func (c *Collector) Dropped(at clock.Time, tokens int) {
	c.line.upTo(at).output -= int64(tokens)
	if c.stages != nil {
		c.stages.upTo(at).output -= int64(tokens)
	}
	c.totals.dropped += int64(tokens)
}

// AddWarning adds a warning to the summary.
func (c *Collector) AddWarning(code, text string) {
	c.warnings = append(c.warnings, report.Warning{Code: code, Text: text})
}

// SetPartial says that the run was interrupted: the summary is then of what happened so far.
func (c *Collector) SetPartial() { c.partial = true }

// add adds a v that is not negative.
func add(u *clock.Uint128, v int64) {
	lo, carry := bits.Add64(u.Lo, uint64(v), 0)
	u.Lo = lo
	u.Hi += carry
}
