package calibration

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
)

// observation is one measured number.
type observation struct {
	run    int     // observations of one run are left out together
	metric string  // such as ttft_mean_ms
	spread float64 // standard deviation of the measurement, as a fraction
}

// problem is a fit. Its residuals are ln(simulated/measured), one for each observation.
type problem struct {
	parameters   []Parameter
	observations []observation
	left         []int       // group of each observation that is left out together; nil means its run
	unidentified []Parameter // that the observations do not determine: they keep the catalog's value
	marginal     []float64   // standard deviations of the parameters while the unidentified ones are free
	residuals    func(ctx context.Context, x []float64) ([]float64, error)
	progress     func(done, total int)
}

// fit is the solution of a problem.
type fit struct {
	x, sd         []float64
	before, after []float64 // residuals
	left          []float64 // residuals of a fit without the observation's group
}

const (
	// rounds is the number of linearizations. The model is nearly linear in these constants.
	rounds = 3
	// probe is the step of a parameter for its derivative, as a fraction of the prior's standard deviation.
	probe = 0.15
	// huber is the residual, in standard deviations, above which the loss grows linearly instead of quadratically.
	huber = 2.0
	// wide is the share of the prior's standard deviation above which the observations say next to nothing about a
	// parameter: they then take away less than a third of its variance.
	wide = 0.8
	// perParameter is the number of observations that a fitted parameter needs.
	perParameter = 2
)

func (p *problem) solve(ctx context.Context) (*fit, error) {
	n := len(p.parameters)
	x := make([]float64, n)
	done, total := 0, rounds*(n+1)+1
	evaluate := func(at []float64) ([]float64, error) {
		r, err := p.residuals(ctx, at)
		done++
		if p.progress != nil {
			p.progress(done, total)
		}
		return r, err
	}
	f := &fit{}
	var j *mat.Dense
	var r []float64
	for round := range rounds {
		var err error
		if r, err = evaluate(x); err != nil {
			return nil, err
		}
		if round == 0 {
			f.before = r
		}
		j = mat.NewDense(len(r), n, nil)
		for k, q := range p.parameters {
			moved := append([]float64(nil), x...)
			moved[k] += probe * q.scale
			s, err := evaluate(moved)
			if err != nil {
				return nil, err
			}
			for i := range r {
				j.Set(i, k, (s[i]-r[i])/(probe*q.scale))
			}
		}
		if round == 0 {
			if j, err = p.identify(j); err != nil {
				return nil, err
			}
			n = len(p.parameters)
			x = make([]float64, n)
			total = done + (rounds-1)*(n+1) + 1
		}
		if x, err = p.step(x, r, j, -1); err != nil {
			return nil, err
		}
	}
	last := append([]float64(nil), x...)
	var err error
	if f.after, err = evaluate(last); err != nil {
		return nil, err
	}
	f.x, f.sd = last, p.deviations(j)
	for k := range f.sd {
		f.sd[k] = max(f.sd[k], p.marginal[k])
	}
	return f, p.leaveOut(f, j)
}

// identify removes, one by one, the parameter whose standard deviation is nearest to its prior's: as long as it
// is wide, or there are fewer than two observations for each parameter. It returns the remaining columns of j.
func (p *problem) identify(j *mat.Dense) (*mat.Dense, error) {
	p.marginal = p.deviations(j)
	for len(p.parameters) > 0 {
		worst, share := 0, 0.0
		for k, sd := range p.deviations(j) {
			if s := sd / p.parameters[k].scale; s > share {
				worst, share = k, s
			}
		}
		n := len(p.parameters)
		if share <= wide && perParameter*n <= max(len(p.observations), perParameter) {
			return j, nil
		}
		p.unidentified = append(p.unidentified, p.parameters[worst])
		p.parameters = slices.Delete(slices.Clone(p.parameters), worst, worst+1)
		p.marginal = slices.Delete(p.marginal, worst, worst+1)
		if n == 1 {
			break
		}
		rest := mat.NewDense(len(p.observations), n-1, nil)
		for i := range p.observations {
			row := slices.Delete(slices.Clone(j.RawRowView(i)), worst, worst+1)
			rest.SetRow(i, row)
		}
		j = rest
	}
	return nil, errors.New("the measurements identify none of the constants " +
		"(want more runs, at other loads or lengths)")
}

