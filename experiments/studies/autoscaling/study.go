package main

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report"
	"clifftop/workload"
)

//go:embed day.yaml
var dayFile []byte

// The targets were chosen with seed chosenOn. The results use the other seeds.
const chosenOn = 1

var seeds = []uint64{2, 3, 4, 5, 6}

// most is how many replicas an autoscaler may have.
const most = 12

// days are hourly profiles of the load, with the same mean.
var days = []string{"office-hours", "chat-azure24-weekday"}

// fleet is a rule for the number of replicas.
type fleet struct {
	name      string
	peak      bool   // as many as the peak takes
	mean      bool   // as many as the mean takes
	autoscale string // or a rule
	cold      string // another mean cold start
}

// Names of the fleets that the text mentions.
const (
	forMean        = "fixed, mean load"
	forPeak        = "fixed, peak load"
	kedaWaiting    = "KEDA, 5 waiting"
	kedaConcurrent = "KEDA, 12 requests"
	knative        = "Knative, 12 requests"
)

// fleets are the variants. A queue of 5 is the target in the example of vLLM's production stack. A replica has 12
// requests at 3/4 of the rate that it can serve within the limits.
var fleets = []fleet{
	{name: forMean, mean: true},
	{name: forPeak, peak: true},
	{name: "HPA, 1 waiting", autoscale: "policy: hpa, metric: waiting, target: 1"},
	{name: kedaWaiting, autoscale: "policy: keda, metric: waiting, target: 5, polling_interval: 15s"},
	{name: "KEDA, 40 % KV usage", autoscale: "policy: keda, metric: kv-usage, target: 0.4, polling_interval: 15s"},
	{name: "HPA, 12 requests", autoscale: "policy: hpa, metric: concurrency, target: 12"},
	{name: kedaConcurrent, autoscale: "policy: keda, metric: concurrency, target: 12, polling_interval: 15s"},
	{name: knative, autoscale: "policy: knative, target: 12, target_utilization: 1"},
}

// colds are the mean cold starts of the second question. One of them is the scenario's own.
var colds = []string{"30s", "3m", "10m"}

// started are the fleets of the second question.
var started = []string{kedaWaiting, kedaConcurrent, knative}

func named(name string) fleet {
	return fleets[slices.IndexFunc(fleets, func(f fleet) bool { return f.name == name })]
}

// study is a scenario and the sizes of its fixed fleets, by day.
type study struct {
	scenario   *scenario.Scenario
	mean, peak map[string]int
}

func set(key, value string) scenario.Setting {
	return scenario.Setting{Key: key, Value: value}
}

// newStudy finds the sizes of the fixed fleets: the smallest that meet the SLO for two hours at the mean rate and at
// the rate of the busiest hour.
func newStudy(ctx context.Context) (*study, error) {
	s, err := scenario.Parse("day.yaml", dayFile)
	if err != nil {
		return nil, err
	}
	x := &study{scenario: s, mean: map[string]int{}, peak: map[string]int{}}
	rate := *s.Workload.Arrivals.Stages[0].Rate
	base, err := x.smallest(ctx, rate, 1)
	if err != nil {
		return nil, err
	}
	for _, day := range days {
		x.mean[day] = base
		if x.peak[day], err = x.smallest(ctx, rate*peakOf(day), base); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// peakOf returns the load of the busiest hour of a day, in units of the mean.
func peakOf(day string) float64 {
	for _, p := range workload.HourlyProfiles() {
		if p.Name == day {
			sum := 0.0
			for _, h := range p.Hourly {
				sum += h
			}
			return slices.Max(p.Hourly) / (sum / float64(len(p.Hourly)))
		}
	}
	return 0
}

// smallest returns the smallest number of replicas, starting at least, that meets the SLO at a steady rate.
func (x *study) smallest(ctx context.Context, rate float64, least int) (int, error) {
	for n := least; n <= most; n++ {
		s, err := x.scenario.With(
			set("workload.arrivals", fmt.Sprintf("{process: poisson, rate: %g}", rate)),
			set("deployment.replicas", strconv.Itoa(n)),
			set("lifecycle", "null"), set("run.duration", "2h"), set("run.seed", strconv.Itoa(chosenOn)))
		if err != nil {
			return 0, err
		}
		r, err := experiments.Run(ctx, s, experiments.RunOptions{})
		if err != nil {
			return 0, err
		}
		if met := r.Summary.Goodput.Met; met != nil && *met {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%d replicas are too few for %g requests/s", most, rate)
}

func (x *study) with(f fleet, day string, seed uint64, more ...scenario.Setting) (*scenario.Scenario, error) {
	settings := []scenario.Setting{set("workload.arrivals.hourly", day), set("run.seed", strconv.FormatUint(seed, 10))}
	switch {
	case f.mean:
		settings = append(settings, set("deployment.replicas", strconv.Itoa(x.mean[day])))
	case f.peak:
		settings = append(settings, set("deployment.replicas", strconv.Itoa(x.peak[day])))
	default:
		// At midnight the fleet has the size for the mean load, so that the day does not start with a queue.
		settings = append(settings, set("lifecycle.autoscale",
			fmt.Sprintf("{%s, max: %d, initial: %d}", f.autoscale, most, x.mean[day])))
	}
	if f.cold != "" {
		settings = append(settings, set("lifecycle.cold_start.mean", f.cold))
	}
	return x.scenario.With(append(settings, more...)...)
}

// outcome is the result of a run.
type outcome struct {
	*report.Summary
	series []report.SeriesPoint
}

// run simulates fleets on a day with all seeds. The results are by fleet and seed.
func (x *study) run(ctx context.Context, list []fleet, day string, seeds []uint64,
	more ...scenario.Setting) ([][]outcome, error) {
	results := make([][]outcome, len(list))
	for i := range results {
		results[i] = make([]outcome, len(seeds))
	}
	err := experiments.Parallel(ctx, len(list)*len(seeds), 0, nil, func(ctx context.Context, n int) error {
		i, k := n/len(seeds), n%len(seeds)
		s, err := x.with(list[i], day, seeds[k], more...)
		if err != nil {
			return err
		}
		r, err := experiments.Run(ctx, s, experiments.RunOptions{})
		if err != nil {
			return fmt.Errorf("%s on %s: %w", list[i].name, day, err)
		}
		results[i][k] = outcome{r.Summary, r.Series}
		return nil
	})
	return results, err
}

// The numbers of a run that the tables show.
func attainment(s *report.Summary) float64 { return *s.Goodput.Attainment }
func paid(s *report.Summary) float64       { return *s.System.Replicas.GPUHours }
func idle(s *report.Summary) float64       { return *s.System.Replicas.IdleGPUHours }
func starting(s *report.Summary) float64   { return *s.System.Replicas.Starting }
func ready(s *report.Summary) float64      { return *s.System.Replicas.Ready }
func highest(s *report.Summary) float64    { return float64(s.System.Replicas.Max) }
func price(s *report.Summary) float64      { return *s.Cost.USDPerMillionOutputGood }
func ttftP95(s *report.Summary) float64    { return *s.Latency.TTFT.P95 / 1e3 }
func ttftP99(s *report.Summary) float64    { return *s.Latency.TTFT.P99 / 1e3 }

// mean returns a number's mean over seeds.
func mean(runs []outcome, of func(*report.Summary) float64) float64 {
	sum := 0.0
	for _, r := range runs {
		sum += of(r.Summary)
	}
	return sum / float64(len(runs))
}
