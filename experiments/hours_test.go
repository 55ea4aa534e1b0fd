package experiments_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"math"
	"slices"
	"strconv"
	"testing"

	"clifftop/experiments"
	"clifftop/report"
)

// TestHoursOfARun holds the hours of a run against the rows of its requests: the percentiles of those that arrived in
// each hour, within the error of a sketch.
func TestHoursOfARun(t *testing.T) {
	var rows bytes.Buffer
	s := mustParse(t, "workload: {arrivals: {process: cox, rate: 2, sigma: 0.5, rho: 0.9, step: 60s}}\n"+
		"engine: {max_num_seqs: 16}\nrun: {duration: 2h, warmup: none}\n")
	r, err := experiments.Run(context.Background(), s, experiments.RunOptions{Requests: &rows})
	if err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(&rows).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := func(name string) int { return slices.Index(records[0], name) }
	arrival, ttft, tpot := column("arrival_s"), column("ttft_ms"), column("tpot_ms")
	h := r.Summary.Hours
	if h == nil || h.Of != 2 || math.Abs(h.LengthS-3600) > 60 {
		t.Fatalf("%+v", h)
	}
	for path, of := range map[string]struct {
		column int
		share  float64
	}{
		"latency_ms.ttft.p50": {ttft, .5}, "latency_ms.ttft.p95": {ttft, .95}, "latency_ms.ttft.p99": {ttft, .99},
		"latency_ms.tpot.p50": {tpot, .5}, "latency_ms.tpot.p95": {tpot, .95}, "latency_ms.tpot.p99": {tpot, .99},
	} {
		var values [2][]float64
		for _, row := range records[1:] {
			at, _ := strconv.ParseFloat(row[arrival], 64)
			if x, err := strconv.ParseFloat(row[of.column], 64); err == nil && at < 2*h.LengthS {
				k := int(at / h.LengthS)
				values[k] = append(values[k], x)
			}
		}
		var want []float64
		for _, list := range values {
			slices.Sort(list)
			want = append(want, list[int(of.share*float64(len(list)))])
		}
		got := h.At(path)
		if got == nil || got.Least == nil || math.Abs(*got.Least/slices.Min(want)-1) > .03 ||
			math.Abs(*got.Most/slices.Max(want)-1) > .03 {
			t.Errorf("%s: %g to %g, want %v", path, *got.Least, *got.Most, want)
		}
	}
	if h.At("latency_ms.ttft.p90") != nil || (*report.Hours)(nil).At("latency_ms.ttft.p95") != nil {
		t.Error("hours are compared by what was not measured")
	}
}
