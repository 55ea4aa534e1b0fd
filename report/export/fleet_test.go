package export_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// pools of the scenario "lives": replicas, and GPUs of each.
var livePools = []struct {
	name              string
	first, last, gpus int
}{{"large", 0, 2, 2}, {"small", 3, 6, 1}}

// at is the state of a replica at an instant, what was told at that instant included.
func (s *states) at(replica int, at clock.Time) (state event.State) {
	for _, e := range s.entered {
		if e.replica == replica && e.at <= at {
			state = e.state
		}
	}
	return state
}

// started reports whether a replica was started between two instants, in seconds.
func (s *states) started(replica int, from, to float64) bool {
	return slices.ContainsFunc(s.entered, func(e entered) bool {
		return e.replica == replica && e.state == event.Starting && e.at.Seconds() >= from && e.at.Seconds() <= to
	})
}

// spent is how long a replica was in each state until an instant, and how long its GPUs worked in all and while it was
// down.
func (s *states) spent(replica int, until clock.Time) (in [event.States]clock.Duration, busy, busyDown clock.Duration) {
	state, since := event.Ready, clock.Time(0)
	to := func(at clock.Time) {
		in[state] += at.Sub(since)
		for _, w := range s.spans {
			if part := min(w.end, at).Sub(max(w.start, since)); w.replica == replica && part > 0 {
				if busy += part; state == event.Down {
					busyDown += part
				}
			}
		}
		since = at
	}
	for _, e := range s.entered {
		if e.replica == replica && e.at < until {
			to(e.at)
			state = e.state
		}
	}
	to(until)
	return in, busy, busyDown
}

// last is when the last iteration ended.
func (s *states) last() (at clock.Time) {
	for _, w := range s.spans {
		at = max(at, w.end)
	}
	return at
}

// TestReplicaMetrics holds the numbers of replicas and the GPU time that is paid for to what the run tells of states
// and iterations, at every sample.
func TestReplicaMetrics(t *testing.T) {
	r := one(t, "lives")
	series, types := readSamples(t, openMetrics(t, r.metrics))
	if types["clifftop_gpu_seconds"] != "counter" || types["kube_deployment_status_replicas_ready"] != "gauge" {
		t.Errorf("%v", types)
	}
	last := r.states.last()
	var seen, worked [event.States]int
	for _, pool := range livePools {
		labels := fmt.Sprintf(`deployment="%s",namespace="clifftop"`, pool.name)
		get := func(name, more string) []sample {
			t.Helper()
			list := series[name+"{"+labels+more+"}"]
			if len(list) < 100 {
				t.Fatalf("%s%s of %s has %d samples", name, more, pool.name, len(list))
			}
			return list
		}
		for k := range get("clifftop_replicas", `,state="ready"`) {
			at := clock.Time(k) * clock.Time(r.metrics.Interval().Nanoseconds()*1000)
			var n [event.States]int
			var want [4]float64 // busy, idle, starting, down
			for i := pool.first; i <= pool.last; i++ {
				n[r.states.at(i, at)]++
				in, busy, busyDown := r.states.spent(i, at)
				serves := in[event.Ready] + in[event.Draining]
				for mode, d := range [...]clock.Duration{busy, serves - busy + busyDown, in[event.Starting],
					in[event.Down] - busyDown} {
					want[mode] += d.Seconds() * float64(pool.gpus)
				}
				if busyDown > 0 {
					worked[event.Down]++
				}
			}
			for name, count := range map[string]int{
				"kube_deployment_status_replicas":             n[event.Ready] + n[event.Starting] + n[event.Down],
				"kube_deployment_status_replicas_ready":       n[event.Ready],
				"kube_deployment_status_replicas_available":   n[event.Ready],
				"kube_deployment_status_replicas_unavailable": n[event.Starting] + n[event.Down],
				"kube_deployment_status_replicas_terminating": n[event.Draining],
			} {
				if got := get(name, "")[k].value; got != float64(count) {
					t.Fatalf("%s of %s is %v at %v, want %d", name, pool.name, got, at, count)
				}
			}
			for s := range event.States {
				seen[s] += n[s]
				if got := get("clifftop_replicas", `,state="`+s.String()+`"`)[k].value; got != float64(n[s]) {
					t.Fatalf("%v replicas of %s are %v at %v, want %d", got, pool.name, s, at, n[s])
				}
			}
			for mode, name := range []string{"busy", "idle", "starting", "down"} {
				if at > last {
					break // what is paid for ends with the run
				}
				if got := get("clifftop_gpu_seconds_total",
					`,mode="`+name+`"`)[k].value; math.Abs(got-want[mode]) > 1e-6 {
					t.Fatalf("%v GPU seconds of %s were %s until %v, want %v", got, pool.name, name, at, want[mode])
				}
			}
		}
		for i := pool.first; i <= pool.last; i++ {
			list := series[key("healthy_pods_total", i, fmt.Sprintf(`,server="replica %d"`, i))]
			for k, s := range list {
				at := clock.Time(k) * clock.Time(r.metrics.Interval().Nanoseconds()*1000)
				if ready := r.states.at(i, at) == event.Ready; ready != (s.value == 1) {
					t.Fatalf("replica %d: %v at %v", i, s.value, at)
				}
			}
			if len(list) == 0 {
				t.Fatalf("replica %d is not told of", i)
			}
		}
	}
	for s, n := range seen {
		if n == 0 {
			t.Errorf("no replica is ever %v at a sample", event.State(s))
		}
	}
	if worked[event.Down] == 0 {
		t.Error("no iteration outlives its replica")
	}
}

// TestReplicaMetricsAddUp compares the last values with the summary, of a run that is stopped while requests are there.
func TestReplicaMetricsAddUp(t *testing.T) {
	r := runAll(t, strings.Replace(scenarios["lives"], "requests: 2500", "duration: 3m", 1))
	series, _ := readSamples(t, text(t, r.metrics))
	var paid, idle float64
	for name, list := range series {
		if strings.HasPrefix(name, "clifftop_gpu_seconds_total{") {
			paid += list[0].value
			if !strings.Contains(name, `mode="busy"`) {
				idle += list[0].value
			}
		}
	}
	s := r.result.Summary
	want := s.System.Replicas
	if s.Window.StartS != 0 || s.Window.EndS != 180 {
		t.Fatalf("the window is %+v", s.Window)
	}
	if math.Abs(paid/3600-*want.GPUHours) > 1e-9**want.GPUHours ||
		math.Abs(idle/3600-*want.IdleGPUHours) > 1e-9**want.GPUHours {
		t.Errorf("%v GPU hours, %v of them idle, want %v and %v", paid/3600, idle/3600, *want.GPUHours,
			*want.IdleGPUHours)
	}
}

// TestReplicaMetricsAreForLives makes sure that fleets without a lifecycle tell nothing of states.
func TestReplicaMetricsAreForLives(t *testing.T) {
	if all := text(t, one(t, "fleet").metrics); strings.Contains(all, "kube_") || strings.Contains(all, "clifftop_") ||
		strings.Contains(all, "healthy") {
		t.Error("replicas that are always there are told of")
	}
}
