package steady

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"strings"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario"
	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/report/stats"
	"clifftop/workload"
)

// What a settled run has.
const (
	// relaxations is the number of relaxation times that its windows last together, and eachRelaxations that of each
	// replication. 30 give a relative error of about 18 %, so that the precision is tested as well.
	relaxations, eachRelaxations = 30, 10
	// queueRelaxations is the number if a request's time to its first token is all queueing; it goes with the square of
	// queueing's share. The mean of a reflected Brownian motion over t relaxation times has a relative variance of 1/t
	// (W. Whitt, Management Science 35, 1989), so that 1,000 make the interval ±6 %. The estimated interval alone does
	// not do: it is short too often, and runs that stop when it is short are settled for that reason.
	queueRelaxations = 1000
	// precision is the largest relative half width of the intervals of its means.
	precision = .10
)

// means are the means that must be precise. The throughput of an open loop below saturation is that of the arrivals.
var means = []string{"latency_ms.ttft.mean", "latency_ms.tpot.mean", "latency_ms.e2e.mean"}

// Case is what is needed to judge the runs of one scenario, also in another process.
type Case struct {
	// Rates are the saturation rates of the system; nil in a closed loop, if nothing completes, and if they were not
	// looked for.
	Rates *report.Saturation `json:"rates"`
	// Low means that only the low rate was looked for; see [Saturation.Low].
	Low bool `json:"low,omitempty"`
	// SearchNeeds is the number of requests that a search for the rates takes at least, if it was too many; otherwise
	// 0.
	SearchNeeds int64 `json:"search_needs,omitempty"`
	// Finite means that the traffic or the fleet changes by design, so that no steady state is expected.
	Finite bool `json:"finite"`
	// Rate is the mean rate of arrivals per second, Users the number of users of a closed loop; the other one is 0.
	Rate  float64 `json:"rate"`
	Users int32   `json:"users"`
	// RelaxationS is the relaxation time in seconds; nil if there is none or it is unknown.
	RelaxationS *float64 `json:"relaxation_s"`
	// Traffic says how much the arrivals vary; nil if it is unknown. MeanOver is that of [report.Window].
	Traffic  *report.Traffic `json:"traffic"`
	MeanOver string          `json:"mean_over"`
	// Surges are those of a rate that wanders; nil if it does not.
	Surges *Surges `json:"surges,omitempty"`

	surgeWait *float64 // the result of [Surges.wait], once it is known
}

// Case returns what is needed to judge the runs of a setup of the system.
func (s *Saturation) Case(u *scenario.Setup) Case {
	c := s.load(u)
	c.Traffic, c.MeanOver = Traffic(u)
	return c
}

// load is the case without the traffic, which takes time to find.
func (s *Saturation) load(u *scenario.Setup) Case {
	c := Case{Rates: s.Rates, Low: s.Low, Rate: u.Traffic.Rate, Finite: u.Traffic.Recording != nil ||
		len(u.Traffic.Spec.Arrivals) != 1 || u.Report.Lifecycle || math.IsInf(u.Traffic.Rate, 0)}
	switch {
	case c.Finite:
	case u.Traffic.Closed:
		c.Users, c.Rate = u.Traffic.Spec.Arrivals[0].Users, 0
	default:
		c.know(s, u)
	}
	return c
}

// know adds what follows from the saturation of the system.
func (c *Case) know(s *Saturation, u *scenario.Setup) {
	c.Rates, c.Low, c.Surges = s.Rates, s.Low, s.surges(u)
	if d, ok := u.Traffic.Dispersion(); ok && s.Rates != nil {
		c.RelaxationS = stats.Finite(s.Relaxation(c.Rate, d))
	}
}

// Traffic says how much the arrivals vary, and over which time their rate is the mean. It is nil and empty where that
// does not follow from the scenario, as for recorded traffic.
func Traffic(u *scenario.Setup) (*report.Traffic, string) {
	spec := u.Traffic.Spec
	if u.Traffic.Recording != nil || len(spec.Arrivals) != 1 {
		return nil, ""
	}
	m, ok := spec.Minutes()
	if !ok {
		return nil, ""
	}
	t := &report.Traffic{Dispersion60S: stats.Finite(m.Dispersion), MinuteRate: report.MinuteRate{
		P05: stats.Finite(m.P05), P50: stats.Finite(m.P50), P95: stats.Finite(m.P95)}}
	if d, ok := spec.Dispersion(); ok {
		t.DispersionAsymptotic = stats.Finite(d.Asymptotic)
	}
	over := ""
	if a := spec.Arrivals[0]; a.Process == "cox" {
		over = cmp.Or(a.MeanOver, workload.MeanOverRun)
	}
	return t, over
}

