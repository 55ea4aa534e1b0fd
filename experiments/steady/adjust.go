package steady

import (
	"math"

	"clifftop/experiments/scenario"
)

// adjust removes from the rate what is due to the lengths that the sample happens to have. The means of synthetic
// lengths are known, so that they are control variates: the work of a request is regressed on its tokens, and the rate
// is corrected to the known means. The rest, which the regression does not explain, remains in the interval.
func (d *drain) adjust(list []service, u *scenario.Setup) {
	spec := u.Traffic.Spec
	if u.Traffic.Recording != nil || spec.Sessions != nil || len(spec.Classes) > 0 {
		return
	}
	input, output, err := spec.MeanTokens()
	if err != nil {
		return
	}
	r := regress(list)
	n := float64(len(list))
	expected := r.work + r.perInput*(input-r.input) + r.perOutput*(output-r.output)
	const plausible = 6 // standard errors; beyond, the sample was cut, for example at max_model_len
	if off := math.Abs(expected/r.work - 1); !(expected > 0) || off > plausible*math.Sqrt(d.cv2/n) {
		return
	}
	d.rate *= r.work / expected
	d.relative = math.Hypot(normal*math.Sqrt(r.residual/n)/r.work, d.spread)
}

// regression is the work of requests as a linear function of their tokens, with the means of the sample.
type regression struct {
	input, output, work float64 // means
	perInput, perOutput float64
	residual            float64 // variance
}

// regress finds the least squares.
func regress(list []service) regression {
	var r regression
	n := float64(len(list))
	for i := range list {
		r.input += list[i].input / n
		r.output += list[i].output / n
		r.work += list[i].work / n
	}
	var xx, yy, xy, xw, yw, ww float64
	for i := range list {
		x, y, w := list[i].input-r.input, list[i].output-r.output, list[i].work-r.work
		xx, yy, xy, xw, yw, ww = xx+x*x, yy+y*y, xy+x*y, xw+x*w, yw+y*w, ww+w*w
	}
	switch det := xx*yy - xy*xy; {
	case det > 1e-9*xx*yy:
		r.perInput, r.perOutput = (xw*yy-yw*xy)/det, (yw*xx-xw*xy)/det
	case xx > 0:
		r.perInput = xw / xx
	case yy > 0:
		r.perOutput = yw / yy
	}
	r.residual = max(0, (ww-r.perInput*xw-r.perOutput*yw)/n)
	return r
}
