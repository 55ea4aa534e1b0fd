package route

import (
	"clifftop/sim/clock"
	"clifftop/workload"
)

// fake is a view of endpoints that a test describes.
type fake struct {
	now        clock.Time
	generation int
	ends       []endpoint
}

type endpoint struct {
	replica int
	Metrics
	Sent
	cached int32
}

// fleet is n idle endpoints.
func fleet(n int) *fake {
	v := new(fake)
	for i := range n {
		v.ends = append(v.ends, endpoint{replica: i, Metrics: Metrics{UsableBlocks: 1000}})
	}
	return v
}

func (v *fake) Now() clock.Time                         { return v.now }
func (v *fake) Len() int                                { return len(v.ends) }
func (v *fake) Replica(k int) int                       { return v.ends[k].replica }
func (v *fake) Metrics(k int) Metrics                   { return v.ends[k].Metrics }
func (v *fake) Sent(k int) Sent                         { return v.ends[k].Sent }
func (v *fake) Cached(k int, _ *workload.Request) int32 { return v.ends[k].cached }
func (v *fake) Generation() int                         { return v.generation }

// send routes a request and counts it, as the engine does.
func (v *fake) send(p Router, r *workload.Request) int {
	k := p.Route(v, r)
	s := &v.ends[k].Sent
	s.Outstanding++
	s.SinceScrape++
	s.OutstandingTokens += int64(r.InputTokens) + int64(r.OutputTokens)
	return k
}
