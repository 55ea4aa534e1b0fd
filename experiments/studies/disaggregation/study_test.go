package main

import (
	"context"
	"strconv"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
)

// TestOrderings runs single rates, and asserts which layouts meet the objective.
func TestOrderings(t *testing.T) {
	list, err := readTraffics()
	if err != nil {
		t.Fatal(err)
	}
	const (
		together         = 0
		strict, lenient  = 0, 1
		chat, docs, long = 0, 1, 2
	)
	attainment := func(traffic, layout, objective int, rate float64) float64 {
		s, err := list[traffic].with(layout, objective,
			scenario.Setting{Key: scenario.RateKey, Value: strconv.FormatFloat(rate, 'g', -1, 64)},
			scenario.Setting{Key: "run.requests", Value: "800"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := experiments.Run(context.Background(), s, experiments.RunOptions{Check: true})
		if err != nil {
			t.Fatal(err)
		}
		return *r.Summary.Goodput.Attainment
	}
	for _, c := range []struct {
		traffic, objective int
		rate               float64
		meets, misses      []int // layouts, by their GPUs for prompts
	}{
		{docs, strict, 17, []int{2}, []int{together, 1, 3}},
		{docs, lenient, 25, []int{together}, []int{1, 2, 3}},
		{chat, strict, 90, []int{1}, []int{2, 3}},
		{long, lenient, 30, []int{together}, []int{2, 3}}, // with one for prompts the queue grows slowly
	} {
		name := list[c.traffic].scenario.Name + ", " + objectives[c.objective].name
		for _, i := range c.meets {
			if a := attainment(c.traffic, i, c.objective, c.rate); a < .9 {
				t.Errorf("%s: %s meets it for %.2f of %v requests/s", name, layouts[i].name, a, c.rate)
			}
		}
		for _, i := range c.misses {
			if a := attainment(c.traffic, i, c.objective, c.rate); a >= .9 {
				t.Errorf("%s: %s meets it for %.2f of %v requests/s", name, layouts[i].name, a, c.rate)
			}
		}
	}
}
