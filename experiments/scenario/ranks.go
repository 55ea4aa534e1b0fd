package scenario

import "clifftop/model"

// joined reports whether the data-parallel ranks of a replica are simulated as one engine: where prompts and outputs
// are computed apart, ranks that exchange with each other's experts iterate in lock step, so that they begin and end as
// one.
func joined(s *Scenario, d *model.Deployment) bool {
	return s.apart() && s.Deployment.DataParallelSize > 1 && d.LLM.Experts > 0
}

// ranksTogether is the number of ranks that an engine stands for.
func ranksTogether(s *Scenario, d *model.Deployment) int {
	if !joined(s, d) {
		return 1
	}
	return s.Deployment.DataParallelSize / max(1, s.shares[s.role])
}

// spread is the timer of all ranks that the engine stands for, from that of one.
func spread(s *Scenario, e *Engine, d *model.Deployment, rank model.StepTimer) model.StepTimer {
	if !joined(s, d) {
		return rank
	}
	return model.NewSpread(rank, s.Deployment.DataParallelSize, s.shares[s.role], *e.MaxNumBatchedTokens)
}
