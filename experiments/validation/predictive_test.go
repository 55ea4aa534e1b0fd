package validation

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"clifftop/internal/testenv"
)

// TestFittedCellsFillUp wants cells with fitted constants in bars only where there are too few others.
func TestFittedCellsFillUp(t *testing.T) {
	cell := func(fitted bool, x float64) *errorCell {
		return &errorCell{kind: "kind", family: "family", fitted: fitted, logs: []float64{x}}
	}
	var cells []*errorCell
	for i := range ownCells - 1 {
		cells = append(cells, cell(false, 0.1+float64(i)/100))
	}
	cells = append(cells, cell(true, -0.5))
	if _, p90, basis := barsFor("kind", "family", cells); basis != "kind" || p90[0] > -0.39 {
		t.Errorf("%d other cells: %v of %s, want the fitted cell's error in it", ownCells-1, p90, basis)
	}
	cells = append(cells, cell(false, 0.2))
	if _, p90, basis := barsFor("kind", "family", cells); basis != "kind" || p90[0] < 0.1 {
		t.Errorf("%d other cells: %v of %s, want bars without the fitted cell", ownCells, p90, basis)
	}
}

// TestPredictiveIsCurrent holds the error bars of the catalog against those of today's model, and their coverage of
// cells that took no part in them.
func TestPredictiveIsCurrent(t *testing.T) {
	testenv.NeedsLong(t, "a thousand measured runs are simulated")
	var refs []*Reference
	for _, name := range []string{"measured.csv", "measured-2.csv", "inferencex-dsr1.csv"} {
		ref, err := open(testenv.Reference(t, name))
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	c, err := Cover(context.Background(), refs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := c.WritePredictive(&text); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../model/catalog/predictive.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text.Bytes(), want) {
		t.Errorf("model/catalog/predictive.yaml is out of date: run clifftop validate --coverage --reference measured.csv " +
			"measured-2.csv inferencex-dsr1.csv --write model/catalog/predictive.yaml, and go generate ./model/catalog")
	}
	judge := func(kind string, m *MetricCoverage) {
		t.Logf("%s, %s: %.0f and %.0f %% of %d cells", kind, m.Metric, 100*m.HalfShare, 100*m.P90Share, m.Cells)
		one := 1 / float64(m.Cells) // a share is known to one cell
		if m.Cells >= ownCells && (m.HalfShare < 0.4 || m.HalfShare > 0.6 || m.P90Share < 0.85 || m.P90Share > 0.97+one) {
			t.Errorf("%s, %s: bars hold %.1f and %.1f %% of %d cells, want 40 to 60 and 85 to 97 %%", kind, m.Metric,
				100*m.HalfShare, 100*m.P90Share, m.Cells)
		}
	}
	if len(c.Metrics) != len(coverageMetrics) {
		t.Errorf("%d metrics are judged, want %d", len(c.Metrics), len(coverageMetrics))
	}
	for i := range c.Metrics {
		judge("all", &c.Metrics[i])
	}
	for _, k := range c.Kinds {
		for i := range k.Metrics {
			judge(k.Kind, &k.Metrics[i])
		}
	}
}

// TestOwnRuns wants the errors of scored runs by kind, without overloaded runs, and measured over simulated.
func TestOwnRuns(t *testing.T) {
	e := func(v float64) []Comparison { return []Comparison{{Metric: "ttft_mean_ms", Error: &v}} }
	r := &Report{Reference: "folder/runs.csv", Rows: []Result{
		{Status: Scored, Engine: "vllm", Load: "open", Metrics: e(0.25)},
		{Status: Scored, Engine: "vllm", Load: "closed", MoE: true, Metrics: e(-0.2)},
		{Status: Scored, Engine: "vllm", Load: "open", Overload: true, Metrics: e(3)},
		{Status: Refused, Engine: "vllm", Load: "open"},
	}}
	o, err := r.Own()
	if err != nil {
		t.Fatal(err)
	}
	open, _ := o.Of("vllm", "open", false)
	closed, _ := o.Of("vllm", "closed", true)
	if o.Source != "runs.csv" || open.Runs != 1 || open.Errors["ttft_mean"][0] != -0.2 || closed.Runs != 1 ||
		closed.Errors["ttft_mean"][0] != 0.25 {
		t.Errorf("%+v", o)
	}
	if _, err := (&Report{Reference: "x.csv"}).Own(); err == nil || !strings.Contains(err.Error(), "no run of x.csv") {
		t.Errorf("no runs: %v", err)
	}
}
