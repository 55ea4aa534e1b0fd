package validation

import (
	"cmp"
	"slices"

	"clifftop/experiments"
	"clifftop/report"
	"clifftop/sim/event"
)

// States are the state of a simulated system over time.
type States struct {
	// Series are buckets of time: of the whole system, and KV use is the mean of its replicas.
	Series []report.SeriesPoint
	// Lookups are the prompts that were looked up in the prefix cache, in order of time.
	Lookups []Lookup
	// Ended reports whether all requests had ended before the run did.
	Ended bool
}

// Lookup is a prompt that was looked up in the prefix cache.
type Lookup struct {
	AtS            float64 // first admission, in seconds from the start of the run
	Tokens, Cached int32   // of the prompt
}

// watch makes a run collect lookups.
func (s *States) watch(o *experiments.RunOptions) {
	o.Finished = func(r *event.Record) {
		if r.Scheduled > 0 || r.FirstToken > 0 {
			s.Lookups = append(s.Lookups, Lookup{AtS: r.Scheduled.Seconds(), Tokens: r.Request.InputTokens,
				Cached: r.CachedTokens})
		}
	}
}

// complete takes the buckets of a run.
func (s *States) complete(r *experiments.Result) {
	s.Series = r.Series
	slices.SortStableFunc(s.Lookups, func(a, b Lookup) int { return cmp.Compare(a.AtS, b.AtS) })
	arrived, ended := int64(0), int64(0)
	for i := range s.Series {
		arrived, ended = arrived+s.Series[i].Arrivals, ended+s.Series[i].Completions
	}
	s.Ended = ended >= arrived
}