// step minimizes the loss of the model linearized at x, without the observations of one group; -1 leaves none out.
func (p *problem) step(x, r []float64, j *mat.Dense, without int) ([]float64, error) {
	n := len(x)
	loss := func(d, gradient []float64) float64 {
		sum := 0.0
		for k := range n {
			z := (x[k] + d[k]) / p.parameters[k].scale
			sum += z * z / 2
			if gradient != nil {
				gradient[k] = z / p.parameters[k].scale
			}
		}
		for i, o := range p.observations {
			if p.group(i) == without {
				continue
			}
			z := r[i]
			for k := range n {
				z += j.At(i, k) * d[k]
			}
			z /= o.spread
			root := math.Sqrt(1 + z*z/(huber*huber))
			sum += huber * huber * (root - 1)
			if gradient != nil {
				for k := range n {
					gradient[k] += z / root * j.At(i, k) / o.spread
				}
			}
		}
		return sum
	}
	best, err := optimize.Minimize(optimize.Problem{
		Func: func(d []float64) float64 { return loss(d, nil) },
		Grad: func(gradient, d []float64) { loss(d, gradient) },
	}, make([]float64, n), nil, &optimize.BFGS{})
	if best == nil {
		return nil, fmt.Errorf("calibration: %w", err)
	}
	next := make([]float64, n)
	for k := range n {
		// The linearization is valid only near x, so the step is limited.
		limit := 1.5 * p.parameters[k].scale
		next[k] = x[k] + min(max(best.X[k], -limit), limit)
	}
	return next, nil
}

// deviations returns the standard deviations of the parameters, from the curvature of the quadratic loss.
func (p *problem) deviations(j *mat.Dense) []float64 {
	n := len(p.parameters)
	h := mat.NewSymDense(n, nil)
	for a := range n {
		h.SetSym(a, a, 1/(p.parameters[a].scale*p.parameters[a].scale))
	}
	for i, o := range p.observations {
		for a := range n {
			for b := a; b < n; b++ {
				h.SetSym(a, b, h.At(a, b)+j.At(i, a)*j.At(i, b)/(o.spread*o.spread))
			}
		}
	}
	var c mat.Cholesky
	var inverse mat.SymDense
	sd := make([]float64, n)
	if !c.Factorize(h) || c.InverseTo(&inverse) != nil {
		for a := range n {
			sd[a] = p.parameters[a].scale // nothing but the prior is known
		}
		return sd
	}
	for a := range n {
		sd[a] = math.Sqrt(inverse.At(a, a))
	}
	return sd
}

func (p *problem) group(i int) int {
	if p.left != nil {
		return p.left[i]
	}
	return p.observations[i].run
}

// leaveOut predicts each group by a fit to the others, in the linearized model.
func (p *problem) leaveOut(f *fit, j *mat.Dense) error {
	f.left = append([]float64(nil), f.after...)
	runs := map[int]bool{}
	for i := range p.observations {
		runs[p.group(i)] = true
	}
	if len(runs) < 2 {
		return errors.New("calibration: one run is not enough (want two or more)")
	}
	for run := range len(p.observations) {
		if !runs[run] {
			continue
		}
		x, err := p.step(f.x, f.after, j, run)
		if err != nil {
			return err
		}
		for i := range p.observations {
			if p.group(i) != run {
				continue
			}
			for k := range x {
				f.left[i] += j.At(i, k) * (x[k] - f.x[k])
			}
		}
	}
	return nil
}
