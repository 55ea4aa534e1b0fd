package table

import (
	"strings"
	"testing"

	"clifftop/report"
	"clifftop/report/layout"
)

// TestReplicaTables wants a short table of many replicas.
func TestReplicaTables(t *testing.T) {
	for _, k := range []struct{ pools, replicas, rows int }{{1, 2, 2}, {2, 4, 4}, {1, 64, 3}, {3, 64, 5}, {20, 40, 2}} {
		s := &report.Summary{}
		for i := range k.replicas {
			s.Replicas = append(s.Replicas, report.Replica{Index: i, Pool: strings.Repeat("x", i%k.pools)})
		}
		text := &layout.Text{}
		replicaGrid(s, text)
		if n := strings.Count(text.String(), "\n"); n != k.rows+2 { // a heading, and an empty line
			t.Errorf("%d replicas in %d pools:\n%s", k.replicas, k.pools, text)
		}
	}
}
