package iterations_test

import (
	"context"
	"testing"

	"clifftop/experiments/iterations"
	"clifftop/internal/testenv"
	"clifftop/model"
)

// TestReference scores the published iterations: six runs of vLLM 0.20.1 on B300, dense and hybrid.
func TestReference(t *testing.T) {
	testenv.NeedsLong(t, "40,000 measured iterations")
	files, err := iterations.Open(testenv.Reference(t, "iterations"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := iterations.Score(context.Background(), files, iterations.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Scored() != len(files) {
		t.Errorf("%d of %d files are scored", r.Scored(), len(files))
	}
	for _, k := range r.Kinds {
		most := map[model.IterationKind][2]float64{model.PrefillIteration: {0.08, 0.20},
			model.DecodeIteration: {0.04, 0.12}, model.MixedIteration: {0.045, 0.13}}[k.Kind]
		if k.Median > most[0] || k.P90 > most[1] {
			t.Errorf("%s: median %.3f, p90 %.3f, want at most %v", k.Kind, k.Median, k.P90, most)
		}
	}
	// The parts that these iterations gave improve every kind.
	bare, err := iterations.Score(context.Background(), files, iterations.Options{Kernels: func(o *model.KernelOptions) {
		o.EqualContexts, o.HostLaunches = true, false
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range bare.Kinds {
		if k.P90 < r.Kinds[i].P90 {
			t.Errorf("%s: the parts make the p90 worse: %.3f without, %.3f with them", k.Kind, k.P90, r.Kinds[i].P90)
		}
	}
}
