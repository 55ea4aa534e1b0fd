package hours_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"clifftop/experiments/hours"
	"clifftop/experiments/scenario"
	"clifftop/sim/clock"
)

// queue is M/D/1 with services of one second.
const queue = `
step_time: {linear: {a_ms: 1000, b_us: 0}}
engine: {max_num_seqs: 1}
workload:
  arrivals: %s
  input: {distribution: fixed, value: 1}
  output: {distribution: fixed, value: 1}
`

func setup(t *testing.T, text string) *scenario.Setup {
	t.Helper()
	s, err := scenario.Parse("scenario.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func queueAt(t *testing.T, arrivals, slo string) *scenario.Setup {
	t.Helper()
	return setup(t, strings.Replace(queue, "%s", arrivals, 1)+"slo: "+slo+"\n")
}

// TestJudge: hours do not depend on the number of jobs or on the hours before them, and more load is never better.
func TestJudge(t *testing.T) {
	const slo = "{queue_p95: 8s}"
	judge := func(rate string, o hours.Options) []hours.Hour {
		list, err := hours.Judge(context.Background(), queueAt(t, "{process: poisson, rate: "+rate+"}", slo), o)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	all := judge("0.8", hours.Options{Hours: 12, Jobs: 4})
	again := judge("0.8", hours.Options{First: 5, Hours: 7, Jobs: 1})
	for i := range again {
		if !reflect.DeepEqual(again[i].Limits, all[5+i].Limits) || again[i].Seed != all[5+i].Seed {
			t.Errorf("hour %d: %+v alone, %+v among others", 5+i, again[i], all[5+i])
		}
	}
	for i := range all {
		s := all[i].Summary
		if w := s.Window; w.EndS-w.StartS < 3580 || w.StartS < 50 || s.Requests.InSystemAtEnd != 0 {
			t.Errorf("hour %d has the window %+v and leaves %d requests", i, w, s.Requests.InSystemAtEnd)
		}
		if all[i].Met != (all[i].Distance <= 0) {
			t.Errorf("hour %d: met %v at a distance of %v", i, all[i].Met, all[i].Distance)
		}
	}
	light, heavy := judge("0.5", hours.Options{}), judge("1.1", hours.Options{Hours: 12})
	e, f := hours.Weigh(light, .9), hours.Weigh(heavy, .9)
	if e.Verdict(.9) != hours.Yes || e.Met != 29 || f.Verdict(.9) != hours.No || f.Met != 0 {
		t.Errorf("light load: %+v, heavy load: %+v", e, f)
	}
}

// TestJudgeRefuses: what cannot be judged is one line that says what would do.
func TestJudgeRefuses(t *testing.T) {
	const poisson = "{process: poisson, rate: 0.5}"
	for _, c := range []struct {
		u    *scenario.Setup
		o    hours.Options
		want string
	}{
		{setup(t, "{}"), hours.Options{}, "there is no SLO"},
		{queueAt(t, poisson, "{tpot_p95: 1s}"), hours.Options{Hours: 1}, "no request of an hour has this metric"},
		{queueAt(t, poisson, "{ttft_p95: 1s}"), hours.Options{Horizon: clock.Second / 2}, "want 10.0 s or more"},
	} {
		_, err := hours.Judge(context.Background(), c.u, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%v, want one line with %q", err, c.want)
		}
	}
}
