package catalog

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestPredictiveFile wants bars of all kinds in order: the half inside the 90 %.
func TestPredictiveFile(t *testing.T) {
	f := loadPredictive()
	if len(f.Kinds) == 0 || !strings.Contains(f.Source, "measured runs") {
		t.Fatalf("%d kinds from %q", len(f.Kinds), f.Source)
	}
	for _, k := range f.Kinds {
		for metric, b := range k.Bars {
			if !slices.Contains(PredictiveMetrics, metric) || b.Half[0] > b.Half[1] || b.P90[0] > b.Half[0] ||
				b.P90[1] < b.Half[1] || b.P90[0] <= -1 {
				t.Errorf("%s, %s: %+v", k.Name(), metric, b)
			}
		}
	}
}

// TestPredictiveFallsBack wants the kind, else its engine, else all runs.
func TestPredictiveFallsBack(t *testing.T) {
	for _, c := range []struct {
		engine, load string
		moe          bool
		want         string
	}{
		{"vllm", "open", false, "vllm, open loop, dense"},
		{"sglang", "open", false, "sglang, all loads"},
		{"orca", "open", false, "all engines"},
	} {
		if p, ok := PredictiveOf(c.engine, c.load, c.moe); !ok || p.Name() != c.want {
			t.Errorf("%s, %s: %+v, want %s", c.engine, c.load, p, c.want)
		}
	}
}

// TestWidenedBars wants no bar to get narrower, also those on one side of 0.
func TestWidenedBars(t *testing.T) {
	for _, b := range []ErrorBars{
		{Half: [2]float64{-0.1, 0.2}, P90: [2]float64{-0.5, 1}},
		{Half: [2]float64{0.6, 3}, P90: [2]float64{-0.002, 30}},
		{Half: [2]float64{-0.2, -0.01}, P90: [2]float64{-0.6, 0.1}},
	} {
		w := b.Widened(1.5)
		for _, bar := range [][2][2]float64{{b.Half, w.Half}, {b.P90, w.P90}} {
			if bar[1][0] > bar[0][0] || bar[1][1] <= bar[0][1] || bar[1][0] <= -1 {
				t.Errorf("%v becomes %v", bar[0], bar[1])
			}
		}
		if b.Widened(1) != b {
			t.Errorf("a factor of 1 changes %v into %v", b, b.Widened(1))
		}
	}
}

// TestOwnRunsMoveTheBars wants few own runs to move the bars towards their errors, and many to replace the bars.
func TestOwnRunsMoveTheBars(t *testing.T) {
	b := ErrorBars{Half: [2]float64{-0.05, 0.05}, P90: [2]float64{-0.2, 0.2}}
	if got := b.Updated(nil); got != b {
		t.Errorf("no runs change %v into %v", b, got)
	}
	runs := func(n int) (list []float64) {
		for i := range n {
			list = append(list, 0.3+0.001*float64(i%10))
		}
		return list
	}
	few := b.Updated(runs(5))
	if few.P90[1] < 0.29 || few.P90[0] > -0.1 || few.Half[1] <= b.Half[1] {
		t.Errorf("5 runs 30 %% above give %v", few)
	}
	if many := b.Updated(runs(40)); many.P90[0] < 0.29 || many.P90[1] > 0.32 || many.Half[0] < 0.29 {
		t.Errorf("40 runs 30 %% above give %v", many)
	}
}

// TestOwnAccuracyIsOfThisVersion wants a record of another version, and other files, refused in one line.
func TestOwnAccuracyIsOfThisVersion(t *testing.T) {
	o := &OwnAccuracy{Clifftop: "1.2.3", Source: "runs.csv", Kinds: []OwnErrors{{Engine: "vllm", Load: "open", Runs: 2,
		Errors: map[string][]float64{"ttft_mean": {0.1, -0.2}}}}}
	var text bytes.Buffer
	if err := o.Write(&text); err != nil {
		t.Fatal(err)
	}
	got, err := ReadOwnAccuracy("own.yaml", text.Bytes(), "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if k, ok := got.Of("vllm", "open", false); !ok || k.Runs != 2 || !slices.Equal(k.Errors["ttft_mean"], []float64{0.1, -0.2}) {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct{ text, version, want string }{
		{text.String(), "1.3.0", "own.yaml is of Clifftop 1.2.3, but this is 1.3.0 (write it with clifftop validate " +
			"--reference RUNS --write own.yaml)"},
		{"records: []", "1.2.3", "own.yaml is not a record of own runs (write it with clifftop validate --reference RUNS " +
			"--write own.yaml)"},
		{strings.Replace(text.String(), "-0.2", "-1.5", 1), "1.2.3", "own.yaml: ttft_mean has the error -1.5 (want " +
			"measured over simulated, less 1, above -1)"},
	} {
		if _, err := ReadOwnAccuracy("own.yaml", []byte(c.text), c.version); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
