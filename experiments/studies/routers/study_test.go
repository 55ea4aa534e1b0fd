package main

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"clifftop/experiments/scenario"
	"clifftop/internal/testenv"
	"clifftop/report"
	"clifftop/report/stats"
)

// testSeeds are not the seeds on which the asserted orderings were chosen.
var testSeeds = []uint64{21, 22, 23, 24}[:testenv.Choose(3, 4)]

// difference returns the mean difference between two systems, paired by seed, and half the width of its interval.
func (c *contest) difference(system, other, point int, of func(*report.Summary) *float64) (center, half float64) {
	a, b := c.values(system, point, of), c.values(other, point, of)
	for i := range a {
		a[i] -= b[i]
	}
	return stats.MeanInterval(a, stats.Confidence)
}

// pick keeps the named systems and points of a contest.
func (c *contest) pick(systems []string, points ...int) {
	var kept, at []choice
	for _, name := range systems {
		i := slices.IndexFunc(c.systems, func(s choice) bool { return s.name == name })
		kept = append(kept, c.systems[i])
	}
	for _, k := range points {
		at = append(at, c.points[k])
	}
	c.systems, c.points = kept, at
}

// held runs a contest on a small scale.
func held(t *testing.T, c *contest, seeds []uint64, requests string) {
	t.Helper()
	if err := c.run(context.Background(), seeds, scenario.Setting{Key: "run.requests", Value: requests}); err != nil {
		t.Fatal(err)
	}
}

// less requires a metric of one system to be lower than that of another at a point, by more than chance: the interval
// of the paired differences does not reach 0.
func (c *contest) less(t *testing.T, what, one, other string, point int, of func(*report.Summary) *float64) {
	t.Helper()
	index := func(name string) int {
		return slices.IndexFunc(c.systems, func(s choice) bool { return s.name == name })
	}
	center, half := c.difference(index(one), index(other), point, of)
	if !(center+half < 0) {
		t.Errorf("%s, %s: %s has %.4g, %s %.4g; the difference is %.4g ± %.2g, want it below 0", c.points[point].name,
			what,
			one, c.mean(index(one), point, of), other, c.mean(index(other), point, of), center, half)
	}
}

// always requires a metric of one system to be lower than that of another with every seed. It is meant for numbers that
// differ so much between seeds that an interval around their mean says little.
func (c *contest) always(t *testing.T, what string, one, other int, of func(*report.Summary) *float64) {
	t.Helper()
	a, b := c.values(one, 0, of), c.values(other, 0, of)
	for i := range a {
		if !(a[i] < b[i]) {
			t.Errorf("seed %d: %s: %s has %.4g, %s %.4g, want it to have less", c.seeds[i], what, c.systems[one].name,
				a[i], c.systems[other].name, b[i])
		}
	}
}

func talkAndRouters(t *testing.T) (*scenario.Scenario, []choice) {
	t.Helper()
	talk, err := conversations()
	if err != nil {
		t.Fatal(err)
	}
	all, err := routers()
	if err != nil {
		t.Fatal(err)
	}
	return talk, all
}

// TestOrderings asserts the order of the routers by prefix hit rate, and its effect on latency.
func TestOrderings(t *testing.T) {
	talk, all := talkAndRouters(t)
	c := shootout(talk, all)
	c.pick([]string{"round-robin", "random", "least-requests", "session", "bounded-hash", "prefix",
		"prefix, from 1,024 tokens", "sglang", "dynamo"}, 2)
	held(t, c, testSeeds, "3000")
	mean, hits := columns()[0].of, columns()[2].of

	for _, blind := range []string{"round-robin", "random", "least-requests"} {
		c.less(t, "hits", blind, "dynamo", 0, hits)
		for _, knows := range []string{"session", "bounded-hash", "sglang", "prefix, from 1,024 tokens"} {
			c.less(t, "mean TTFT", knows, blind, 0, mean)
		}
	}
	c.less(t, "hits", "dynamo", "bounded-hash", 0, hits) // it weighs the blocks that are active
	c.less(t, "hits", "bounded-hash", "session", 0, hits)
	c.less(t, "mean TTFT", "round-robin", "random", 0, mean)

	// All prompts share a prefix, so the longest match is on the first replica that received a request.
	herd := slices.IndexFunc(c.systems, func(s choice) bool { return s.name == "prefix" })
	if most := c.mean(herd, 0, mostLoaded); most < 7.9 {
		t.Errorf("prefix: the most loaded replica has %.2f times the mean, want all that there is: 8", most)
	}
	c.less(t, "mean TTFT", "prefix, from 1,024 tokens", "prefix", 0, mean)
}

