package model_test

import (
	"testing"

	"clifftop/model"
)

// TestDrafts compares the cost of a verified token with few and with many sequences. With few, an iteration is bound by
// reading the weights, and drafts cost almost nothing. With many it is bound by compute.
func TestDrafts(t *testing.T) {
	d := deploy(t, "llama-3.1-8b", "h100-sxm", model.Options{})
	k, err := model.NewKernels(d, model.KernelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const drafts, context = 3, 500
	length := func(timer model.StepTimer, sequences, drafts int) float64 {
		first, slope, n := timer.Span(&model.Batch{
			Decodes: sequences, Drafts: sequences * drafts, Context: int64(sequences * (context + drafts)),
			Emit: sequences * (1 + drafts),
		})
		if drafts > 0 && (slope != 0 || n != 1) {
			t.Errorf("%d iterations with drafts are promised", n)
		}
		return float64(first) / 1e12
	}
	few := length(k, 1, drafts) / length(k, 1, 0)
	many := length(k, 256, drafts) / length(k, 256, 0)
	t.Logf("an iteration with %d drafts is %.3f times as long with 1 sequence, %.3f times with 256", drafts, few, many)
	if few > 1.05 || many < 1.3 || many > 1+drafts {
		t.Errorf("an iteration with %d drafts is %.3f times as long with 1 sequence, %.3f times with 256", drafts, few,
			many)
	}

	one, err := model.NewKernels(d.OneLayer(), model.KernelOptions{Overheads: &model.Overheads{}})
	if err != nil {
		t.Fatal(err)
	}
	drafting, err := model.NewDrafting(k, one, drafts)
	if err != nil {
		t.Fatal(err)
	}
	// A layer of 32 and the output layer, thrice.
	plain := length(k, 1, drafts)
	extra := length(drafting, 1, drafts) - plain
	t.Logf("%.3f ms for an iteration that verifies, %.3f ms for %d passes of one layer", plain, extra, drafts)
	if extra < 3*length(k, 1, 0)/32 || extra > plain/2 {
		t.Errorf("%.3f ms for an iteration that verifies, %.3f ms for %d passes of one layer", plain, extra, drafts)
	}
	if _, err := model.NewDrafting(k, one, 0); err == nil {
		t.Error("no drafts at all are accepted")
	}
}