// Relaxation is the time in seconds in which a queue near saturation forgets its state, and with it the longest request
// and the slow changes of the rate:
//
//	τ = 2 (I + c²) / (λ* (1 − ρ)²) + the correlation time of the rate + the longest residence
//
// with ρ = rate/λ*, I the asymptotic index of dispersion of the arrivals and c² the squared coefficient of variation of
// the work. λ* is the low saturation rate. The first term is the relaxation time of a reflected Brownian motion: twice
// its variance divided by the square of its drift. It is infinite at and above saturation.
func (s *Saturation) Relaxation(rate float64, d workload.Dispersion) float64 {
	low := s.Rates.LowRequestsPerS
	rho := rate / low
	if rho >= 1 {
		return math.Inf(1)
	}
	return 2*(d.Asymptotic+s.WorkCV2)/(low*(1-rho)*(1-rho)) + d.Correlation + s.Longest
}

// Judge says in a summary whether the run shows a steady state: it sets the state of the window, the time that a window
// needs, and the saturation rates, and adds warnings.
//
// A run at or above the lower end of the interval of the high rate is overloaded, however it looks. Without the high
// rate, a run is overloaded if it completes surely less than arrives while requests wait. Otherwise the run is
// settled if its window lasts 30 relaxation times, up to 1,000 where requests mostly wait in the queue, and the means
// are known to 10 %. Their intervals allow for surges of the rate above saturation, which few runs see. If this depends
// on a rate that is not known, the state is undetermined. A closed loop is settled after 30 cycles of its users. Runs
// of phases, of recorded traffic, and with a lifecycle are finite.
func (c *Case) Judge(sum *report.Summary) {
	w := &sum.Window
	sum.Saturation, w.MeanOver = c.Rates, c.MeanOver
	if c.Traffic != nil { // otherwise the run has counted its arrivals
		sum.Traffic = c.Traffic
	}
	w.NeedsS = c.needs(sum)
	w.State = c.state(sum)
	switch w.State {
	case report.Settled:
		w.Stationary = new(bool)
		*w.Stationary = true
	case report.Overloaded:
		w.Stationary = new(bool)
		if b := w.Backlog; c.beyond(w) {
			sum.Saturation = &report.Saturation{LowRequestsPerS: b.RequestsPerS, LowCI95: b.CI95,
				HighRequestsPerS: b.RequestsPerS, HighCI95: b.CI95}
		}
	default:
		if w.Stationary != nil && *w.Stationary {
			w.Stationary = nil
		}
		c.withhold(sum)
	}
	sum.Predictive.Overloaded(w.Stationary)
	c.warn(sum)
}

// withhold takes the intervals of mean latencies from replications of an hour or longer that do not settle. A few bad
// hours make most of such a mean, and ten hours seldom have one: half of the intervals hold it where 95 % should. The
// median hour has an interval instead.
func (c *Case) withhold(sum *report.Summary) {
	if sum.Hours == nil || sum.Replications == nil || c.Finite || c.Rate == 0 {
		return
	}
	maps.DeleteFunc(sum.CI95, func(path string, _ [2]float64) bool { return strings.HasPrefix(path, "latency_ms.") })
	sum.AddWarning("hours_differ", "the runs are too short to settle, so that mean latencies have no interval: a few "+
		"bad hours make most of such a mean. The median hour has one")
}

// needs is the time in seconds that windows must last together to show a steady state.
func (c *Case) needs(sum *report.Summary) *float64 {
	switch x := sum.Throughput.RequestsPerS; {
	case c.RelaxationS != nil:
		share := congestion(sum)
		return stats.Finite(max(relaxations, queueRelaxations*share*share) * *c.RelaxationS)
	case c.Users > 0 && x != nil && *x > 0:
		return stats.Finite(relaxations * float64(c.Users) / *x)
	}
	return nil
}

