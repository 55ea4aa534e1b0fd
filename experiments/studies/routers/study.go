package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report"
)

//go:embed conversations.yaml
var conversationsYAML []byte

// seeds are the seeds of the runs of every system. The loads were chosen with seed 1.
var seeds = []uint64{2, 3, 4, 5, 6}

// choice is a variant: a name, and the keys of the scenario that it sets.
type choice struct {
	name string
	set  []scenario.Setting
}

// contest is a list of systems at the same points, each with the same seeds.
type contest struct {
	name, question string
	scenario       *scenario.Scenario
	systems        []choice // the others are compared with the first one
	points         []choice
	shown          int // the point that the title of the picture speaks of

	seeds   []uint64
	runs    [][][]*report.Summary // by system, point and seed
	refused []string              // by system: why it does not go with the traffic
}

func router(name, value string) choice {
	if value == "" {
		value = "{policy: " + name + "}"
	}
	return choice{name, []scenario.Setting{{Key: "deployment.router", Value: value}}}
}

// routers returns all routers with default options, and some again with an option that matters.
func routers() ([]choice, error) {
	known, err := experiments.Catalog("routers")
	if err != nil {
		return nil, err
	}
	var list []choice
	for _, k := range known.Items {
		list = append(list, router(k.Name, ""))
		switch k.Name {
		case "bounded-hash":
			list = append(list, router("bounded-hash, 2,048 tokens",
				"{policy: bounded-hash, by: prefix, prefix_tokens: 2048}"))
		case "prefix":
			list = append(list, router("prefix, from 1,024 tokens", "{policy: prefix, min_tokens: 1024}"))
		}
	}
	return list, nil
}

// rates returns loads in requests per second.
func rates(perSecond ...float64) (list []choice) {
	for _, r := range perSecond {
		text := strconv.FormatFloat(r, 'g', -1, 64)
		list = append(list, choice{text + " requests/s", []scenario.Setting{{Key: scenario.RateKey, Value: text}}})
	}
	return list
}

// shootout compares all routers at three loads.
func shootout(s *scenario.Scenario, all []choice) *contest {
	c := &contest{name: s.Name, scenario: s, systems: all, shown: 2, points: rates(12, 18, 24),
		question: "All routers, one front end."}
	if s.Workload.Trace != nil {
		c.points = nil
		for _, speed := range []string{"1", "1.2"} {
			c.shown = 0
			c.points = append(c.points, choice{speed + " × the recorded speed",
				[]scenario.Setting{{Key: "workload.trace.speedup", Value: speed}}})
		}
	}
	return c
}

// hour is the scenario of the recorded hour. Its model is large enough to keep eight replicas of four GPUs busy.
const hour = `
name: recorded
model: llama-3.1-70b
gpu: h100-sxm
deployment: {replicas: 8, tensor_parallel_size: 4, dtype: fp8}
workload: {trace: {file: %q}}
slo: {ttft_p95: 5s, tpot_p95: 50ms}
run: {warmup: 10m}
`

// recorded returns the traffic of a trace.
func recorded(file string) (*scenario.Scenario, error) {
	return scenario.Parse("recorded", fmt.Appendf(nil, hour, file))
}

// staleness compares routers that use scraped metrics, with older and older metrics, and two routers that do not.
func staleness(s *scenario.Scenario) *contest {
	c := &contest{name: "stale", scenario: s, shown: 3,
		question: "Scraped metrics have this age. 18 requests/s, one front end."}
	c.systems = []choice{
		router("random", ""),
		router("least-requests", ""),
		router("least-queue", ""),
		router("least-queue, local", "{policy: least-queue, local: true}"),
		router("least-queue and batch", "{policy: least-queue, running: true}"),
		router("least-queue and batch, local", "{policy: least-queue, running: true, local: true}"),
		router("least-kv", ""),
		router("power-of-two, scraped", "{policy: power-of-two, load: scraped}"),
		router("vllm-dp", ""),
		router("llm-d", ""),
	}
	for _, period := range []string{"0ms", "100ms", "1s", "10s"} {
		c.points = append(c.points, choice{period,
			[]scenario.Setting{{Key: "deployment.router.scrape", Value: period}}})
	}
	return c
}

// frontEnds compares routers with several front ends, which do not know each other.
func frontEnds(s *scenario.Scenario) *contest {
	c := &contest{name: "front-ends", scenario: s, shown: 2,
		question: "Several front ends that do not know each other. 18 requests/s."}
	for _, name := range []string{"round-robin", "power-of-two", "least-requests", "least-tokens", "session",
		"bounded-hash", "sglang", "kv-aware", "llm-d", "dynamo"} {
		c.systems = append(c.systems, router(name, ""))
	}
	for _, n := range []string{"1", "4", "16"} {
		c.points = append(c.points, choice{n + " front ends",
			[]scenario.Setting{{Key: "deployment.router.front_ends", Value: n}}})
	}
	c.points[0].name = "1 front end"
	return c
}

func (c *contest) at(system, point int, more ...scenario.Setting) (*scenario.Scenario, error) {
	var set []scenario.Setting
	for _, list := range [][]scenario.Setting{c.systems[system].set, c.points[point].set, more} {
		set = append(set, list...)
	}
	return c.scenario.With(set...)
}

// run simulates all systems at all points.
func (c *contest) run(ctx context.Context, seeds []uint64, more ...scenario.Setting) error {
	c.seeds, c.refused = seeds, make([]string, len(c.systems))
	c.runs = make([][][]*report.Summary, len(c.systems))
	var todo [][3]int
	for i := range c.systems {
		c.runs[i] = make([][]*report.Summary, len(c.points))
		s, err := c.at(i, 0, more...)
		if err == nil {
			_, err = s.Resolve()
		}
		var why yamldoc.Faults
		if errors.As(err, &why) && strings.HasPrefix(why[0].Key, "deployment.router") {
			c.refused[i] = why[0].Problem
			continue
		}
		if err != nil {
			return err
		}
		for k := range c.points {
			c.runs[i][k] = make([]*report.Summary, len(seeds))
			for n := range seeds {
				todo = append(todo, [3]int{i, k, n})
			}
		}
	}
	return experiments.Parallel(ctx, len(todo), 0, nil, func(ctx context.Context, n int) error {
		i, k, of := todo[n][0], todo[n][1], todo[n][2]
		s, err := c.at(i, k, append(more[:len(more):len(more)],
			scenario.Setting{Key: "run.seed", Value: strconv.FormatUint(seeds[of], 10)})...)
		if err != nil {
			return err
		}
		r, err := experiments.Run(ctx, s, experiments.RunOptions{})
		if err != nil {
			return fmt.Errorf("%s, %s: %w", c.systems[i].name, c.points[k].name, err)
		}
		c.runs[i][k][of] = r.Summary
		return nil
	})
}
