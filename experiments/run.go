package experiments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario"
	"clifftop/report"
	"clifftop/report/collect"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/workload"
	"clifftop/workload/trace"
)

// RunOptions says what to do beside a run. The zero value is nothing.
type RunOptions struct {
	// Check asserts the simulator's invariants throughout, at a cost.
	Check bool
	// Requests is given requests.csv, a row for each request; nil writes none.
	Requests io.Writer
	// Progress is called now and then with the state of the run.
	Progress func(Progress)
	// Source, if not nil, is replayed in place of the scenario's traffic.
	Source workload.Source
	// Span and Finished, if not nil, are told of iterations and of requests that end, in the words of
	// [event.Observer]. The arguments are valid only during the call.
	Span     func(*event.Span)
	Finished func(*event.Record)
	// Observers are told what happens in the run; see [scenario.Setup.NewTrace] and its like.
	Observers []event.Observer
	// Detail gives the summary its detail, for pictures.
	Detail bool
}

// Progress is how far a run is.
type Progress struct {
	// Fraction of the run that is done; 0 where its length is not known.
	Fraction float64
	// Requests that have ended, and the simulated time of the last end.
	Requests  int64
	Simulated clock.Time
}

// Result is what a run gives.
type Result struct {
	Summary *report.Summary
	// Series are the buckets of time of the run.
	Series []report.SeriesPoint

	collector *collect.Collector
	setup     *scenario.Setup
	talked    *workload.SessionCounts
	detail    bool
	effort    engine.Effort
}

// shareWindow measures runs of the same traffic over one window; see [collect.ShareWindow].
func shareWindow(results []*Result) {
	var all []*collect.Collector
	for _, r := range results {
		all = append(all, r.collector)
	}
	collect.ShareWindow(all)
	for _, r := range results {
		r.measure()
	}
}

// ReplicaSeries are the buckets of each replica of a fleet; none of a single engine.
func (r *Result) ReplicaSeries() [][]report.SeriesPoint { return r.collector.ReplicaSeries() }

// ExplainEffort adds to the summary which iterations the engines composed with the plain cycle, and why spans of equal
// iterations ended.
func (r *Result) ExplainEffort() {
	e, s := &r.effort, &r.Summary.Effort
	s.Compositions, s.PlainCompositions = e.Compositions, e.Plain
	if e.First != engine.IsPlain {
		s.FirstGeneral = e.First.String()
	}
	s.SpanEnds = map[string]int64{}
	for why, n := range e.Ends {
		if n > 0 {
			s.SpanEnds[engine.SpanEnd(why).String()] = n
		}
	}
}

// VLLMBench is the result under the keys of vllm bench serve --save-result. It has no date, so
// that equal runs give equal bytes.
func (r *Result) VLLMBench() map[string]any {
	s := r.setup.Scenario
	info := collect.BenchInfo{Model: s.Model, Label: s.Name, RequestRate: r.setup.Traffic.Rate, Burstiness: 1}
	if r.setup.Traffic.Closed {
		info.RequestRate = math.Inf(1)
		info.MaxConcurrent = optional.Of(int64(*s.Workload.Arrivals.Stages[0].Users))
	}
	if a := s.Workload.Arrivals; a != nil && a.Stages[0].Process == "gamma" {
		cv := *a.Stages[0].CV
		info.Burstiness = 1 / (cv * cv) // the shape of the gaps
	}
	return r.collector.VLLMBench(info)
}

// Run resolves a scenario and runs it. When ctx is done before the end, the result covers what was
// simulated until then, is marked partial, and comes together with the context's error. It is whole and
// comes with an error too where only the requests could not be written.
func Run(ctx context.Context, s *scenario.Scenario, o RunOptions) (*Result, error) {
	u, err := s.Resolve()
	if err != nil {
		return nil, err
	}
	return RunSetup(ctx, u, o)
}

// RunSetup runs the scenario; see [Run].
func RunSetup(ctx context.Context, u *scenario.Setup, o RunOptions) (*Result, error) {
	x, err := begin(u, o)
	if err != nil {
		return nil, err
	}
	return x.finish(ctx)
}

