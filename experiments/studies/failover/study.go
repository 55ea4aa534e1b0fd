package main

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/steady"
	"clifftop/report"
	"clifftop/sim/event"
)

//go:embed chat.yaml
var chatFile []byte

//go:embed conversations.yaml
var conversationsFile []byte

var seeds = []uint64{2, 3, 4}

// When the replica is lost, and for how long: two minutes, and three for a cold start.
const (
	lost   = 303.0
	outage = 300.0
)

// wait is the TTFT limit of a good request, from its first attempt, in seconds. fine is the share of good requests at
// which the fleet counts as recovered.
const (
	wait = 2.0
	fine = 0.95
)

// loads are fractions of the capacity of four replicas.
var loads = []float64{0.5, 0.6, 0.7, 0.8, 0.9}

// system is a failure of one replica, with a router and the behaviour of the clients.
type system struct {
	name     string
	failure  string // but for its replica and instant
	clients  string
	settings []scenario.Setting
}

func set(key, value string) scenario.Setting { return scenario.Setting{Key: key, Value: value} }

const (
	crash    = "kind: crash, for: 2m"
	patient  = "{}"
	leaving  = "{ttft_timeout: 10s, retries: 5}"
	silent   = "{ttft_timeout: 10s, retries: 5, cancel_on_timeout: false}"
	budgeted = "{ttft_timeout: 10s, retries: 5, retry_budget: 0.1}"
)

// Names of the systems that the text mentions.
const (
	crashPatient  = "crash, patient clients"
	crashLeaving  = "crash, clients retry after 10 s"
	crashSilent   = "the same, server not told"
	crashBudgeted = "the same, retry budget of 10 %"
	drained       = "drain, patient clients"
	slowAware     = "3 times slower, patient clients"
	slowBlind     = "3 times slower, round robin"
	crashBlind    = "crash, round robin"
	cutOff        = "link loss, patient clients"
)

var systems = []system{
	{crashPatient, crash, patient, nil},
	{crashLeaving, crash, leaving, nil},
	{crashSilent, crash, silent, nil},
	{crashBudgeted, crash, budgeted, nil},
	{crashBlind, crash, patient, []scenario.Setting{set("deployment.router", "round-robin")}},
	{drained, "kind: drain, for: 2m", patient, nil},
	{slowAware, "kind: slow, for: 5m, factor: 3", patient, nil},
	{slowBlind, "kind: slow, for: 5m, factor: 3", patient, []scenario.Setting{set("deployment.router", "round-robin")}},
	{cutOff, "kind: link-loss, for: 5m", patient, nil},
}

func named(name string) system {
	return systems[slices.IndexFunc(systems, func(s system) bool { return s.name == name })]
}

// study is the scenarios, and the rate at which one replica saturates.
type study struct {
	chat, conversations *scenario.Scenario
	saturation          float64
}

func newStudy(ctx context.Context) (*study, error) {
	chat, err := scenario.Parse("chat.yaml", chatFile)
	if err != nil {
		return nil, err
	}
	conversations, err := scenario.Parse("conversations.yaml", conversationsFile)
	if err != nil {
		return nil, err
	}
	four, err := steady.Throughput(ctx, chat)
	return &study{chat, conversations, four / 4}, err
}

// with returns the scenario of a system of n replicas at a load, as a fraction of their capacity.
func (x *study) with(s system, n int, load float64, seed uint64, more ...scenario.Setting) (*scenario.Scenario, error) {
	settings := []scenario.Setting{
		set("deployment.replicas", strconv.Itoa(n)),
		set(scenario.RateKey, strconv.FormatFloat(load*float64(n)*x.saturation, 'g', -1, 64)),
		set("run.seed", strconv.FormatUint(seed, 10)),
		set("clients", s.clients),
		set("lifecycle.failures", fmt.Sprintf("[{%s, at: %gs, replica: 1}]", s.failure, lost)),
	}
	return x.chat.With(slices.Concat(settings, s.settings, more)...)
}

// part describes the requests that are first sent in one interval of a run.
type part struct {
	from, to      float64 // seconds
	sent, good    int64
	cached, input int64 // tokens of prompts
}

// course is a run in parts of about half a minute.
type course struct {
	*report.Summary
	parts []part
	// TTFT of the requests sent during the outage, in seconds; infinite without a first token
	during []float64
}

// grouped is the number of the collector's time buckets in a part.
const grouped = 4

func follow(ctx context.Context, s *scenario.Scenario, lost float64) (*course, error) {
	type request struct {
		sent, ttft    float64
		cached, input int32
	}
	var all []request
	r, err := experiments.Run(ctx, s, experiments.RunOptions{Finished: func(rec *event.Record) {
		if rec.Again {
			return
		}
		_, sent := rec.Request.First()
		q := request{sent: sent.Seconds(), ttft: math.Inf(1), cached: rec.CachedTokens, input: rec.Request.InputTokens}
		if rec.Outcome == event.Completed {
			q.ttft = rec.ClientFirst.Sub(sent).Seconds()
		}
		all = append(all, q)
	}})
	if err != nil {
		return nil, err
	}
	c := &course{Summary: r.Summary}
	for i := range r.Series {
		if i%grouped == 0 {
			c.parts = append(c.parts, part{from: r.Series[i].StartS})
		}
		p := &c.parts[len(c.parts)-1]
		p.to, p.sent = r.Series[i].EndS, p.sent+r.Series[i].Arrivals
	}
	width := c.parts[0].to
	for _, q := range all {
		p := &c.parts[min(int(q.sent/width), len(c.parts)-1)]
		if q.ttft <= wait {
			p.good++
		}
		if !math.IsInf(q.ttft, 1) {
			p.cached, p.input = p.cached+int64(q.cached), p.input+int64(q.input)
		}
		if q.sent >= lost && q.sent < lost+outage {
			c.during = append(c.during, q.ttft)
		}
	}
	slices.Sort(c.during)
	return c, nil
}

