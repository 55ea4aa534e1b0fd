package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/sweep"
	"clifftop/report/curve"
)

//go:embed traffic.yaml
var traffics []byte

// layouts are ways to use four GPUs, each a replica.
var layouts = []struct {
	name string
	set  scenario.Setting
}{
	{"4 do both", scenario.Setting{Key: "deployment.replicas", Value: "4"}},
	{"1 prefill, 3 decode", divided(1)},
	{"2 prefill, 2 decode", divided(2)},
	{"3 prefill, 1 decode", divided(3)},
}

// divided returns the pools of a split: this number of prefill GPUs, of four.
func divided(prompts int) scenario.Setting {
	return scenario.Setting{Key: "pools", Value: fmt.Sprintf(
		"[{name: prefill, role: prefill, replicas: %d}, {name: decode, role: decode, replicas: %d}]", prompts,
		4-prompts)}
}

// objectives are limits that nine of ten requests must meet.
var objectives = []struct{ name, slo string }{
	{"a token every 12 ms", "{ttft_p90: 2s, tpot_p90: 12ms, attainment: 0.9}"},
	{"a token every 50 ms", "{ttft_p90: 2s, tpot_p90: 50ms, attainment: 0.9}"},
}

// traffic is a kind of traffic, and the capacities found for it, by layout and objective.
type traffic struct {
	scenario   *scenario.Scenario
	capacities [][]*curve.Capacity
}

func readTraffics() ([]*traffic, error) {
	var list []*traffic
	for _, doc := range bytes.Split(traffics, []byte("\n---\n")) {
		s, err := scenario.Parse("traffic.yaml", doc)
		if err != nil {
			return nil, err
		}
		list = append(list, &traffic{scenario: s})
	}
	return list, nil
}

func (t *traffic) with(layout, objective int, more ...scenario.Setting) (*scenario.Scenario, error) {
	return t.scenario.With(append([]scenario.Setting{layouts[layout].set,
		{Key: "slo", Value: objectives[objective].slo}}, more...)...)
}

// run finds the capacities.
func (t *traffic) run(ctx context.Context) error {
	t.capacities = make([][]*curve.Capacity, len(layouts))
	for i := range layouts {
		t.capacities[i] = make([]*curve.Capacity, len(objectives))
	}
	return experiments.Parallel(ctx, len(layouts)*len(objectives), 0, nil, func(ctx context.Context, n int) error {
		i, k := n/len(objectives), n%len(objectives)
		s, err := t.with(i, k)
		if err != nil {
			return err
		}
		c, err := sweep.Capacity(ctx, s,
			sweep.CapacityOptions{Over: "rate", Jobs: 1})
		if err != nil {
			return fmt.Errorf("%s, %s: %w", layouts[i].name, objectives[k].name, err)
		}
		t.capacities[i][k] = c
		return nil
	})
}

// of returns the rate at which a layout was shown to meet an objective; 0 if there is none.
func (t *traffic) of(layout, objective int) float64 {
	if p := t.capacities[layout][objective].Passes; p != nil {
		return *p
	}
	return 0
}
