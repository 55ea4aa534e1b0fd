package playground

import (
	"fmt"
	"math"
	"strconv"

	"clifftop/experiments/lessons"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
)

// Query names a scenario: the empty scenario or the scenario of a lesson's step, with changes.
type Query struct {
	// Lesson is the number of a lesson; 0 is none. Step is the number of a step, from 1.
	Lesson int `json:"lesson"`
	Step   int `json:"step"`
	// Set changes keys, in order, as KEY=VALUE.
	Set []string `json:"set"`
}

// file is the name of the scenario in faults.
const file = "scenario.yaml"

// The length of a run whose scenario has no end: long enough to see an effect, short enough to follow a slider. It has
// the arrivals of most of a minute, within bounds. The upper bound is up to mostOfFleet times larger for a fleet. A
// closed loop has perUser requests of each user.
const (
	leastRequests = 400
	usualSeconds  = 50
	mostOfRate    = 1000
	mostOfFleet   = 4
	perUser       = 5
	mostOfUsers   = 5000
	usualLife     = 120.0 // seconds, where replicas come and go
)

// mostRequests bounds the length of a run, because users wait for it and cannot interrupt it.
const mostRequests = 50_000

// mostSeconds is the bound for a run with a duration.
const mostSeconds = 7200

// scenario reads the scenario of a query. Scenarios with the same base share data that is expensive to compute, such as
// tables of step times.
func (p *Player) scenario(q Query) (*scenario.Scenario, error) {
	base, err := p.base(q)
	if err != nil {
		return nil, err
	}
	var sets []scenario.Setting
	for _, text := range q.Set {
		set, err := scenario.ParseSetting(text)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	s, err := base.With(sets...)
	if err != nil {
		return nil, err
	}
	return bounded(s)
}

// base is the scenario before the changes of a query.
func (p *Player) base(q Query) (*scenario.Scenario, error) {
	key := [2]int{q.Lesson, q.Step}
	if s := p.bases[key]; s != nil {
		return s, nil
	}
	name, data, sets := file, []byte("{}"), []scenario.Setting(nil)
	if q.Lesson != 0 {
		l, err := lessons.Find(strconv.Itoa(q.Lesson))
		if err != nil {
			return nil, err
		}
		if q.Step < 1 || q.Step > len(l.Steps) {
			return nil, yamldoc.Faults{{Where: "step",
				Problem: fmt.Sprintf("%d is not one of lesson %d (want 1 to %d)", q.Step, q.Lesson, len(l.Steps))}}
		}
		step := &l.Steps[q.Step-1]
		scenarios, err := l.Scenarios()
		if err != nil {
			return nil, err
		}
		if sets, err = step.Typical(); err != nil {
			return nil, err
		}
		name, data = step.File(), scenarios[step.File()]
	}
	s, err := scenario.Parse(name, data, sets...)
	if err != nil {
		return nil, err
	}
	if p.bases == nil {
		p.bases = map[[2]int]*scenario.Scenario{}
	}
	p.bases[key] = s
	return s, nil
}

// bounded sets the length of a run if the scenario has none, and rejects a run that is too long.
func bounded(s *scenario.Scenario) (*scenario.Scenario, error) {
	switch {
	case s.Workload.Trace != nil:
		return nil, tooMuch("workload.trace", "a trace is a file, which the browser does not have")
	case s.Replicated():
		return nil, tooMuch("run.replications", "the playground runs a scenario once")
	case s.Run.Requests != nil && *s.Run.Requests > mostRequests:
		return nil, tooMuch("run.requests",
			fmt.Sprintf("%d are too many for the browser (want %d or less)", *s.Run.Requests, mostRequests))
	case s.Run.Duration != nil && s.Run.Duration.Seconds() > mostSeconds:
		return nil, tooMuch("run.duration",
			fmt.Sprintf("%g s is too long for the browser (want %d s or less)", s.Run.Duration.Seconds(), mostSeconds))
	case s.Run.Requests != nil || s.Run.Duration != nil:
		return s, nil
	}
	replicas := min(float64(s.Deployment.Replicas), mostOfFleet)
	requests, rate := leastRequests, 0.0
	if a := s.Workload.Arrivals; a != nil {
		for _, stage := range a.Stages {
			if stage.Duration != nil {
				return s, nil // the stages end it
			}
			if stage.Users != nil {
				requests = min(max(requests, perUser**stage.Users), mostOfUsers)
			}
			if stage.Rate != nil {
				rate = *stage.Rate
				requests = int(min(max(float64(requests), usualSeconds*rate), replicas*mostOfRate))
			}
		}
	}
	end := scenario.Setting{Key: "run.requests", Value: strconv.Itoa(requests), Flag: "playground"}
	if s.Lifecycle != nil { // whatever the load, the same happens
		length := min(usualLife, math.Floor(mostRequests/max(rate, 1)))
		end.Key, end.Value = "run.duration", strconv.FormatFloat(length, 'f', -1, 64)+"s"
	}
	return s.With(end)
}

// tooMuch is the fault of a run that is possible only on the command line.
func tooMuch(key, problem string) error {
	return yamldoc.Faults{{Key: key, Problem: problem,
		Hint: "clifftop run does it with the scenario that is copied from here"}}
}
