package sim

func (s *Simulation) check() { _ = s.engine }

func (s *Simulation) brake() {}
