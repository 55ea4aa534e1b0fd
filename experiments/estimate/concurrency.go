package estimate

import (
	"errors"
	"fmt"
	"math"
)

// Demand is a stream of requests.
type Demand struct {
	// PerMinute is requests per minute, at the peak hour.
	PerMinute float64
	// TTFTSeconds is the part of a request's time before its first token; it may be 0 if unknown. StreamSeconds is
	// the rest.
	TTFTSeconds, StreamSeconds float64
}

// Crowd is people of whom some use a service.
type Crowd struct {
	People float64
	// Active is the fraction of them that uses it at the busiest time.
	Active float64
	// EverySeconds is the time from one request of an active person to the next.
	EverySeconds float64
}

// mostPerMinute keeps the arithmetic finite.
const mostPerMinute = 1e9

func (d Demand) validate() error {
	switch {
	case !(d.PerMinute > 0 && d.PerMinute <= mostPerMinute):
		return fmt.Errorf("%v requests per minute are not allowed (want above 0, at most %g)", d.PerMinute, mostPerMinute)
	case !(d.TTFTSeconds >= 0 && d.StreamSeconds >= 0 && d.TTFTSeconds+d.StreamSeconds > 0) || math.IsInf(d.TTFTSeconds+d.StreamSeconds, 0):
		return errors.New("a request must take longer than 0")
	}
	return nil
}

// Demand is what the crowd asks for when a request takes so long.
func (c Crowd) Demand(ttftSeconds, streamSeconds float64) (Demand, error) {
	switch {
	case !(c.People > 0 && c.People <= mostPerMinute):
		return Demand{}, fmt.Errorf("%v people are not allowed (want above 0, at most %g)", c.People, mostPerMinute)
	case !(c.Active > 0 && c.Active <= 1):
		return Demand{}, fmt.Errorf("a share of %v active people is not allowed (want above 0, at most 1)", c.Active)
	case !(c.EverySeconds > 0) || math.IsInf(c.EverySeconds, 0):
		return Demand{}, fmt.Errorf("a request every %v s is not allowed (want above 0)", c.EverySeconds)
	}
	d := Demand{PerMinute: c.People * c.Active / c.EverySeconds * 60, TTFTSeconds: ttftSeconds, StreamSeconds: streamSeconds}
	return d, nil
}

// Concurrency is how many requests are in the system at once, by Little's law, and how many there are in the
// busiest moments if they come independently of each other and nobody has to wait. The crowd, if not nil, is
// where the demand comes from.
func Concurrency(d Demand, crowd *Crowd) (*Result, error) {
	if err := d.validate(); err != nil {
		return nil, err
	}
	r := newResult("concurrency", fmt.Sprintf("%s requests per minute that take %s s each", amount(d.PerMinute), amount(d.TTFTSeconds+d.StreamSeconds)))
	r.crowd(d, crowd)
	duration := d.TTFTSeconds + d.StreamSeconds
	if d.TTFTSeconds > 0 {
		r.add("duration_s", "time of a request", duration, "s", "time to first token + time from first to last token",
			fmt.Sprintf("%s + %s", amount(d.TTFTSeconds), amount(d.StreamSeconds)))
	} else {
		r.given("duration_s", "time of a request", duration, "s")
	}
	mean := d.PerMinute * duration / 60
	line := r.add("mean_requests", "requests at once, on average", mean, "requests", "requests per minute × seconds of each / 60",
		fmt.Sprintf("%s × %s / 60", amount(d.PerMinute), amount(duration)))
	line.Says = TierOf(mean).String()
	if d.TTFTSeconds > 0 {
		r.add("decoding_requests", "of which receive tokens", d.PerMinute*d.StreamSeconds/60, "requests",
			"requests per minute × seconds from first to last token / 60", fmt.Sprintf("%s × %s / 60", amount(d.PerMinute), amount(d.StreamSeconds)))
	}
	r.spread(mean)
	r.note("The mean is Little's law and holds for any arrivals; the percentiles are those of a Poisson number, for requests that come independently and never wait. Bursts need more: clifftop run measures them.")
	r.note("The time of a request depends on how many there are. With a scenario, --model or --gpu this command solves for both.")
	r.note("Users are not requests: who reads an answer has none in the system.")
	return r, nil
}

// crowd shows how people become requests.
func (r *Result) crowd(d Demand, c *Crowd) {
	if c == nil {
		r.given("requests_per_minute", "requests per minute", d.PerMinute, "1/min")
		return
	}
	r.given("people", "people", c.People, "people")
	r.add("active_people", "active at the peak", c.People*c.Active, "people", "people × active share", fmt.Sprintf("%s × %s", amount(c.People), percent(c.Active)))
	r.add("requests_per_minute", "requests per minute", d.PerMinute, "1/min", "active people / seconds between their requests × 60",
		fmt.Sprintf("%s / %s × 60", amount(c.People*c.Active), amount(c.EverySeconds)))
}

// spread shows what the mean hides.
func (r *Result) spread(mean float64) {
	above := int(math.Floor(mean))
	r.add("above_mean_fraction", "part of the time with more than the mean", exceeds(mean, above), "",
		fmt.Sprintf("P(N > %s) of a Poisson number N", amount(float64(above))), "mean "+amount(mean))
	for _, p := range []struct {
		name, text string
		of         float64
	}{{"p95_requests", "95 % of the time at most", .95}, {"p99_requests", "99 % of the time at most", .99}, {"p99_9_requests", "99.9 % of the time at most", .999}} {
		r.add(p.name, p.text, float64(quantile(mean, p.of)), "requests", fmt.Sprintf("least n with P(N ≤ n) ≥ %g", p.of), "mean "+amount(mean))
	}
	r.note("Common advice sees most companies between 1 and 10 requests at once; nothing here rests on that.")
}

// Tier is a range of mean concurrency, from From up to, not including, the next tier's From.
type Tier struct {
	From, Below float64
	Name        string
}

// String is the range and its name.
func (t Tier) String() string {
	if math.IsInf(t.Below, 1) {
		return fmt.Sprintf("%s and more: %s", amount(t.From), t.Name)
	}
	return fmt.Sprintf("from %s to below %s: %s", amount(t.From), amount(t.Below), t.Name)
}

// Tiers divide the concurrencies from 0 up. Common tables of deployment sizes let their ranges overlap at 3 and 10 and
// leave out 30 to 50, and what is below 1: here every range holds its lower edge, and there is no hole.
func Tiers() []Tier {
	return []Tier{
		{0, 1, "now and then a request"},
		{1, 3, "a small team"},
		{3, 10, "a department"},
		{10, 30, "several departments"},
		{30, 50, "a large department (common tables have no name for it)"},
		{50, math.Inf(1), "a platform for a whole company"},
	}
}

// TierOf is the tier that holds a mean concurrency.
func TierOf(mean float64) Tier {
	tiers := Tiers()
	for _, t := range tiers {
		if mean < t.Below {
			return t
		}
	}
	return tiers[len(tiers)-1]
}
