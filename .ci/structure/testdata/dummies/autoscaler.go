package autoscale

import "clifftop/sim/clock"

var dummyRule = Rule{
	Name: "dummy-autoscaler",
	Does: "a fixed number of replicas",
	New:  func() Options { return &Dummy{Replicas: 1} },
}

// Dummy wants the same number of replicas all the time.
type Dummy struct {
	Replicas int `json:"replicas" range:"[1,64]" doc:"number of replicas"`
}

// Make implements [Options].
func (d *Dummy) Make(float64) Policy { made := *d; return &made }

// Defaults implements [Options].
func (*Dummy) Defaults() Defaults { return Defaults{Metric: Waiting, Scrape: clock.Second} }

// Longest implements [Options].
func (*Dummy) Longest() clock.Duration { return 0 }

// Validate implements [Policy].
func (*Dummy) Validate(int) error { return nil }

// Turn implements [Policy].
func (d *Dummy) Turn(s *State) (int, clock.Time) { return d.Replicas, s.Now.Add(10 * clock.Second) }
