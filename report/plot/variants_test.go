package plot

import (
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"strings"
	"testing"

	"clifftop/report/verdict"
)

// variants is a comparison of TTFT and E2E, where the last variant fails with a TTFT 41 times as long.
func variants(names ...string) *verdict.Result {
	v := &verdict.Result{Baseline: "vllm", Seeds: []uint64{1, 2, 3}}
	for i, name := range names {
		x := verdict.Variant{Name: name, Pass: true, Metrics: []verdict.Difference{
			{Path: "latency_ms.ttft.mean", Baseline: of(100.0), Variant: of(101.0), Difference: of(1.0),
				CI95: &[2]float64{-2, 4}, Verdict: verdict.NotDistinguishable},
			{Path: "latency_ms.e2e.mean", Baseline: of(4000.0), Variant: of(3600.0), Difference: of(-400.0),
				CI95: &[2]float64{-450, -350}, Verdict: verdict.Pass},
			{Path: "system.error_rate", Baseline: of(0.0), Variant: of(0.0), Verdict: verdict.Unknown},
		}}
		if i == len(names)-1 {
			x.Pass = false
			x.Metrics[0].Variant, x.Metrics[0].Difference = of(4127.0), of(4027.0)
			x.Metrics[0].CI95, x.Metrics[0].Verdict = &[2]float64{3000, 5054}, verdict.Fail
			x.Metrics[1].Variant, x.Metrics[1].Difference = nil, nil
		}
		v.Variants = append(v.Variants, x)
	}
	return v
}

// The picture of a comparison has the verdicts in words, and stays a picture whatever the names are.
func TestVariants(t *testing.T) {
	eight := make([]string, 8)
	for i := range eight {
		eight[i] = fmt.Sprintf("engine.max_num_batched_tokens=%d with a long name %s", i, strings.Repeat("x", 300))
	}
	for name, c := range map[string]struct {
		names []string
		texts []string
	}{
		"two": {[]string{"sglang", "sarathi"}, []string{"sarathi fails</title>", ">worse: 41 times<", ">better: −10 %<",
			">not distinguishable: +1 %<", ">no ratio<", ">sarathi FAIL<"}},
		"eight":   {eight, []string{">worse: 41 times<", "1: engine.max", "8: engine.max_n…xxxxxxxxxxxxx fails</title>"}},
		"hostile": {[]string{"<script>&\x1b[31m\x00", "\u202e]]>\n\"'"}, []string{"&lt;script&gt;&amp;?[31m?"}},
	} {
		files := memory{}
		f := Variants(variants(c.names...))
		if err := f.WriteFiles("compare", files.keep); err != nil {
			t.Fatal(err)
		}
		if _, err := png.Decode(files["compare.png"]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		svg := files["compare.svg"].String()
		for d := xml.NewDecoder(strings.NewReader(svg)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for _, text := range c.texts {
			if !strings.Contains(svg, text) {
				t.Errorf("%s: no %q", name, text)
			}
		}
		if strings.ContainsAny(svg, "\x1b\x00\u202e") {
			t.Errorf("%s: control characters", name)
		}
	}
	if Variants(&verdict.Result{Variants: []verdict.Variant{{}}}) != nil {
		t.Error("a picture of nothing")
	}
}