// simulation is a run that has begun.
type simulation struct {
	setup     *scenario.Setup
	options   RunOptions
	patient   workload.Source // requests without what clients do
	collector *collect.Collector
	rows      *collect.RequestWriter // nil where none are written
	meter     *meter                 // nil without progress
	engine    *sim.Simulation
}

func begin(u *scenario.Setup, o RunOptions) (*simulation, error) {
	patient, src, err := requestsOf(u, o)
	if err != nil {
		return nil, err
	}
	x := &simulation{setup: u, options: o, patient: patient}
	x.collector, x.rows = newCollector(u, o)
	if o.Progress != nil {
		x.meter = &meter{end: u.Report.End, requests: u.Traffic.Requests, report: o.Progress}
	}
	x.engine, err = x.newEngine(src)
	return x, err
}

// finish runs to the end. The result is partial if ctx is done before.
func (x *simulation) finish(ctx context.Context) (*Result, error) {
	u, collector := x.setup, x.collector
	runErr := x.engine.Run(ctx)
	interrupted := runErr != nil && ctx.Err() != nil && errors.Is(runErr, ctx.Err())
	switch {
	case interrupted:
		collector.SetPartial()
	case runErr != nil:
		return nil, x.failure(runErr)
	}
	warnAfter(u, x.engine.Now(), interrupted, x.patient, collector)
	talked := conversations(u, x.patient, collector)
	if x.options.Check && !interrupted {
		if err := collector.Check(); err != nil {
			return nil, fmt.Errorf("internal check of the result failed: %w", err)
		}
	}
	if x.rows != nil {
		if err := x.rows.Flush(); err != nil && runErr == nil {
			runErr = err
		}
	}
	res := newResult(u, collector, talked, x.options.Detail)
	res.effort = x.engine.Effort()
	return res, runErr
}

// failure says why a run cannot go on.
func (x *simulation) failure(err error) error {
	if !errors.Is(err, sim.ErrStranded) {
		return err
	}
	return fmt.Errorf("at %.6g s: %d requests wait at the router, and no replica will accept them any more (set "+
		"an end for the failure, lifecycle.hold: 0 or clients.timeout)", x.engine.Now().Seconds(), x.engine.InSystem())
}

// requestsOf are those of a run as their clients send them, and behind them those of patient clients, who send each
// once.
func requestsOf(u *scenario.Setup, o RunOptions) (patient, src workload.Source, err error) {
	if o.Source != nil {
		return o.Source, o.Source, nil
	}
	if patient, err = u.Source(); err != nil {
		return nil, nil, err
	}
	src, err = u.WithClients(patient)
	return patient, src, err
}

// newCollector makes what collects the result of a run, and the writer of its requests, which is nil
// where none is asked for.
func newCollector(u *scenario.Setup, o RunOptions) (*collect.Collector, *collect.RequestWriter) {
	options := u.Report
	if o.Requests != nil {
		options.Requests = collect.NewRequestWriter(o.Requests)
		options.Requests.NameClasses(u.ClassName)
	}
	if o.Detail {
		options.Gantt = &report.Gantt{}
	}
	if t := u.Traffic; t.Rate > 0 {
		options.Expected = clock.FromSeconds(float64(t.Requests) / t.Rate)
	}
	collector := collect.New(options)
	for _, w := range u.Warnings {
		collector.AddWarning(w.Code, w.Text)
	}
	return collector, options.Requests
}

// newEngine makes the engine of a run, with all observers of it.
func (x *simulation) newEngine(src workload.Source) (*sim.Simulation, error) {
	u, o := x.setup, &x.options
	observers := []event.Observer{x.collector}
	if x.meter != nil {
		observers = append(observers, x.meter)
	}
	if o.Span != nil || o.Finished != nil {
		observers = append(observers, &hooks{span: o.Span, finished: o.Finished})
	}
	engine, err := sim.NewFleet(u.Fleet(o.Check), src, append(observers, o.Observers...)...)
	if err != nil {
		return nil, err
	}
	if t, ok := x.patient.(*trace.Source); ok {
		if err := t.Before(engine.Warm); err != nil {
			return nil, err
		}
	}
	if u.Report.End > 0 {
		engine.Horizon = u.Report.End
	}
	return engine, nil
}

