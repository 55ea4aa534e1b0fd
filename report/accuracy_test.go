package report

import "testing"

// TestAccuracyOfOverload says that errors of steady runs are not those of overloaded ones.
func TestAccuracyOfOverload(t *testing.T) {
	tpot, steady, not := 0.02, true, false
	a := &Accuracy{Runs: 5, Exact: true, Scope: "median of 5 runs", TPOT: &tpot}
	a.Unsteady(&steady)
	a.Unsteady(nil)
	if want := "in sample: TPOT ±2.00 % (median of 5 runs)"; a.String() != want || !a.Exact {
		t.Errorf("%q, want %q", a.String(), want)
	}
	a.Unsteady(&not)
	if want := "in sample: TPOT ±2.00 % (median of 5 runs; not of overloaded ones, whose waiting times are off by much more)"; a.String() != want || a.Exact {
		t.Errorf("%q, want %q", a.String(), want)
	}
	(*Accuracy)(nil).Unsteady(&not)
}
