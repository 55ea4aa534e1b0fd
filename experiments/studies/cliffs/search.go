package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"clifftop/experiments"
)

// search is a grid of traffics. Models, GPUs, engines and step times stay the same.
type search struct {
	axes     []axis
	settings func(values []float64) []string
}

type axis struct {
	name   string
	values []float64
}

func (s search) size() int {
	n := 1
	for _, a := range s.axes {
		n *= len(a.values)
	}
	return n
}

// values returns those of the n-th traffic.
func (s search) values(n int) []float64 {
	v := make([]float64, len(s.axes))
	for i, a := range s.axes {
		v[i] = a.values[n%len(a.values)]
		n /= len(a.values)
	}
	return v
}

// String returns the grid in words.
func (s search) String() string {
	var parts []string
	for _, a := range s.axes {
		text := strings.Trim(fmt.Sprint(a.values), "[]")
		parts = append(parts, a.name+" "+strings.ReplaceAll(text, " ", ", "))
	}
	return strings.Join(parts, "; ")
}

// candidate is a traffic of the grid, and its distance to the published numbers.
type candidate struct {
	values     []float64
	throughput []float64 // at the published loads
	distance   float64   // root of the mean square of the logarithms of the ratios
	worst      float64   // ratio, as a fraction above or below 1
	holds      bool      // it falls far enough, and its control does not
}

// try runs the whole grid and its first control with seed chosenOn. The closest candidates come first.
func (c *cliff) try(ctx context.Context) ([]candidate, error) {
	list := make([]candidate, c.search.size())
	err := experiments.Parallel(ctx, len(list), 0, nil, func(ctx context.Context, n int) error {
		v := c.search.values(n)
		settings := c.search.settings(v)
		at := set("candidate", settings...)
		without := variant{name: "control", settings: slices.Concat(at.settings, c.controls[0].settings)}
		results, err := c.run(ctx, []variant{at, without}, users, []uint64{chosenOn})
		if err != nil {
			return fmt.Errorf("%s: %w", strings.Join(settings, " "), err)
		}
		k := candidate{values: v}
		for _, u := range users {
			k.throughput = append(k.throughput, results[0].throughput(u)[0])
		}
		k.distance, k.worst = c.distance(k.throughput)
		k.holds = k.throughput[3] <= (1-c.least)*k.throughput[2] && !results[1].falls(100, 200)
		list[n] = k
		return nil
	})
	slices.SortStableFunc(list, func(a, b candidate) int {
		if a.holds != b.holds {
			return cmp.Compare(b2i(b.holds), b2i(a.holds))
		}
		return cmp.Compare(a.distance, b.distance)
	})
	return list, err
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// distance compares throughputs with the published ones: it returns the root mean square of the logarithms of the
// ratios, and the largest ratio. For a shape, the common factor is removed first.
func (c *cliff) distance(throughput []float64) (rms, worst float64) {
	factor := c.factor(throughput)
	for i, p := range c.published {
		d := math.Log(factor * throughput[i] / p)
		rms += d * d
		if math.Abs(math.Expm1(d)) > math.Abs(worst) {
			worst = math.Expm1(d)
		}
	}
	return math.Sqrt(rms / float64(len(c.published))), worst
}

// factor returns the geometric mean of published / simulated throughput; 1 if the published numbers are absolute.
func (c *cliff) factor(throughput []float64) float64 {
	if !c.shape {
		return 1
	}
	sum := 0.0
	for i, p := range c.published {
		sum += math.Log(p / throughput[i])
	}
	return math.Exp(sum / float64(len(c.published)))
}

// table writes the best of a search.
func (c *cliff) table(list []candidate, most int) string {
	var b strings.Builder
	holding := 0
	for _, k := range list {
		if k.holds {
			holding++
		}
	}
	fmt.Fprintf(&b, "%s: %d traffics tried with seed %d. In %d of them, throughput falls from 100 to 200 users by "+
		"%.3g %% or more, but not with %s.\n",
		c.name, len(list), chosenOn, holding, 100*c.least, c.controls[0].name)
	for _, k := range list[:min(most, len(list))] {
		for i, a := range c.search.axes {
			fmt.Fprintf(&b, "%s %g  ", a.name, k.values[i])
		}
		fmt.Fprintf(&b, "→ %.0f  rms %.1f %%, worst %+.1f %%, holds %v\n", k.throughput, 100*k.distance, 100*k.worst,
			k.holds)
	}
	return b.String()
}