// p99 returns the 99th percentile of the TTFT in the outage, in seconds.
func (c *course) p99() float64 { return c.during[len(c.during)*99/100] }

// unfinished is the time before the end of a run in which requests may not have ended, in seconds.
const unfinished = 90

// goodIn returns the share of good requests among those sent between two times.
func (c *course) goodIn(from, to float64) float64 {
	good, sent := int64(0), int64(0)
	for _, p := range c.parts {
		if p.to > from && p.from < to {
			good, sent = good+p.good, sent+p.sent
		}
	}
	return float64(good) / float64(sent)
}

// recovered returns the time from the loss until the fleet has recovered until the end of the run, in seconds: infinite
// if never, and 0 if the loss had no effect.
func (c *course) recovered() float64 {
	at := 0.0
	for i, p := range c.parts {
		switch {
		case p.to <= lost || p.to > c.parts[len(c.parts)-1].to-unfinished:
		case float64(p.good) >= fine*float64(p.sent):
		case i+1 == len(c.parts) || c.parts[i+1].to > c.parts[len(c.parts)-1].to-unfinished:
			return math.Inf(1)
		default:
			at = p.to - lost
		}
	}
	return at
}

// missed returns the share of prompt tokens that no cache had, for requests sent between two times.
func (c *course) missed(from, to float64) float64 {
	cached, input := int64(0), int64(0)
	for _, p := range c.parts {
		if p.to > from && p.from < to {
			cached, input = cached+p.cached, input+p.input
		}
	}
	return 1 - float64(cached)/float64(input)
}

// unserved returns the share of requests that got no output, for any reason.
func (c *course) unserved() float64 {
	r := c.Requests
	return float64(r.Failed+r.TimedOut+r.Rejected) / float64(r.Offered)
}

// all runs a number of scenarios, several at a time.
func all(ctx context.Context, n int, scenario func(i int) (*scenario.Scenario, float64, error)) ([]*course, error) {
	results := make([]*course, n)
	err := experiments.Parallel(ctx, n, 0, nil, func(ctx context.Context, i int) error {
		s, lost, err := scenario(i)
		if err == nil {
			results[i], err = follow(ctx, s, lost)
		}
		return err
	})
	return results, err
}

func (x *study) run(ctx context.Context, list []system, loads []float64, seeds []uint64,
	more ...scenario.Setting) ([][][]*course, error) {
	each := len(loads) * len(seeds)
	flat, err := all(ctx, len(list)*each, func(i int) (*scenario.Scenario, float64, error) {
		s, err := x.with(list[i/each], 4, loads[i%each/len(seeds)], seeds[i%len(seeds)], more...)
		return s, lost, err
	})
	var results [][][]*course
	for i := range list {
		var byLoad [][]*course
		for k := range loads {
			from := i*each + k*len(seeds)
			byLoad = append(byLoad, flat[from:from+len(seeds)])
		}
		results = append(results, byLoad)
	}
	return results, err
}

// sizes are the numbers of replicas before one is lost.
var sizes = []int{2, 4, 8}

// withoutOne returns for each number of replicas, load and seed the share of good requests in the last two minutes of
// an outage.
func (x *study) withoutOne(ctx context.Context, sizes []int, loads func(n int) []float64,
	seeds []uint64) ([][][]float64, error) {
	var good [][][]float64
	for _, n := range sizes {
		at := loads(n)
		flat, err := all(ctx, len(at)*len(seeds), func(i int) (*scenario.Scenario, float64, error) {
			s, err := x.with(named(drained), n, at[i/len(seeds)], seeds[i%len(seeds)], set("run.duration", "11m"))
			return s, lost, err
		})
		if err != nil {
			return nil, err
		}
		var shares [][]float64
		for same := range slices.Chunk(flat, len(seeds)) {
			var share []float64
			for _, c := range same {
				share = append(share, c.goodIn(lost+outage-120, lost+outage))
			}
			shares = append(shares, share)
		}
		good = append(good, shares)
	}
	return good, nil
}

// tried returns the loads at which the others are tried, in hundredths: from 0.35 to 0.95.
func tried(int) (loads []float64) {
	for hundredths := 35; hundredths <= 95; hundredths += 5 {
		loads = append(loads, float64(hundredths)/100)
	}
	return loads
}

// survived returns the highest of the tried loads up to which all seeds have enough good requests.
func survived(loads []float64, good [][]float64) float64 {
	highest := 0.0
	for k, load := range loads {
		if slices.Min(good[k]) < fine {
			break
		}
		highest = load
	}
	return highest
}

var routers = []string{"session", "sglang", "least-requests"}

// When the conversations lose their replica, and when it is back.
const (
	lostCache = 903.0
	back      = lostCache + outage
)

// converse runs the conversations with all routers. The results are by router and seed.
func (x *study) converse(ctx context.Context, seeds []uint64) ([][]*course, error) {
	flat, err := all(ctx, len(routers)*len(seeds), func(i int) (*scenario.Scenario, float64, error) {
		s, err := x.conversations.With(set("deployment.router", routers[i/len(seeds)]),
			set("run.seed", strconv.FormatUint(seeds[i%len(seeds)], 10)))
		return s, lostCache, err
	})
	return slices.Collect(slices.Chunk(flat, len(seeds))), err
}

// mean returns a number's mean over seeds.
func mean(runs []*course, of func(*course) float64) float64 {
	sum := 0.0
	for _, c := range runs {
		sum += of(c)
	}
	return sum / float64(len(runs))
}
