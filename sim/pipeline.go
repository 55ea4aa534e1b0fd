package sim

import (
	"errors"
	"fmt"

	"clifftop/sim/sched"
)

// maxStages limits the stages of a pipeline.
const maxStages = 1 << 10

// validatePipeline reports what does not go with the stages of a pipeline.
func (c *Config) validatePipeline() (faults []error) {
	if c.Stages < 1 || c.Stages > maxStages {
		return []error{fmt.Errorf("pipeline stages: %d is not allowed (want 1 to %d)", c.Stages, maxStages)}
	}
	without := func(on bool, what string) {
		if on {
			faults = append(faults, errors.New("pipeline stages: they do not go with "+what))
		}
	}
	without(c.Speculative.On(), "speculative decoding")
	without(c.Radix, "a radix cache")
	without(c.Contiguous, "contiguous KV")
	without(c.HostBlocks > 0, "swap space")
	without(c.Connector != nil, "KV that is loaded or offloaded")
	_, fair := c.Order.(sched.Fair)
	without(fair, "an order that shares service among clients")
	if p, ok := c.Scheduler.(sched.Pipelined); ok {
		if err := p.Pipelined(); err != nil {
			faults = append(faults, err)
		}
	} else if c.Scheduler != nil {
		faults = append(faults, fmt.Errorf("pipeline stages: policy %T does not go with them", c.Scheduler))
	}
	return faults
}
