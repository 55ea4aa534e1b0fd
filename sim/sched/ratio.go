package sched

// newTokenRatio is the fraction of their remaining outputs that SGLang reserves for the running requests. It starts
// high, falls with each decode step, rises when the pool ran out, and starts again when the replica is idle.
type newTokenRatio struct {
	initial float64
	value   float64 // after since decode steps
	since   int64
}

// SGLang's constants: the first ratio, the lowest one as a fraction of it, the decode steps in between, and the steps
// that a correction looks ahead.
const (
	initialRatio   = 0.7
	lowestPart     = 0.14
	decaySteps     = 600
	correctedSteps = 20
)

// start sets the first ratio of a run.
func (r *newTokenRatio) start(conservativeness float64) {
	if r.initial == 0 {
		if conservativeness == 0 {
			conservativeness = 1
		}
		r.initial = min(initialRatio*conservativeness, 1)
		r.value = r.initial
	}
}

// reset returns to the first ratio at a number of decode steps.
func (r *newTokenRatio) reset(steps int64) { r.value, r.since = r.initial, steps }

// skip excludes the decode step that is composed from the decay.
func (r *newTokenRatio) skip() { r.since++ }

func (r *newTokenRatio) at(steps int64) float64 {
	if steps <= r.since {
		return r.value
	}
	lowest := r.initial * lowestPart
	decay := (r.initial - lowest) / decaySteps
	return max(r.value-float64(decay*float64(steps-r.since)), lowest)
}

// correct sets the ratio after a retraction: what the remaining sequences have produced, and will in the next steps,
// divided by what they may produce. The step that is composed does not lower it. inFlight is the number of tokens that
// do not count as output yet.
func (r *newTokenRatio) correct(v View, left []Seq, inFlight int) {
	var generated, most int64
	for _, s := range left {
		p := v.Progress(s)
		generated += int64(p.Generated)
		most += int64(p.MaxTokens)
	}
	generated -= int64(min(inFlight, len(left)))
	r.value = min(1, float64(generated+correctedSteps*int64(len(left)))/float64(most+1))
	r.since = v.DecodeSteps() + 1
}