// warnAfter adds the warnings that are known only after the run.
func warnAfter(u *scenario.Setup, end clock.Time, interrupted bool, patient workload.Source,
	collector *collect.Collector) {
	if t, ok := patient.(*trace.Source); ok && t.Overlapping() > 0 {
		collector.AddWarning("overlapping_turns", fmt.Sprintf(
			"%d requests were sent before an earlier turn of their session was complete: a replay keeps the recorded "+
				"times",
			t.Overlapping()))
	}
	if n := u.FailuresFrom(end); n > 0 && !interrupted && u.Report.End == 0 {
		collector.AddWarning("late_failure",
			fmt.Sprintf("the run ended at %.4g s, before %d of %d failures (run.duration sets its end)", end.Seconds(),
				n, len(u.Failures)))
	}
}

// newResult puts together what a run gives.
func newResult(u *scenario.Setup, collector *collect.Collector, talked *workload.SessionCounts, detail bool) *Result {
	res := &Result{collector: collector, setup: u, talked: talked, detail: detail}
	res.measure()
	return res
}

// measure makes the summary and the series.
func (r *Result) measure() {
	u, s := r.setup, r.collector.Summary()
	r.Summary, r.Series = s, r.collector.Series()
	if r.detail {
		s.Detail = r.collector.Detail()
	}
	s.Sessions = r.talked
	s.Clifftop = Version
	s.Scenario = u.Scenario
	s.Seed = u.Scenario.Run.Seed
	s.Accuracy, s.EngineDefaults = u.Accuracy(), u.EngineDefaults()
	s.Accuracy.Unsteady(s.Window.Stationary)
	s.Predictive = u.Predictive()
	s.Predictive.Overloaded(s.Window.Stationary)
	s.Effort.Requests = s.Requests.Offered
}

// meter reports the progress of a run.
type meter struct {
	event.Ignore
	end      clock.Time // of the run; 0 if requests end it
	requests int64      // expected; 0 if unknown
	report   func(Progress)
	ended    int64
	now      clock.Time
}

// Finished reports progress now and then.
func (m *meter) Finished(rec *event.Record) {
	if rec.Again {
		return // a request ends once
	}
	m.ended++
	const every = 1 << 11
	if m.ended%every != 0 {
		return
	}
	if rec.Released != clock.Never {
		m.now = max(m.now, rec.Released)
	}
	p := Progress{Requests: m.ended, Simulated: m.now}
	if m.end > 0 {
		p.Fraction = min(1, m.now.Seconds()/m.end.Seconds())
	} else if m.requests > 0 {
		p.Fraction = min(1, float64(m.ended)/float64(m.requests))
	}
	m.report(p)
}

// hooks calls the functions of [RunOptions], of which one may be nil.
type hooks struct {
	event.Ignore
	span     func(*event.Span)
	finished func(*event.Record)
}

// Span implements [event.SpanObserver].
func (h *hooks) Span(s *event.Span) {
	if h.span != nil {
		h.span(s)
	}
}

// Finished implements [event.Observer].
func (h *hooks) Finished(rec *event.Record) {
	if h.finished != nil {
		h.finished(rec)
	}
}

// conversations tells what became of a source's conversations; nil where it has none.
func conversations(u *scenario.Setup, src workload.Source, c *collect.Collector) *workload.SessionCounts {
	t, ok := src.(interface{ Sessions() workload.SessionCounts })
	if !ok || t.Sessions() == (workload.SessionCounts{}) {
		return nil
	}
	n := t.Sessions()
	if n.TooLong+n.Cut > 0 {
		text := fmt.Sprintf("%d of %d conversations reached the longest context, %d tokens or their max_context,",
			n.TooLong, n.Begun, u.LongestSequence())
		text += " and ended there"
		if n.Cut > 0 {
			text += fmt.Sprintf("; %d turns lost their oldest messages", n.Cut)
		}
		c.AddWarning("sessions_too_long", text)
	}
	if n.Overlaps > 0 {
		c.AddWarning("overlapping_turns", fmt.Sprintf(
			"%d requests were sent before an earlier turn of their session was complete: sessions.turn_gap does not "+
				"wait (use think_time)", n.Overlaps))
	}
	return &n
}
