package experiments_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report"
	"clifftop/sim/engine"
)

func parse(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// md1 is a server that takes a second for each request, which has one token.
const md1 = "step_time: {linear: {a_ms: 1000, b_us: 0}}\nengine: {max_num_seqs: 1}\nworkload: {arrivals: {process: poisson, rate: 0.5}, input: {distribution: fixed, value: 1}, output: {distribution: fixed, value: 1}}\n"

func TestReplicateIsTheSameOnAnyNumberOfCores(t *testing.T) {
	var first []byte
	for _, jobs := range []int{1, 3} {
		s, err := experiments.Replicate(context.Background(), parse(t, md1+"run: {requests: 2000, precision: 5%}"),
			experiments.ReplicateOptions{Jobs: jobs})
		if err != nil {
			t.Fatal(err)
		}
		if b := asJSON(t, s); first == nil {
			first = b
		} else if !bytes.Equal(b, first) {
			t.Error("the number of jobs changes the result")
		}
	}
}

func TestReplicateStops(t *testing.T) {
	for _, c := range []struct {
		name, scenario, stopped string
		runs                    int // 0 for 6 or more
	}{
		{"count", md1 + "run: {requests: 300, replications: 3}", report.StoppedByCount, 3},
		{"precision", md1 + "run: {requests: 300, precision: 5%}", report.StoppedByPrecision, 0},
		{"cap", md1 + "run: {requests: 300, precision: 0.1%, replications: 12}", report.StoppedByCap, 12},
		{"overload", strings.Replace(md1, "rate: 0.5", "rate: 2", 1) + "run: {requests: 1000, precision: 5%}",
			report.StoppedByOverload, 5},
		{"alike", strings.Replace(md1, "process: poisson", "process: constant",
			1) + "run: {requests: 300, precision: 5%}", report.StoppedByAlike, 5},
	} {
		s, err := experiments.Replicate(context.Background(), parse(t, c.scenario), experiments.ReplicateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r := s.Replications
		if r.Stopped != c.stopped || c.runs > 0 && r.Runs != c.runs || c.runs == 0 && r.Runs < 6 {
			t.Errorf("%s: stopped after %d runs by %s", c.name, r.Runs, r.Stopped)
		}
		if c.stopped == report.StoppedByPrecision && *r.HalfWidth > .05/1.05 {
			t.Errorf("the widest interval is ±%v", *r.HalfWidth)
		}
	}
}

func TestReplicateSingleIsARun(t *testing.T) {
	s := parse(t, md1+"run: {requests: 300}")
	one, err := experiments.Replicate(context.Background(), s, experiments.ReplicateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := experiments.Run(context.Background(), s, experiments.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(asJSON(t, one), asJSON(t, r.Summary)) {
		t.Error("one replication is not the run")
	}
}

func TestReplicateRefuses(t *testing.T) {
	for _, o := range []experiments.ReplicateOptions{{Replications: -1}, {Precision: 2},
		{Precision: .02, Replications: 3}} {
		if _, err := experiments.Replicate(context.Background(), parse(t, "{}"), o); !yamldoc.BadInput(err) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, text := range []string{"run: {precision: 0}", "run: {precision: 1%, replications: 1}",
		"run: {replications: 0}"} {
		if _, err := scenario.Parse("s.yaml", []byte(text)); !yamldoc.BadInput(err) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestReplicateInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s, err := experiments.Replicate(ctx, parse(t, md1+"run: {requests: 2000, replications: 50}"),
		experiments.ReplicateOptions{Jobs: 1, Progress: func(done, _ int) {
			if done == 3 {
				cancel()
			}
		}})
	if err == nil || s == nil || !s.Partial || s.Replications.Stopped != report.StoppedByInterrupt ||
		s.Replications.Runs >= 50 {
		t.Errorf("error %v, summary %+v", err, s)
	}
}

// A change of the resolved configuration holds in every replication.
func TestReplicationsKeepTheConfig(t *testing.T) {
	for _, deployment := range []string{"", "deployment: {replicas: 2}\n"} {
		u, err := parse(t, "gpu: h100\nworkload: {arrivals: {rate: 20}}\nrun: {requests: 300}\n"+deployment).Resolve()
		if err != nil {
			t.Fatal(err)
		}
		u = u.Configured(func(c *engine.Config) { c.MaxNumSeqs = 2 })
		for k := range 3 {
			v, err := u.Reseeded(k)
			if err != nil {
				t.Fatal(err)
			}
			r, err := experiments.RunSetup(context.Background(), v, experiments.RunOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if most := *r.Summary.Concurrency.Running.Max; most > float64(2*max(1, v.Scenario.Deployment.Replicas)) {
				t.Errorf("replication %d runs %v requests at once", k, most)
			}
		}
	}
}
