package main

import (
	"fmt"
	"math"

	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/report/plot"
)

// tooLate is the largest latency in a picture, in ms.
const tooLate = 100e3

// picture shows the contest: a line for each router, a dot for each point.
func (c *contest) picture() *plot.Figure {
	d := c.scenario
	f := plot.Comparison{
		Title: c.finding(),
		Caption: fmt.Sprintf("%s, %d replicas of %d %s, means over %d seeds; see the tables for differences and "+
			"intervals",
			d.Model, d.Deployment.Replicas, d.Deployment.TensorParallelSize, d.GPU, len(seeds)),
	}
	var shown []int
	for i, s := range c.systems {
		if c.refused[i] == "" {
			shown, f.Systems = append(shown, i), append(f.Systems, s.name)
		}
	}
	for _, p := range c.points {
		f.Loads = append(f.Loads, p.name)
	}
	for _, i := range shown {
		if v := c.mean(i, len(c.points)-1, columns()[0].of); v > tooLate {
			f.Notes = append(f.Notes, fmt.Sprintf("%s sends almost everything to one replica: its mean TTFT is %s s "+
				"at %s, outside the scale.",
				c.systems[i].name, layout.Digits(v/1e3), c.points[len(c.points)-1].name))
		}
	}
	for _, k := range c.drawn() {
		col := columns()[k]
		m := plot.ComparisonMetric{Title: col.title, Milliseconds: col.milliseconds}
		if col.milliseconds {
			m.Title += ", log scale"
		}
		for _, i := range shown {
			var row []float64
			for point := range c.points {
				v := c.mean(i, point, col.of)
				if col.milliseconds && v > tooLate {
					v = math.NaN()
				}
				row = append(row, v)
			}
			m.Values = append(m.Values, row)
		}
		f.Metrics = append(f.Metrics, m)
	}
	return f.Figure()
}

// drawn returns the columns in the picture.
func (c *contest) drawn() []int {
	switch c.name {
	case "stale":
		return []int{1, 6}
	case "front-ends":
		return []int{0, 2}
	}
	return []int{0, 1, 2}
}

// finding returns the title of the picture.
func (c *contest) finding() string {
	mean, hits := columns()[0].of, columns()[2].of
	at := func(name string, point int, of func(*report.Summary) *float64) string {
		for i, s := range c.systems {
			if s.name == name {
				return layout.Digits(c.mean(i, point, of))
			}
		}
		return "?"
	}
	switch c.name {
	case "stale":
		p99 := func(s *report.Summary) *float64 {
			ms := columns()[1].of(s)
			if ms == nil {
				return nil
			}
			seconds := *ms / 1000
			return &seconds
		}
		last := len(c.points) - 1
		return fmt.Sprintf("With metrics that are %s old, TTFT p99 is %s s by queue length, %s s with local counts, "+
			"and %s s at random",
			c.points[last].name, at("least-queue", last, p99), at("least-queue, local", last, p99),
			at("random", last, p99))
	case "front-ends":
		last := len(c.points) - 1
		return fmt.Sprintf("Prefix trees see only their own front end: sglang finds %s %% with one and %s %% with 16; "+
			"session finds %s and %s %%",
			at("sglang", 0, hits), at("sglang", last, hits), at("session", 0, hits), at("session", last, hits))
	}
	best := c.least(c.shown, mean)
	return fmt.Sprintf("At %s, mean TTFT is %s ms with %s (%s %% of prompt tokens cached) and %s ms with round-robin "+
		"(%s %%)",
		c.points[c.shown].name, at(best, c.shown, mean), best, at(best, c.shown, hits),
		at("round-robin", c.shown, mean), at("round-robin", c.shown, hits))
}

// least returns the system with the smallest value of a number at a point.
func (c *contest) least(point int, of func(*report.Summary) *float64) string {
	name, value := "", math.Inf(1)
	for i, s := range c.systems {
		if x := c.mean(i, point, of); x < value {
			name, value = s.name, x
		}
	}
	return name
}
