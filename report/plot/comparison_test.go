package plot

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func sampleComparison() *Comparison {
	nan := math.NaN()
	return &Comparison{
		Title:   "Prefill-first policies have the shortest waits and the longest stalls",
		Caption: "llama-3.1-8b on one h100-sxm, chat",
		Loads:   []string{"50 %", "80 %", "100 %", "120 % of saturation"},
		Systems: []string{"vllm", "vllm-v0", "static"},
		Metrics: []ComparisonMetric{
			{Title: "Output tokens/s", Values: [][]float64{{1000, 1600, 2000, 2010}, {1000, 1590, 1900, 1910},
				{600, 640, 640, 640}}},
			{Title: "TTFT p99", Milliseconds: true,
				Values: [][]float64{{80, 120, 900, 9000}, {60, 90, 800, 8800}, {9000, 20000, 30000, nan}}},
			{Title: "ITL p99", Milliseconds: true,
				Values: [][]float64{{20, 30, 40, 41}, {80, 300, 400, 410}, {10, 10, 10, 10}}},
		},
	}
}

// TestComparison draws every system by name, and a dot for every number.
func TestComparison(t *testing.T) {
	var b bytes.Buffer
	if err := sampleComparison().Figure().WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{">vllm<", ">vllm-v0<", ">static<", ">TTFT p99<", ">Output tokens/s<"} {
		if n := strings.Count(b.String(), text); n != 1 {
			t.Errorf("%q stands in the picture %d times", text, n)
		}
	}
}
