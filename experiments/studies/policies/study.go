package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"strconv"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/steady"
	"clifftop/report"
)

//go:embed traffic.yaml
var traffics []byte

// policies of the study, in the order of its tables.
var policies = []string{
	"vllm", "sarathi", "sglang", "vllm-v0", "tgi",
	"trtllm-guaranteed-no-evict", "trtllm-max-utilization", "trtllm-static", "orca", "static",
}

// loads are fractions of the rate at which vllm saturates.
var loads = []float64{0.5, 0.8, 1, 1.2}

// traffic is a kind of traffic, and its results by policy and load.
type traffic struct {
	name       string
	scenario   *scenario.Scenario
	saturation float64             // of vllm, requests per second
	results    [][]*report.Summary // by policy and load
}

func readTraffics() ([]*traffic, error) {
	var list []*traffic
	for _, doc := range bytes.Split(traffics, []byte("\n---\n")) {
		s, err := scenario.Parse("traffic.yaml", doc)
		if err != nil {
			return nil, err
		}
		list = append(list, &traffic{name: s.Name, scenario: s})
	}
	return list, nil
}

// run simulates the traffic with the policies at all loads, with this number of requests each.
func (t *traffic) run(ctx context.Context, names []string, requests int) error {
	var err error
	if t.saturation, err = steady.Throughput(ctx, t.scenario); err != nil {
		return err
	}
	t.results = make([][]*report.Summary, len(names))
	for i := range names {
		t.results[i] = make([]*report.Summary, len(loads))
	}
	return experiments.Parallel(ctx, len(names)*len(loads), 0, nil, func(ctx context.Context, n int) error {
		i, k := n/len(loads), n%len(loads)
		s, err := t.scenario.With(
			scenario.Setting{Key: "engine.policy", Value: names[i]},
			scenario.Setting{Key: scenario.RateKey, Value: strconv.FormatFloat(loads[k]*t.saturation, 'f', 6, 64)},
			scenario.Setting{Key: "run.requests", Value: strconv.Itoa(requests)},
		)
		if err != nil {
			return err
		}
		r, err := experiments.Run(ctx, s, experiments.RunOptions{})
		if err != nil {
			return fmt.Errorf("%s at %g of saturation: %w", names[i], loads[k], err)
		}
		t.results[i][k] = r.Summary
		return nil
	})
}
