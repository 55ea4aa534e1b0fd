package sim

import "planted/sim/engine"

// Simulation runs an engine.
type Simulation struct{ engine engine.Engine }

// New returns a simulation.
//
// Its doc comment counts, too: six lines.
func New() *Simulation {
	return &Simulation{}
}

func (s *Simulation) Go(stop bool) {
	s.check()
	if stop {
		s.stop()
	}
}

func (s *Simulation) stop() {}
