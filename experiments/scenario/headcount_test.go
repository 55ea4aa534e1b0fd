package scenario

import (
	"math"
	"strings"
	"testing"
)

// TestHeadcount: 3,600 people, half of whom take part and a tenth of these at the peak, are 180; two thirds send 2
// requests an hour and a third 8, so that there are 120·2 + 60·8 = 720 an hour.
func TestHeadcount(t *testing.T) {
	const file = `
workload:
  headcount:
    people: 3600
    adoption: 0.5
    active_at_peak: 0.1
    classes:
      - {preset: ent-technical-lookup, share: 2, requests_per_hour: 2, slo: {ttft_p95: 1s}}
      - {preset: ent-rnd-reasoning, share: 1, requests_per_hour: 8, priority: 1}
run: {requests: 1000}
`
	s, err := Parse("people.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	w := u.Scenario.Workload
	if rate := *w.Arrivals.Stages[0].Rate; math.Abs(rate-0.2) > 1e-12 {
		t.Errorf("%v requests per second, want 0.2", rate)
	}
	if len(w.Classes) != 2 || w.Classes[0].Weight != 4 || w.Classes[1].Weight != 8 || w.Classes[1].Sessions == nil ||
		w.Classes[1].Priority != 1 {
		t.Errorf("%+v", w.Classes)
	}
	if text := u.Warnings[0].Text; !strings.Contains(text,
		"are 180: technical-lookup 120 of 180 people at 2 an hour") ||
		!strings.Contains(text, "together 0.2 requests/s") {
		t.Error(text)
	}
	if s.Workload.Headcount == nil {
		t.Error("resolving changes the scenario")
	}
	for text, want := range map[string]string{
		"people: 0, adoption: 1, active_at_peak: 1":    "0 is not allowed",
		"people: 10, adoption: 1":                      "active_at_peak is missing",
		"people: 10, adoption: 1.5, active_at_peak: 1": "1.5 is not allowed",
		"people: 10, adoption: 1, active_at_peak: 1, classes: [{preset: ent-rnd-reasoning, share: 0, requests_per_hour: 1}]":  "no class sends requests",
		"people: 10, adoption: 1, active_at_peak: 1, classes: [{preset: ent-rnd, share: 1, requests_per_hour: 1}]":            "ent-rnd-reasoning",
		"people: 10, adoption: 1, active_at_peak: 1, classes: [{preset: ent-rnd-reasoning, share: -1, requests_per_hour: 1}]": "-1 is not allowed",
	} {
		s, err := Parse("people.yaml", []byte("workload: {headcount: {"+text+"}}"))
		if err == nil {
			_, err = s.Resolve()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