// congestion is the share of the mean TTFT that requests wait because others have what they need. The wait for the end
// of an iteration is not among it: it is short and forgotten at once.
func congestion(sum *report.Summary) float64 {
	queue, ttft := sum.Latency.Queue.Mean, sum.Latency.TTFT.Mean
	if queue == nil || ttft == nil || *ttft <= 0 {
		return 0
	}
	share := min(*queue / *ttft, 1)
	g, waiting := &sum.System.GapByCause, 0.0
	for _, part := range []*float64{g.KV, g.TokenBudget, g.Seats, g.Policy, g.Idle, g.Boundary} {
		waiting += optional.Value(part)
	}
	if waiting > 0 {
		share *= 1 - optional.Value(g.Boundary)/waiting
	}
	return share
}

// overloaded reports whether the load is at or above saturation.
func (c *Case) overloaded() bool {
	return c.Rates != nil && !c.Finite && c.Rate >= c.Rates.HighCI95[0]
}

// beyond reports whether a run that does not know the high saturation rate shows by its own backlog that the load is
// above saturation.
func (c *Case) beyond(w *report.Window) bool {
	return (c.Rates == nil || c.Low) && !c.Finite && c.Rate > 0 && w.Backlog != nil && w.Backlog.CI95[1] < c.Rate
}

// Open reports whether the verdict on a run depends on a search for the saturation rates that was not made.
func (c *Case) Open(sum *report.Summary) bool {
	return c.Rates == nil && !c.Finite && c.Rate > 0 && !c.beyond(&sum.Window) && looksSettled(sum)
}

// looksSettled reports whether the run is stationary and its means are known to 10 %, by itself.
func looksSettled(sum *report.Summary) bool {
	path, half := sum.Widest(means)
	return !sum.Window.Unsettled() && !sum.Partial && path != "" && half <= precision && sum.HasIntervals(means)
}

func (c *Case) state(sum *report.Summary) string {
	w := &sum.Window
	switch {
	case c.beyond(w), c.overloaded() && !c.Low:
		return report.Overloaded
	case c.SearchNeeds > 0 && c.Open(sum), c.Low && c.overloaded() && looksSettled(sum):
		return report.Undetermined
	case w.NeedsS == nil, c.overloaded(), w.Unsettled(), sum.Partial:
		return report.Finite
	}
	each, total := lengths(sum)
	least := *w.NeedsS * eachRelaxations / relaxations
	if c.RelaxationS != nil {
		least = *c.RelaxationS * eachRelaxations
	}
	if total < *w.NeedsS || each < least {
		return report.Finite
	}
	c.allow(sum)
	if !looksSettled(sum) {
		return report.Finite
	}
	return report.Settled
}

// lengths are how long the window of each replication lasts, and all together, in seconds.
func lengths(sum *report.Summary) (each, total float64) {
	each = sum.Window.EndS - sum.Window.StartS
	if r := sum.Replications; r != nil {
		return each, each * float64(r.Runs)
	}
	return each, each
}

// warn says what the state means.
func (c *Case) warn(sum *report.Summary) {
	r := sum.Saturation
	switch w := &sum.Window; {
	case w.State == report.Overloaded && w.GrowthRequestsPerS == nil:
		sum.DropWarning("not_stationary")
		sum.AddWarning("not_stationary", fmt.Sprintf("overload: the rate of %s requests/s is not below saturation, "+
			"%s (%s to %s), so latencies depend on how long the run is", layout.Digits(c.Rate),
			layout.Digits(r.HighRequestsPerS), layout.Digits(r.HighCI95[0]), layout.Digits(r.HighCI95[1])))
	case w.State == report.Undetermined:
		sum.Effort.SearchNeedsRequests = max(c.SearchNeeds, 0)
		if c.Low {
			sum.Effort.SearchNeedsRequests = fullSearch
		}
		sum.AddWarning("not_determined", undeterminedText(sum.Effort.SearchNeedsRequests))
	case w.State == report.Finite && r != nil && r.Metastable && !c.Finite && c.Rate >= r.LowCI95[0]:
		sum.AddWarning("metastable_rate", fmt.Sprintf("metastable: at %s requests/s the system keeps up if it starts "+
			"empty, but it recovers from a backlog only below %s", layout.Digits(c.Rate),
			layout.Digits(r.LowRequestsPerS)))
	}
}

// undeterminedText says what would settle whether a run shows a steady state.
func undeterminedText(needs int64) string {
	return fmt.Sprintf("whether the run shows a steady state is not determined: that takes a search for the "+
		"saturation rate with about %s requests, more than a tenth of the run's (want --find-saturation, or a run of "+
		"%s requests)",
		layout.Significant(float64(needs), 2), layout.Significant(float64(searchShare*needs), 2))
}
