package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Effort counts the requests that were simulated for a result.
type Effort struct {
	// Requests is the number of requests of the runs that the result shows.
	Requests int64 `json:"requests"`
	// SearchRequests is the number of requests that were simulated only to find the saturation of the system, or a
	// length or a load to run.
	SearchRequests int64 `json:"search_requests"`
	// RepeatedRequests is the number of requests of runs that a longer run has replaced.
	RepeatedRequests int64 `json:"repeated_requests"`
	// SearchNeedsRequests is the number of requests that a search for the saturation would take at least. It is 0
	// unless the verdict depends on such a search, and the run is too short to allow it.
	SearchNeedsRequests int64 `json:"search_needs_requests,omitempty"`
	// Compositions is the number of iterations that the engines composed, empty ones included; equal iterations in a
	// row are composed once. The plain cycle made PlainCompositions of them. FirstGeneral is why the first other one
	// was not plain. SpanEnds counts compositions, without empty ones, by why they were not repeated further. These are
	// given only if they are asked for.
	Compositions      int64            `json:"compositions,omitempty"`
	PlainCompositions int64            `json:"plain_compositions,omitempty"`
	FirstGeneral      string           `json:"first_general,omitempty"`
	SpanEnds          map[string]int64 `json:"span_ends,omitempty"`
}

// Add adds the requests of another result.
func (e *Effort) Add(more Effort) {
	e.Requests += more.Requests
	e.SearchRequests += more.SearchRequests
	e.RepeatedRequests += more.RepeatedRequests
}

// String says how the iterations were composed. There must be some.
func (e *Effort) String() string {
	text := fmt.Sprintf("%.1f %% of %d compositions are plain",
		100*float64(e.PlainCompositions)/float64(e.Compositions), e.Compositions)
	if e.FirstGeneral != "" {
		text += "; the first other one has " + e.FirstGeneral
	}
	ends := slices.Collect(maps.Keys(e.SpanEnds))
	slices.SortFunc(ends, func(a, b string) int {
		return cmp.Or(cmp.Compare(e.SpanEnds[b], e.SpanEnds[a]), cmp.Compare(a, b))
	})
	all := int64(0)
	for _, n := range e.SpanEnds {
		all += n
	}
	for i, why := range ends {
		if i == 0 {
			text += "; spans end because of: "
		} else {
			text += ", "
		}
		text += fmt.Sprintf("%s %.0f %%", why, 100*float64(e.SpanEnds[why])/float64(all))
	}
	return text
}
