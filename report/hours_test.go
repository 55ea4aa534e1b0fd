package report

import (
	"math"
	"testing"
)

// TestSpreadOfHours: of 1…12, the median is 6.5 between the 3rd and the 10th value, since P(B(12, ½) ≤ 2) = 1.9 %.
func TestSpreadOfHours(t *testing.T) {
	values := []float64{7, 1, 12, 3, 9, 5, 2, 11, 4, 10, 6, 8}
	h := spreadOfHours(values, true)
	if *h.Least != 1 || *h.Most != 12 || *h.Median < 6 || *h.Median > 7 || *h.P10 > 3 || *h.P90 < 10 ||
		h.MedianCI95 == nil || *h.MedianCI95 != [2]float64{3, 10} {
		t.Errorf("%v to %v, median %v, %v to %v, interval %v", *h.Least, *h.Most, *h.Median, *h.P10, *h.P90, h.MedianCI95)
	}
	if h := spreadOfHours(values, false); h.MedianCI95 != nil {
		t.Error("hours of one run are taken for independent")
	}
	if h := spreadOfHours(values[:5], true); h.P10 != nil || h.P90 != nil || h.MedianCI95 != nil || h.Median == nil {
		t.Errorf("five hours: %+v", h)
	}
	if h := spreadOfHours([]float64{1, math.NaN()}, true); h != (HourSpread{}) {
		t.Errorf("an hour without a value: %+v", h)
	}
}
