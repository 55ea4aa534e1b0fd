package plot

import (
	"slices"
	"testing"
)

func TestParityShows(t *testing.T) {
	f := Parity("Median error 3 %", []ParityPanel{
		{Title: "TTFT", Unit: "ms", Points: []ParityPoint{{20, 21, "llama", false, ""},
			{1500, 900, "gpt-oss", true, ""}, {0, 5, "llama", false, ""}}},
		{Title: "Throughput", Unit: "tokens/s", Points: []ParityPoint{{300, 310, "llama", false, ""}}},
		{Title: "E2E", Unit: "ms"},
	}, "A note.")
	got := texts(t, f)
	for _, want := range []string{"Median error 3 %", "llama", "gpt-oss", "measured", "measured, tokens/s", "simulated",
		"100 ms", "1 s", "Nothing was measured", "A note."} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}
