package table

import (
	"cmp"
	"fmt"
	"slices"

	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/report/stats"
)

// Tables show so many replicas one by one; of more, the pools and the extremes. Of more pools, the extremes alone.
const (
	fewReplicas = 8
	fewPools    = 6
)

// replicaGrid has a row for each replica, or where these are many for each pool, the least and the most busy replica.
func replicaGrid(s *report.Summary, t *layout.Text) {
	if len(s.Replicas) == 0 {
		return
	}
	rows := [][]string{{"replica", "sent", "tok/s", "TTFTp50", "p95", "TPOTp50", "busy", "KVmax", "hits"}}
	if len(s.Replicas) <= fewReplicas {
		for i := range s.Replicas {
			rows = append(rows, replicaRow(&s.Replicas[i]))
		}
	} else {
		rows = append(rows, poolRows(s)...)
	}
	section(t, rows)
	if m := s.Imbalance; s.System.Replicas == nil && m != nil && m.Busy != nil && m.Requests != nil {
		t.Line("balance", fmt.Sprintf("of %d replicas the busiest is busy %s times as long as the average, and one "+
			"was sent %s times as many requests",
			len(s.Replicas), layout.Digits(*m.Busy), layout.Digits(*m.Requests)))
	}
}

func replicaRow(r *report.Replica) []string {
	name := fmt.Sprint(r.Index)
	if r.Pool != "" {
		name += " " + r.Pool
	}
	return replicaCells(r, name)
}

func replicaCells(r *report.Replica, name string) []string {
	return []string{name, fmt.Sprint(r.Requests.Sent), layout.Cell(r.Throughput.OutputTokensPerS),
		layout.Cell(r.Latency.TTFT.P50), layout.Cell(r.Latency.TTFT.P95),
		layout.Cell(r.Latency.TPOT.P50), layout.Cell(r.System.BusyFraction), layout.Cell(r.System.KVUsage.Max),
		layout.Cell(r.System.PrefixHitRate)}
}

// poolRows are the averages of each pool's replicas, and the least and the most busy replica of all.
func poolRows(s *report.Summary) [][]string {
	var names []string
	of := map[string][]*report.Replica{}
	for i := range s.Replicas {
		r := &s.Replicas[i]
		if of[r.Pool] == nil {
			names = append(names, r.Pool)
		}
		of[r.Pool] = append(of[r.Pool], r)
	}
	var rows [][]string
	if len(names) <= fewPools {
		for _, name := range names {
			rows = append(rows, replicaCells(average(of[name]), fmt.Sprintf("ø %s×%d", spaced(name), len(of[name]))))
		}
	}
	busy := func(a, b report.Replica) int {
		return cmp.Compare(known(a.System.BusyFraction), known(b.System.BusyFraction))
	}
	least, most := slices.MinFunc(s.Replicas, busy), slices.MaxFunc(s.Replicas, busy)
	return append(rows, replicaRow(&least), replicaRow(&most))
}

func spaced(name string) string {
	if name == "" {
		return ""
	}
	return name + " "
}

// known is a number, or 0 where it is not known.
func known(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// average is the average of replicas, as far as the table shows it. Percentiles are averages of percentiles.
func average(all []*report.Replica) *report.Replica {
	mean := func(get func(*report.Replica) *float64) *float64 {
		sum, n := 0.0, 0
		for _, r := range all {
			if v := get(r); v != nil {
				sum, n = sum+*v, n+1
			}
		}
		return stats.Ratio(sum, float64(n))
	}
	m := &report.Replica{}
	for _, r := range all {
		m.Requests.Sent += r.Requests.Sent
	}
	m.Requests.Sent /= int64(len(all))
	m.Throughput.OutputTokensPerS = mean(func(r *report.Replica) *float64 { return r.Throughput.OutputTokensPerS })
	m.Latency.TTFT.P50 = mean(func(r *report.Replica) *float64 { return r.Latency.TTFT.P50 })
	m.Latency.TTFT.P95 = mean(func(r *report.Replica) *float64 { return r.Latency.TTFT.P95 })
	m.Latency.TPOT.P50 = mean(func(r *report.Replica) *float64 { return r.Latency.TPOT.P50 })
	m.System.BusyFraction = mean(func(r *report.Replica) *float64 { return r.System.BusyFraction })
	m.System.KVUsage.Max = mean(func(r *report.Replica) *float64 { return r.System.KVUsage.Max })
	m.System.PrefixHitRate = mean(func(r *report.Replica) *float64 { return r.System.PrefixHitRate })
	return m
}

func replicaCountsText(r *report.ReplicaCounts) string {
	text := fmt.Sprintf("%s on average, %d at most: ready %s", layout.Cell(r.Mean), r.Max, layout.Cell(r.Ready))
	for _, x := range []struct {
		n    *float64
		what string
	}{{r.Starting, "starting"}, {r.Draining, "draining"}, {r.Down, "down"}} {
		if x.n != nil && *x.n > 0 {
			text += fmt.Sprintf(", %s %s", x.what, layout.Cell(x.n))
		}
	}
	if r.Held != nil && *r.Held > 0 {
		text += fmt.Sprintf("; %s requests waited for one", layout.Cell(r.Held))
	}
	return text + fmt.Sprintf("; %s GPU hours paid, %s of them idle", layout.Cell(r.GPUHours),
		layout.Cell(r.IdleGPUHours))
}
