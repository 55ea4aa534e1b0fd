package estimate

import (
	"errors"
	"fmt"
	"math"
)

// Demand is a rate of requests and their duration.
type Demand struct {
	// PerMinute is the number of requests per minute in the peak hour.
	PerMinute float64
	// TTFTSeconds is the time to the first token, or 0 if it is unknown. StreamSeconds is the time from the first to
	// the last token.
	TTFTSeconds, StreamSeconds float64
}

// Crowd is a group of people, a part of whom uses a service.
type Crowd struct {
	People float64
	// Active is the fraction of people that use the service at the busiest time.
	Active float64
	// EverySeconds is the time between two requests of an active person.
	EverySeconds float64
}

// mostPerMinute is the largest rate, which keeps results finite.
const mostPerMinute = 1e9

func (d Demand) validate() error {
	switch {
	case !(d.PerMinute > 0 && d.PerMinute <= mostPerMinute):
		return fmt.Errorf("%v requests per minute are not allowed (want above 0, at most %g)",
			d.PerMinute, mostPerMinute)
	case !(d.TTFTSeconds >= 0 && d.StreamSeconds >= 0 && d.TTFTSeconds+d.StreamSeconds > 0),
		math.IsInf(d.TTFTSeconds+d.StreamSeconds, 0):
		return errors.New("a duration of 0 is not allowed (want above 0)")
	}
	return nil
}

// Demand returns the demand of the crowd for requests of the given duration.
func (c Crowd) Demand(ttftSeconds, streamSeconds float64) (Demand, error) {
	switch {
	case !(c.People > 0 && c.People <= mostPerMinute):
		return Demand{}, fmt.Errorf("%v people are not allowed (want above 0, at most %g)", c.People, mostPerMinute)
	case !(c.Active > 0 && c.Active <= 1):
		return Demand{}, fmt.Errorf("a share of %v active people is not allowed (want above 0, at most 1)", c.Active)
	case !(c.EverySeconds > 0) || math.IsInf(c.EverySeconds, 0):
		return Demand{}, fmt.Errorf("a request every %v s is not allowed (want above 0)", c.EverySeconds)
	}
	perMinute := c.People * c.Active / c.EverySeconds * 60
	return Demand{PerMinute: perMinute, TTFTSeconds: ttftSeconds, StreamSeconds: streamSeconds}, nil
}

// Concurrency estimates the mean number of requests in the system by Little's law, and percentiles for independent
// arrivals without queueing. The crowd is the source of the demand; it may be nil.
func Concurrency(d Demand, crowd *Crowd) (*Result, error) {
	if err := d.validate(); err != nil {
		return nil, err
	}
	duration := d.TTFTSeconds + d.StreamSeconds
	r := newResult("concurrency", fmt.Sprintf("%s requests per minute with a duration of %s s",
		amount(d.PerMinute), amount(duration)))
	r.crowd(d, crowd)
	if d.TTFTSeconds > 0 {
		r.add("duration_s", "duration of a request", duration, "s",
			"time to first token + time from first to last token",
			fmt.Sprintf("%s + %s", amount(d.TTFTSeconds), amount(d.StreamSeconds)))
	} else {
		r.given("duration_s", "duration of a request", duration, "s")
	}
	mean := d.PerMinute * duration / 60
	line := r.add("mean_requests", "concurrent requests, mean", mean, "requests",
		"requests per minute × duration in s / 60",
		fmt.Sprintf("%s × %s / 60", amount(d.PerMinute), amount(duration)))
	line.Says = tierOf(mean).String()
	if d.TTFTSeconds > 0 {
		r.add("decoding_requests", "of these in decode, mean", d.PerMinute*d.StreamSeconds/60, "requests",
			"requests per minute × seconds from first to last token / 60",
			fmt.Sprintf("%s × %s / 60", amount(d.PerMinute), amount(d.StreamSeconds)))
	}
	r.spread(mean)
	r.note("The mean is Little's law and holds for any arrivals. The percentiles are those of a Poisson " +
		"distribution: requests arrive independently and never queue. Bursts need more capacity; clifftop run " +
		"measures them.")
	r.note("The duration of a request depends on the number of concurrent requests. With a scenario, --model or " +
		"--gpu this command finds both by simulation.")
	r.note("Users are not requests: a user who reads an output has no request in the system.")
	return r, nil
}

// crowd adds the rate of requests, and how it follows from the crowd.
func (r *Result) crowd(d Demand, c *Crowd) {
	if c == nil {
		r.given("requests_per_minute", "requests per minute", d.PerMinute, "1/min")
		return
	}
	r.given("people", "people", c.People, "people")
	r.add("active_people", "active at the peak", c.People*c.Active, "people", "people × active share",
		fmt.Sprintf("%s × %s", amount(c.People), percent(c.Active)))
	r.add("requests_per_minute", "requests per minute", d.PerMinute, "1/min",
		"active people / seconds between requests × 60",
		fmt.Sprintf("%s / %s × 60", amount(c.People*c.Active), amount(c.EverySeconds)))
}

// spread adds percentiles of the number of requests.
func (r *Result) spread(mean float64) {
	above := int(math.Floor(mean))
	r.add("above_mean_fraction", "fraction of time above the mean", exceeds(mean, above), "",
		fmt.Sprintf("P(N > %s) for N with a Poisson distribution", amount(float64(above))), "mean "+amount(mean))
	for _, p := range []struct {
		name, text string
		of         float64
	}{
		{"p95_requests", "95 % of the time at most", .95},
		{"p99_requests", "99 % of the time at most", .99},
		{"p99_9_requests", "99.9 % of the time at most", .999},
	} {
		formula := fmt.Sprintf("smallest n with P(N ≤ n) ≥ %g", p.of)
		r.add(p.name, p.text, float64(quantile(mean, p.of)), "requests", formula, "mean "+amount(mean))
	}
	r.note("Common advice says that most companies have between 1 and 10 concurrent requests. " +
		"This estimate does not use it.")
}

// tier is a range of the mean number of concurrent requests, from From to below Below.
type tier struct {
	From, Below float64
	Name        string
}

func (t tier) String() string {
	if math.IsInf(t.Below, 1) {
		return fmt.Sprintf("%s and more: %s", amount(t.From), t.Name)
	}
	return fmt.Sprintf("from %s to below %s: %s", amount(t.From), amount(t.Below), t.Name)
}

// tiers returns tiers that cover all numbers from 0 without gaps. Each includes its lower edge. Common tables of
// deployment sizes overlap at 3 and 10 and leave out 30 to 50 and everything below 1.
func tiers() []tier {
	return []tier{
		{0, 1, "occasional requests"},
		{1, 3, "a small team"},
		{3, 10, "a department"},
		{10, 30, "several departments"},
		{30, 50, "a large department (common tables have no name for it)"},
		{50, math.Inf(1), "a platform for a whole company"},
	}
}

// tierOf returns the tier of a mean number of concurrent requests.
func tierOf(mean float64) tier {
	tiers := tiers()
	for _, t := range tiers {
		if mean < t.Below {
			return t
		}
	}
	return tiers[len(tiers)-1]
}
