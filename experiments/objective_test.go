package experiments

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"clifftop/report"
	"clifftop/sim/clock"
)

func TestObjective(t *testing.T) {
	s := mustParse(t, "slo: {tpot_p99_9: 80ms, ttft_p95: 1m30s, e2e_mean: 0, attainment: 0.9, wait_probability: 0.25}")
	got, err := s.SLO.objective()
	if err != nil {
		t.Fatal(err)
	}
	quarter := .25
	want := &report.SLO{
		Objectives: []report.Objective{
			{Metric: "e2e"}, {Metric: "tpot", Percentile: 99.9, Limit: 80 * clock.Millisecond}, {Metric: "ttft", Percentile: 95, Limit: 90 * clock.Second},
		},
		Attainment: .9, WaitProbability: &quarter,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, o := range got.Objectives {
		if _, ok := s.SLO.Limits[o.Key()]; !ok {
			t.Errorf("%s is a key of its own", o.Key())
		}
	}
	if none, err := Default().SLO.objective(); none != nil || err != nil {
		t.Errorf("%+v, %v", none, err)
	}
	if text, err := json.Marshal(Default().SLO); string(text) != "null" || err != nil {
		t.Errorf("%s, %v", text, err)
	}
}

// A scenario made in Go has not been through the parser.
func TestObjectiveMadeInGo(t *testing.T) {
	two := 2.
	for _, slo := range []SLO{
		{Limits: map[string]Duration{"speed_p95": 1}}, {Limits: map[string]Duration{"ttft": 1}}, {Limits: map[string]Duration{"ttft_p100": 1}},
		{Limits: map[string]Duration{"ttft_p95": -1}}, {Attainment: &two}, {WaitProbability: &two},
	} {
		s := Default()
		s.SLO = slo
		if _, err := s.Resolve(); err == nil || !strings.HasPrefix(err.Error(), "slo: ") {
			t.Errorf("%+v: %v", slo, err)
		}
	}
}
