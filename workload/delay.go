package workload

import (
	"cmp"
	"math"
	"math/rand/v2"

	"clifftop/sim/clock"
)

// Delay is a distribution of waiting times, such as the think time between an output and the user's next request.
// The zero Delay does not wait.
type Delay struct {
	// Distribution is fixed (also when empty), exponential or lognormal.
	Distribution string `yaml:"distribution,omitempty" json:"distribution,omitempty"`
	// Mean is the mean wait.
	Mean clock.Duration `yaml:"mean" json:"mean"`
	// CV is the coefficient of variation of lognormal.
	CV float64 `yaml:"cv,omitempty" json:"cv,omitempty"`
}

// Sample draws a wait.
func (d Delay) Sample(src rand.Source) clock.Duration {
	switch d.Distribution {
	case "exponential":
		return gap(rand.New(src).ExpFloat64() * d.Mean.Seconds())
	case "lognormal":
		l := LognormalOf(d.Mean.Seconds(), d.CV)
		return gap(math.Exp(l.Mu + float64(l.Sigma*rand.New(src).NormFloat64())))
	}
	return d.Mean
}

func (d Delay) check(key string, f *fieldFaults) {
	if d.Mean < 0 || d.Mean > clock.MaxRun {
		f.add(key+".mean", "%v is not allowed (want 0 to %v)", d.Mean, clock.MaxRun)
	}
	switch d.Distribution {
	case "", "fixed", "exponential":
		if d.CV != 0 {
			f.add(key+".cv", "does not apply to %s (want distribution: lognormal)", cmp.Or(d.Distribution, "fixed"))
		}
	case "lognormal":
		f.number(key+".cv", d.CV, d.CV > 0 && d.CV <= 100, "more than 0, at most 100")
		f.lasting(key+".mean", d.Mean)
	default:
		f.add(key+".distribution", "%q is not known (want fixed, exponential or lognormal)", d.Distribution)
	}
}
