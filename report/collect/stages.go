package collect

import (
	"sort"

	"clifftop/model"
	"clifftop/report"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// A StageSpan is a part of a run that has traffic of its own.
type StageSpan struct {
	Name string
	// End of the stage, where the next one starts; the first starts at 0. The last may end at [clock.Never].
	End clock.Time
}

// stages counts a run by stage. The last tally is of what happens after all stages.
type stages []tally

// tally holds the sums and distributions of one stage, of which levels and time are not kept.
type tally struct {
	name       string
	start, end clock.Time
	bucket
	detail
}

func newStages(spans []StageSpan) stages {
	if len(spans) == 0 {
		return nil
	}
	all := make(stages, len(spans)+1)
	start := clock.Time(0)
	for i := range all {
		t := &all[i]
		t.start, t.end, t.sketch = start, clock.Never, new(sketch)
		if i < len(spans) {
			t.name, t.end = spans[i].Name, spans[i].End
		}
		start = t.end
	}
	return all
}

// at is the stage of what arrives at an instant.
func (a stages) at(at clock.Time) *tally {
	last := len(a) - 1
	return &a[sort.Search(last, func(i int) bool { return at < a[i].end })]
}

// upTo is the stage of what is produced at an instant.
func (a stages) upTo(at clock.Time) *tally { return a.at(max(at, 1) - 1) }

// span counts what a span produces by the ends of its iterations.
func (a stages) span(power *model.StepPower, s event.Span) {
	for {
		t := a.upTo(s.End(1))
		n := s.N
		if s.End(n) > t.end {
			if n = s.FirstEndAtOrAfter(t.end + 1); s.End(n) > t.end {
				n--
			}
		}
		if n == s.N {
			t.bucket.span(&t.itl, &s, 0, power)
			return
		}
		first := head(&s, n)
		t.bucket.span(&t.itl, &first, 0, power)
	}
}

// finished counts a request.
func (a stages) finished(rec *event.Record) {
	if rec.FirstToken != clock.Never {
		a.upTo(rec.FirstToken).prefilled(rec)
	}
	if rec.Outcome != event.Completed {
		a.upTo(ended(rec)).failedOutput += int64(rec.Tokens)
		if _, sent := rec.Request.First(); !rec.Again {
			a.at(sent).failures++
		}
		return
	}
	a.upTo(rec.ClientLast).completions++
}

// stageResults are the stages that the run reached.
func (c summariser) stageResults() []report.Stage {
	results := []report.Stage{}
	if c.stages == nil {
		return results
	}
	for i := range c.stages[:len(c.stages)-1] {
		t := &c.stages[i]
		w := window{start: t.start, end: min(t.end, c.runEnd()), until: t.end}
		if w.end <= w.start {
			break
		}
		var s report.Summary
		c.rates(&s, &w, &t.bucket)
		c.latencies(&s, &w, &t.bucket, &t.detail)
		results = append(results, report.Stage{
			Name: t.name, StartS: w.start.Seconds(), EndS: w.end.Seconds(), Throughput: s.Throughput,
			Latency: s.Latency,
		})
	}
	return results
}
