package experiments_test

import (
	"context"
	"slices"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report"
)

// A result that rests on a preset without data behind it says so; one that replaces the preset's
// lengths, or uses a fitted preset, does not.
func TestJudgementIsLabelled(t *testing.T) {
	const arrivals = "arrivals: {process: poisson, rate: 1}"
	for text, labelled := range map[string]bool{
		"preset: ent-customer-support, " + arrivals: true,
		"preset: ent-customer-support, input: {distribution: fixed, value: 9}, output: {distribution: fixed, value: 9}, " + arrivals: false,
		"preset: chat-azure23, " + arrivals: false,
	} {
		s, err := scenario.Parse("judgement", []byte("run: {requests: 20}\nworkload: {"+text+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := experiments.Run(context.Background(), s, experiments.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(r.Summary.Warnings, func(w report.Warning) bool {
			return w.Code == "judgement"
		}); got != labelled {
			t.Errorf("%s: labelled %v, want %v", text, got, labelled)
		}
	}
}