// TestBalance asserts that a hash without a load bound has more cache hits than one with it, and puts more load on one
// replica.
func TestBalance(t *testing.T) {
	talk, all := talkAndRouters(t)
	c := shootout(talk, all)
	c.pick([]string{"session", "bounded-hash"}, 2)
	held(t, c, []uint64{21, 22, 23, 24, 25, 26}, "5000")
	c.less(t, "hits", "bounded-hash", "session", 0, columns()[2].of)
	c.always(t, "load of the most loaded replica", 1, 0, mostLoaded)
}

// TestStaleness asserts how routers perform with delayed replica metrics.
func TestStaleness(t *testing.T) {
	testenv.NeedsLong(t, "routers with old metrics, 3 s")
	talk, _ := talkAndRouters(t)
	c := staleness(talk)
	c.pick([]string{"random", "least-queue and batch", "least-queue and batch, local", "power-of-two, scraped"}, 3)
	held(t, c, testSeeds, "2000")
	p99 := columns()[1].of
	const stale = 0 // 10 s
	c.less(t, "TTFT p99", "random", "least-queue and batch", stale, p99)
	c.less(t, "TTFT p99", "least-queue and batch, local", "least-queue and batch", stale, p99)
	c.less(t, "longest queue", "random", "least-queue and batch", stale, longestQueue)
	c.less(t, "longest queue", "power-of-two, scraped", "least-queue and batch", stale, longestQueue)

	c = staleness(talk)
	c.pick([]string{"random", "least-queue and batch"}, 0)
	c.points[0].set = append(c.points[0].set, scenario.Setting{Key: scenario.RateKey, Value: "24"})
	held(t, c, []uint64{21, 22, 23, 24, 25, 26}, "4000")
	c.always(t, "mean TTFT, fresh", 1, 0, columns()[0].of)
}

// TestFrontEnds asserts which routers lose cache hits when several front ends share the traffic.
func TestFrontEnds(t *testing.T) {
	testenv.NeedsLong(t, "routers behind several front ends, 2 s")
	talk, _ := talkAndRouters(t)
	c := frontEnds(talk)
	c.pick([]string{"session", "sglang"}, 0, 2)
	held(t, c, testSeeds, "2000")
	hits := columns()[2].of
	const one, many = 0, 1
	for k, s := range c.systems {
		alone, among := c.mean(k, one, hits), c.mean(k, many, hits)
		switch s.name {
		case "session":
			if math.Abs(alone-among) > 1 {
				t.Errorf("a hash of sessions is the same everywhere, but finds %.1f %% and %.1f %%", alone, among)
			}
		case "sglang":
			if among > alone-5 {
				t.Errorf("a front end knows only the prefixes that it sent, but sglang finds %.1f %% with one and %.1f %% with 16", alone, among)
			}
		}
	}
	c.less(t, "hits", "sglang", "session", many, hits)
}

// TestRecorded runs eight minutes of the recorded hour.
func TestRecorded(t *testing.T) {
	s, err := recorded(testenv.Traces(t, "mooncake_fast25_conversation_trace.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.With(scenario.Setting{Key: "workload.trace.to", Value: "8m"},
		scenario.Setting{Key: "run.warmup", Value: "2m"}); err != nil {
		t.Fatal(err)
	}
	_, all := talkAndRouters(t)
	c := shootout(s, all)
	c.pick([]string{"round-robin", "session", "prefix, from 1,024 tokens", "dynamo"}, 0)
	if err := c.run(context.Background(), testSeeds[:3]); err != nil {
		t.Fatal(err)
	}
	mean, hits := columns()[0].of, columns()[2].of
	c.less(t, "hits", "round-robin", "dynamo", 0, hits)
	c.less(t, "hits", "dynamo", "prefix, from 1,024 tokens", 0, hits)
	c.less(t, "mean TTFT", "dynamo", "round-robin", 0, mean)
	if !strings.Contains(c.refused[1], "the traffic has none") {
		t.Errorf("session is refused because %q", c.refused[1])
	}
}

// TestTable checks the tables that are written for a contest.
func TestTable(t *testing.T) {
	talk, all := talkAndRouters(t)
	c := shootout(talk, all)
	c.pick([]string{"round-robin", "session"}, 2)
	c.shown = 0
	held(t, c, seeds[:2], "1500")
	var b strings.Builder
	c.table(&b)
	for _, want := range []string{"## Conversations on eight L40S", "**24 requests/s**", "| round-robin | ",
		"| session | ", " ± "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %q in\n%s", want, b.String())
		}
	}
	if title := c.finding(); !strings.Contains(title, "with session") {
		t.Error(title)
	}
}
