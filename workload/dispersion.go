package workload

import "math"

// Dispersion describes how much the counts of arrivals vary.
type Dispersion struct {
	// Asymptotic is the index of dispersion of counts, variance by mean, over long windows. It is 1 for a Poisson
	// process.
	Asymptotic float64
	// Correlation is the integral correlation time of the rate in seconds: ∫₀^∞ of its autocorrelation. It says how
	// long a high rate stays high. It is 0 if the rate does not change over time.
	Correlation float64
}

// disperser is a process that knows its dispersion.
type disperser interface {
	process
	// Dispersion returns that of the stationary process.
	Dispersion() Dispersion
}

// windowed is a disperser whose index of dispersion of counts is known for each window.
type windowed interface {
	// dispersionOver returns that of the counts in windows of so many seconds.
	dispersionOver(seconds float64) float64
}

// dispersionOver returns the dispersion of a window at a random place: the count is one of two neighbouring integers.
func (c constantGaps) dispersionOver(seconds float64) float64 {
	n := c.PerSecond * seconds
	part := n - math.Floor(n)
	return part * (1 - part) / n
}

func (p Poisson) dispersionOver(float64) float64 { return 1 }

func (p Profile) dispersionOver(float64) float64 { return 1 }

// dispersionOver adds up the covariances of the rates of the steps in a window that begins with a step:
//
//	I = 1 + λ/T · Σᵢ Σⱼ tᵢ tⱼ (exp(σ²ρ^|i−j|) − 1)
//
// where tᵢ are the seconds that the window T has of step i.
func (c Cox) dispersionOver(seconds float64) float64 {
	step, s2 := c.Step.Seconds(), c.Sigma*c.Sigma
	whole := math.Floor(seconds/step + 1e-9)
	rest := max(0, seconds-whole*step)
	sum := (whole*step*step + rest*rest) * math.Expm1(s2)
	const negligible = 1e-12
	x := s2
	for k := 1.0; k <= whole; k++ {
		if x *= c.Rho; x < negligible {
			break
		}
		sum += 2 * step * ((whole-k)*step + rest) * math.Expm1(x)
	}
	return 1 + c.PerSecond/seconds*sum
}

// Dispersion returns the dispersion of a deterministic process.
func (c constantGaps) Dispersion() Dispersion { return Dispersion{} }

// Dispersion is that of a Poisson process.
func (p Poisson) Dispersion() Dispersion { return Dispersion{Asymptotic: 1} }

// Dispersion is the squared coefficient of variation of the gaps, as for every renewal process (Cox and Lewis 1966).
func (g gammaRenewal) Dispersion() Dispersion { return Dispersion{Asymptotic: g.CV * g.CV} }

// Dispersion is the squared coefficient of variation of the gaps, Γ(1 + 2/k)/Γ(1 + 1/k)² − 1.
func (w weibullRenewal) Dispersion() Dispersion {
	a, _ := math.Lgamma(1 + 2/w.Shape)
	b, _ := math.Lgamma(1 + 1/w.Shape)
	return Dispersion{Asymptotic: math.Expm1(a - 2*b)}
}

// Dispersion sums the covariances of the rates of the steps, λ²(exp(σ²ρ^|k|) − 1):
//
//	I = 1 + λ·step·Σₖ (exp(σ²ρ^|k|) − 1)
//
// The correlation time is half of step·Σₖ (exp(σ²ρ^|k|) − 1)/(exp(σ²) − 1).
func (c Cox) Dispersion() Dispersion {
	s2 := c.Sigma * c.Sigma
	if s2 == 0 {
		return Dispersion{Asymptotic: 1}
	}
	one := math.Expm1(s2)
	sum := one
	const negligible = 1e-12
	for x := s2 * c.Rho; x > negligible; x *= c.Rho {
		sum += 2 * math.Expm1(x)
	}
	step := c.Step.Seconds()
	return Dispersion{Asymptotic: 1 + c.PerSecond*step*sum, Correlation: step * sum / one / 2}
}

// Dispersion adds to that of the gaps in a burst, CV², the asymptotic variance of the time in bursts of an alternating
// renewal process with lengths A and B (Cox 1962):
//
//	I = CV² + r²/λ · (E[B]² Var A + E[A]² Var B) / (E[A] + E[B])³
//
// with the rate r in bursts and the mean rate λ. The correlation time is half of that variance divided by the
// variance of the state, p(1−p).
func (o OnOff) Dispersion() Dispersion {
	a, b := o.OnMean.Seconds(), o.OffMean.Seconds()
	varA, varB := a*a*math.Expm1(o.OnSigma*o.OnSigma), b*b*math.Expm1(o.OffSigma*o.OffSigma)
	on := (b*b*varA + a*a*varB) / math.Pow(a+b, 3)
	r, p := o.BurstRate(), a/(a+b)
	return Dispersion{Asymptotic: o.CV*o.CV + r*r/o.PerSecond*on, Correlation: on / (p * (1 - p)) / 2}
}

// Dispersion returns the dispersion of a Poisson process: the profile itself is a known rate over time, not chance.
func (p Profile) Dispersion() Dispersion { return Dispersion{Asymptotic: 1} }

// Dispersion is the mean of the squared coefficients of variation of the sources' gaps, weighted by their shares.
func (p Superposed) Dispersion() Dispersion {
	const steps = 1000
	sum := 0.0
	for i := range steps {
		cv := p.cv((float64(i) + .5) / steps)
		sum += cv * cv / steps
	}
	return Dispersion{Asymptotic: sum}
}

// Dispersion returns that of the requests of an open loop with a single phase; ok is false for other traffic. The turns
// of a conversation arrive together in the long run: K turns make
//
//	I = I(starts)·E[K] + Var K / E[K].
func (s Spec) Dispersion() (d Dispersion, ok bool) {
	if len(s.Arrivals) != 1 || s.Closed() {
		return d, false
	}
	var f fieldFaults
	t := s.compile(&f)
	if f.Len() > 0 || len(t.processes) != 1 {
		return d, false
	}
	p, ok := t.processes[0].(disperser)
	if !ok {
		return d, false
	}
	d = p.Dispersion()
	mean, squares := 0.0, 0.0 // of the turns of an arrival
	for i := range t.parts {
		turns, square := t.parts[i].turns(), 1.0
		if t.parts[i].conversations != nil {
			square = t.parts[i].survey.turnSquares
		}
		mean += t.parts[i].share * turns
		squares += t.parts[i].share * square
	}
	if mean > 0 && len(t.parts) > 0 {
		d.Asymptotic = d.Asymptotic*mean + max(0, squares-mean*mean)/mean
	}
	return d, true
}

var (
	_ disperser = constantGaps{}
	_ disperser = Poisson{}
	_ disperser = gammaRenewal{}
	_ disperser = weibullRenewal{}
	_ disperser = Cox{}
	_ disperser = OnOff{}
	_ disperser = Profile{}
	_ disperser = Superposed{}
)
