package plot

import (
	"math"
	"slices"
	"testing"
)

func sampleOverlay() *Overlay {
	line := func(name string, values ...float64) OverlayLine {
		l := OverlayLine{Name: name}
		for i, v := range values {
			l.Points = append(l.Points, OverlayPoint{Load: []float64{10, 50, 100, 200}[i], Value: v, Low: .95 * v,
				High: 1.05 * v})
		}
		return l
	}
	quoted := line("published", 5000, 25000, 35000, 30000)
	quoted.Quoted = true
	return &Overlay{
		Title:   "Throughput falls by 23 % where documents no longer fit; with four times the KV pool it rises",
		Caption: "llama-3.1-8b on one h100-sxm",
		Load:    "Users at once",
		Panels: []OverlayPanel{
			{Title: "Tokens/s", Lines: []OverlayLine{line("base", 4700, 25000, 38000, 29000),
				line("KV pool × 4", 4700, 25000, 45000, 70000), quoted}},
			{Title: "Prefix hit rate", Fraction: true,
				Lines: []OverlayLine{line("base", .88, .88, .5, 0), line("KV pool × 4", .88, .88, .88, .88)}},
			{Title: "TTFT p99", Milliseconds: true,
				Lines: []OverlayLine{line("base", 60, 90, 700, 17000), line("KV pool × 4", 60, 90, 100, math.NaN())}},
		},
		Notes: []string{"Bars: 95 % confidence intervals over five seeds."},
	}
}

// TestOverlay names every line in every panel, and the axes.
func TestOverlay(t *testing.T) {
	got := texts(t, sampleOverlay().Figure())
	for text, want := range map[string]int{
		"base": 6, "KV pool × 4": 6, "published": 2, // each over its halo
		"Users at once": 1, "Tokens/s": 1, "Prefix hit rate": 1, "TTFT p99, log scale": 1, "0 %": 1, "200": 3,
	} {
		n := 0
		for _, s := range got {
			if s == text {
				n++
			}
		}
		if n != want {
			t.Errorf("%q stands in the picture %d times, want %d: %q", text, n, want, got)
		}
	}
	empty := (&Overlay{Panels: []OverlayPanel{{Title: "x"}}}).Figure()
	if got := texts(t, empty); !slices.Contains(got, "Nothing was measured") {
		t.Errorf("an empty picture says %q", got)
	}
}
