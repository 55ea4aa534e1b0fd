package playground

import (
	"context"
	"errors"
	"strconv"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/experiments/steady"
	"clifftop/experiments/sweep"
	"clifftop/report/curve"
)

// A curve is drawn twice: at once from short runs, and then again from longer ones, load by load. A run of the first
// round lasts a few times as long as a request, so that the system fills, but not longer than people wait.
const (
	curvePoints = 12

	roundLengths  = 5
	leastOfRound  = 300
	mostOfRound   = 1500
	laterRound    = 4    // times as long as the first
	shareOfFirst  = 0.25 // of a duration that the scenario gives
	usersPerRound = 3    // requests of each user
)

// Rounds is how often a curve is drawn; once, of fleets whose replicas come and go.
const Rounds = 2

// drawnCurve is the one being drawn.
type drawnCurve struct {
	base   *scenario.Scenario
	plan   Plan
	system *steady.Saturation
	points map[int]curve.Point
}

// Plan says which loads a curve has.
type Plan struct {
	// Over is the varied load: rate or users.
	Over   string    `json:"over"`
	Loads  []float64 `json:"loads"`
	Rounds int       `json:"rounds"`
	// Bound is the most that the system can do in the long run; nil if it is unknown.
	Bound *Bound `json:"bound"`
}

// Bound is the throughput of a system that works off a backlog.
type Bound struct {
	RequestsPerS     float64 `json:"requests_per_s"`
	OutputTokensPerS float64 `json:"output_tokens_per_s"`
}

// Curve begins a curve over the load of a query's scenario: that of its users in a closed loop, and else its rate.
func (p *Player) Curve(ctx context.Context, q Query) (*Plan, error) {
	s, err := p.scenario(q)
	if err != nil {
		return nil, err
	}
	over, err := loadKey(s)
	if err != nil {
		return nil, err
	}
	u, err := s.Resolve()
	if err != nil {
		return nil, err
	}
	system, err := p.system(ctx, s, u)
	if err != nil {
		return nil, err
	}
	loads := sweep.Loads(system, u, curvePoints)
	if len(loads) == 0 {
		return nil, yamldoc.Faults{{Problem: "no request completes, however small the load"}}
	}
	// The load at hand is on the curve, unless it is far beyond.
	const far = 4
	if last, now := loads[len(loads)-1], loadOf(u.Scenario); now > last && now <= far*last {
		loads = append(loads, now)
	}
	rounds := Rounds
	if s.Lifecycle != nil {
		rounds = 1 // a part of a run would have a part of its failures
	}
	p.curve = drawnCurve{base: s, system: system,
		plan:   Plan{Over: over, Loads: loads, Rounds: rounds, Bound: boundOf(system, u)},
		points: map[int]curve.Point{}}
	return &p.curve.plan, nil
}

func boundOf(system *steady.Saturation, u *scenario.Setup) *Bound {
	_, output, err := u.Traffic.Spec.MeanTokens()
	if err != nil || system.Throughput == 0 {
		return nil
	}
	return &Bound{RequestsPerS: system.Throughput, OutputTokensPerS: system.Throughput * output}
}

func loadKey(s *scenario.Scenario) (string, error) {
	a := s.Workload.Arrivals
	switch {
	case a == nil:
	case len(a.Stages) > 1:
		return "", yamldoc.Faults{{Key: "workload.arrivals",
			Problem: "the arrivals have several stages, and so no one load to draw a curve over"}}
	case a.Stages[0].Users != nil || a.Stages[0].Process == "closed":
		return scenario.UsersKey, nil
	case a.Stages[0].Process == "all-at-once":
		return "", yamldoc.Faults{{Key: "workload.arrivals",
			Problem: "the requests arrive all at once, and so have no rate to draw a curve over"}}
	}
	return scenario.RateKey, nil
}

// loadOf is the load of a resolved scenario; 0 where it has none.
func loadOf(s *scenario.Scenario) float64 {
	a := s.Workload.Arrivals
	switch {
	case a == nil:
	case a.Stages[0].Users != nil:
		return float64(*a.Stages[0].Users)
	case a.Stages[0].Rate != nil:
		return *a.Stages[0].Rate
	}
	return 0
}

// Load runs the load number i of the curve in the round, counted from 0, and returns its point.
func (p *Player) Load(ctx context.Context, i, round int) (*curve.Point, error) {
	c := &p.curve
	if i < 0 || i >= len(c.plan.Loads) || round < 0 || round >= c.plan.Rounds {
		return nil, errors.New("playground: the curve has no such load")
	}
	s, err := c.at(c.plan.Loads[i], round)
	if err != nil {
		return nil, err
	}
	u, err := s.Resolve()
	if err != nil {
		return nil, err
	}
	r, err := experiments.RunSetup(ctx, u, experiments.RunOptions{})
	if err != nil {
		return nil, err
	}
	judge(c.system, u, r.Summary)
	r.Summary.Scenario = nil // the same for all
	c.points[i] = curve.Point{Value: c.plan.Loads[i], Summary: r.Summary}
	point := c.points[i]
	return &point, nil
}

// at is the scenario at a load, as long as the round wants it.
func (c *drawnCurve) at(load float64, round int) (*scenario.Scenario, error) {
	const flag = "curve"
	times := 1.0
	if round > 0 {
		times = laterRound
	}
	sets := []scenario.Setting{{Key: c.plan.Over, Value: strconv.FormatFloat(load, 'f', -1, 64), Flag: flag}}
	switch d := c.base.Run.Duration; {
	case c.base.Lifecycle != nil:
	case d != nil && round == 0:
		short := strconv.FormatFloat(d.Seconds()*shareOfFirst, 'f', 3, 64) + "s"
		sets = append(sets, scenario.Setting{Key: "run.duration", Value: short, Flag: flag})
		if w := c.base.Run.Warmup; w.Length > 0 {
			cut := strconv.FormatFloat(w.Length.Seconds()*shareOfFirst, 'f', 3, 64) + "s"
			sets = append(sets, scenario.Setting{Key: "run.warmup", Value: cut, Flag: flag})
		}
	case d == nil:
		n := load * roundLengths * c.system.Service
		if c.plan.Over == scenario.UsersKey {
			n = load * usersPerRound
		}
		most := mostOfRound * min(float64(c.base.Deployment.Replicas), mostOfFleet)
		n = times * min(max(n, leastOfRound), most)
		sets = append(sets, scenario.Setting{Key: "run.requests", Value: strconv.Itoa(int(n)), Flag: flag})
	}
	return c.base.With(sets...)
}

// Judgement returns the findings of a curve: knee, peak, collapse and its cause.
func (p *Player) Judgement() *curve.Curve {
	c := &p.curve
	var points []curve.Point
	for i := range c.plan.Loads {
		if q, ok := c.points[i]; ok {
			points = append(points, q)
		}
	}
	if len(points) == 0 {
		return nil
	}
	judged := curve.New(c.plan.Over, points)
	judged.Clifftop = experiments.Version
	return judged
}
