package sweep

import (
	"context"
	"testing"

	"clifftop/experiments/scenario"
)

// A server with room for four requests turns nearly all of 64 users away who ask again at once, and none of four.
func TestProbeIsHammered(t *testing.T) {
	u, err := mustParse(t, "workload: {arrivals: {process: closed, users: 1}}\nengine: {max_num_queued_reqs: 4}\n").Resolve()
	if err != nil {
		t.Fatal(err)
	}
	for users, want := range map[int]bool{4: false, 64: true} {
		if o, err := probeAt(context.Background(), (scenario.ProbeLoad{Users: users, Seconds: 20}), u); err != nil ||
			o.hammered != want || o.throughput == 0 {
			t.Errorf("%d users: %+v, %v", users, o, err)
		}
	}
}
