package steady

import (
	"context"
	"testing"

	"clifftop/experiments/scenario"
)

// A server with room for four requests turns nearly all of 64 users away who ask again at once, and none of four.
func TestProbeIsHammered(t *testing.T) {
	s, err := scenario.Parse("scenario.yaml", []byte("workload: {arrivals: {process: closed, users: 1}}\nengine: {max_num_queued_reqs: 4}\n"))
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	for users, want := range map[int]bool{4: false, 64: true} {
		if o, err := probeAt(context.Background(), scenario.ProbeLoad{Users: users, Seconds: 20}, u,
			u.StandingFleet(false)); err != nil ||
			o.hammered != want || o.throughput == 0 {
			t.Errorf("%d users: %+v, %v", users, o, err)
		}
	}
}
