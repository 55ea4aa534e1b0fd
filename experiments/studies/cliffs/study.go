package main

import (
	"context"
	"embed"
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report"
	"clifftop/report/curve"
)

//go:embed *.yaml
var scenarios embed.FS

// users are the loads of the published example.
var users = []int{10, 50, 100, 200}

// The parameters were chosen with seed chosenOn. The results use the other seeds.
const chosenOn = 1

var seeds = []uint64{2, 3, 4, 5, 6}

// cliff is a scenario whose throughput falls when the load rises, and the controls in which it does not fall.
type cliff struct {
	name     string // of its scenario
	scenario *scenario.Scenario
	unit     string // of the throughput
	measure  func(*report.Summary) float64
	copies   float64 // identical systems side by side; one is simulated
	// published are the tokens per second at the published loads; nil if there are none. They are a shape if a common
	// factor between them and the simulated numbers is allowed.
	published []float64
	shape     bool
	drawn     []int     // users in the picture
	controls  []variant // the first of them removes the mechanism
	search    search
	least     float64 // fall that a traffic must have to be chosen, as a fraction
	thinks    string  // another law of think times
	// cause titles the column that shows the mechanism, and causeTitle its axis.
	cause, causeTitle string
	also              *column // drawn beside the base
	subject           string  // of the picture's title; throughput if empty
}

// variant is a scenario with some keys set.
type variant struct {
	name     string
	settings []scenario.Setting
}

func read(name string) (*scenario.Scenario, error) {
	text, err := scenarios.ReadFile(name + ".yaml")
	if err != nil {
		return nil, err
	}
	return scenario.Parse(name+".yaml", text)
}

// base is the cliff itself.
var baseline = variant{name: "base"}

// set makes a variant; settings are KEY=VALUE.
func set(name string, settings ...string) variant {
	v := variant{name: name}
	for _, text := range settings {
		s, err := scenario.ParseSetting(text)
		if err != nil {
			panic(err)
		}
		v.settings = append(v.settings, s)
	}
	return v
}

// runs are the results of a variant, by load and seed.
type runs struct {
	variant
	cliff     *cliff
	users     []int
	seeds     []uint64
	summaries [][]*report.Summary
}

// run simulates variants of the cliff at all loads with all seeds.
func (c *cliff) run(ctx context.Context, variants []variant, users []int, seeds []uint64) ([]*runs, error) {
	list := make([]*runs, len(variants))
	for i, v := range variants {
		list[i] = &runs{variant: v, cliff: c, users: users, seeds: seeds,
			summaries: make([][]*report.Summary, len(users))}
		for k := range users {
			list[i].summaries[k] = make([]*report.Summary, len(seeds))
		}
	}
	each := len(users) * len(seeds)
	err := experiments.Parallel(ctx, len(variants)*each, 0, nil, func(ctx context.Context, n int) error {
		r, k, j := list[n/each], n%each/len(seeds), n%len(seeds)
		s, err := c.scenario.With(append(slices.Clone(r.settings),
			scenario.Setting{Key: scenario.UsersKey, Value: strconv.Itoa(users[k])},
			scenario.Setting{Key: "run.seed", Value: strconv.FormatUint(seeds[j], 10)})...)
		if err != nil {
			return err
		}
		result, err := experiments.Run(ctx, s, experiments.RunOptions{})
		if err != nil {
			return fmt.Errorf("%s, %s, %d users: %w", c.name, r.name, users[k], err)
		}
		r.summaries[k][j] = result.Summary
		return nil
	})
	return list, err
}

func (r *runs) at(users int) []*report.Summary { return r.summaries[slices.Index(r.users, users)] }

// of returns the values of a number at a load, by seed.
func (r *runs) of(users int, number func(*report.Summary) float64) []float64 {
	var values []float64
	for _, s := range r.at(users) {
		values = append(values, number(s))
	}
	return values
}

// throughput returns the throughput that the cliff is about, summed over all copies, by seed.
func (r *runs) throughput(users int) []float64 {
	values := r.of(users, r.cliff.measure)
	for i := range values {
		values[i] *= r.cliff.copies
	}
	return values
}

// change returns the difference of throughput between two loads, paired by seed.
func (r *runs) change(from, to int) interval {
	differences := r.throughput(to)
	for i, x := range r.throughput(from) {
		differences[i] -= x
	}
	return estimate(differences)
}

// falls reports whether throughput is significantly lower at the second load.
func (r *runs) falls(from, to int) bool { return r.change(from, to).high < 0 }

// interval is a mean with its 95 % confidence interval, by Student's t.
type interval struct{ mean, low, high float64 }

func estimate(values []float64) interval {
	if len(values) < 2 {
		return interval{values[0], values[0], values[0]}
	}
	n := float64(len(values))
	mean, sd := stat.MeanStdDev(values, nil)
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(.975) * sd / math.Sqrt(n)
	return interval{mean, mean - half, mean + half}
}

// curve returns the curve of a sweep over the loads.
func (r *runs) curve() *curve.Curve {
	var points []curve.Point
	for i, n := range r.users {
		for _, s := range r.summaries[i] {
			points = append(points, curve.Point{Value: float64(n), Summary: s})
		}
	}
	return curve.New(scenario.UsersKey, points)
}
