package scenario

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report"
	"clifftop/sim/clock"
)

func TestObjective(t *testing.T) {
	s := parsed(t, "slo: {tpot_p99_9: 80ms, ttft_p95: 1m30s, e2e_mean: 0, attainment: 0.9, wait_probability: 0.25}")
	got, err := s.SLO.Objective()
	if err != nil {
		t.Fatal(err)
	}
	quarter := .25
	want := &report.SLO{
		Objectives: []report.Objective{
			{Metric: "e2e"}, {Metric: "tpot", Percentile: 99.9, Limit: 80 * clock.Millisecond},
			{Metric: "ttft", Percentile: 95, Limit: 90 * clock.Second},
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
	if none, err := Default().SLO.Objective(); none != nil || err != nil {
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
		{Limits: map[string]yamldoc.Duration{"speed_p95": 1}}, {Limits: map[string]yamldoc.Duration{"ttft": 1}},
		{Limits: map[string]yamldoc.Duration{"ttft_p100": 1}},
		{Limits: map[string]yamldoc.Duration{"ttft_p95": -1}}, {Attainment: &two}, {WaitProbability: &two},
	} {
		s := Default()
		s.SLO = slo
		if _, err := s.Resolve(); err == nil || !strings.HasPrefix(err.Error(), "slo: ") {
			t.Errorf("%+v: %v", slo, err)
		}
	}
}

// B6: a limit on the time of a token may be a speed, which is converted; but it must have a unit, since 5 may be
// either.
func TestObjectiveInTokensPerSecond(t *testing.T) {
	s := parsed(t, "slo: {tpot_p95: 5tok/s, itl_mean: 40tok/s, tpot_p50: 80ms}")
	for key, want := range map[string]clock.Duration{"tpot_p95": 200 * clock.Millisecond,
		"itl_mean": 25 * clock.Millisecond, "tpot_p50": 80 * clock.Millisecond} {
		if got := s.SLO.Limits[key].Clock(); got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	for text, want := range map[string]string{
		"slo: {tpot_p95: 5}":       "5 has no unit (want a time per token such as 200ms, or a speed such as 5tok/s)",
		"slo: {tpot_p95: 0tok/s}":  "is not a duration",
		"slo: {ttft_p95: 5tok/s}":  "is not a duration",
		"slo: {tpot_p95: -5tok/s}": "",
	} {
		if _, err := Parse("test", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func parsed(t *testing.T, text string) *Scenario {
	t.Helper()
	s, err := Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
