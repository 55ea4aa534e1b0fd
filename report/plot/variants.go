package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"gonum.org/v1/plot/vg"

	"clifftop/report/verdict"
)

// Variants shows all variants of a comparison: a panel for each of up to six metrics, in it a line for each variant
// with its change against the baseline, the 95 % interval and the verdict in words. It is nil where no metric can be
// shown as a change.
func Variants(v *verdict.Result) *Figure {
	const columns, most = 2, 6
	var panels []*panel
	names := variantNames(v)
	title := variantsTitle(v, names)
	for i, x := range v.Variants {
		if !x.Pass {
			names[i] += " FAIL"
		}
	}
	cut := false
	for _, path := range []string{
		"goodput.requests_per_s", "latency_ms.ttft.mean", "latency_ms.ttft.p99", "latency_ms.tpot.mean",
		"latency_ms.e2e.mean", "latency_ms.e2e.p99", "throughput.output_tokens_per_s", "system.error_rate",
	} {
		c := newChanges(v, path)
		if p := c.panel(v.Title(path), names); p != nil && len(panels) < most {
			cut = cut || c.cut
			if len(panels)%columns > 0 {
				p.y.places = make([]string, len(names))
			}
			panels = append(panels, p)
		}
	}
	if panels == nil {
		return nil
	}
	f := &Figure{
		Title: title, Caption: "Change against " + short(v.Baseline, 60),
		key:   []keyEntry{{"better", green}, {"worse", vermilion}, {"not distinguishable, or not judged", grey}},
		width: 720,
		notes: []string{"Bars: 95 % confidence intervals of the change. Better and worse: by more than chance, with " +
			"all variants of a metric taken together (Holm)."},
	}
	if slices.ContainsFunc(v.States, func(s verdict.State) bool { return s.ByMedian }) {
		f.notes = append(f.notes, "The runs do not settle: latencies are compared by the median of the pairs.")
	}
	if cut {
		f.notes = append(f.notes, "Very wide intervals are cut off.")
	}
	if len(v.Seeds) > 1 {
		f.Caption += fmt.Sprintf(", %d runs each, paired", len(v.Seeds))
	}
	if b := v.Bootstrap; b != nil && b.Resamples > 0 {
		f.Caption += fmt.Sprintf(", one run each on one trace, bootstrap over %d blocks", b.Blocks)
	}
	for of := range slices.Chunk(panels, columns) {
		f.rows = append(f.rows, row{1, of})
	}
	if last := &f.rows[len(f.rows)-1]; len(panels) > columns && len(last.panels) < columns {
		last.panels = append(last.panels, &panel{y: axis{places: []string{}, min: 0, max: 1}, x: axis{min: 1, max: 2}})
	}
	f.height = vg.Length(120 + len(f.rows)*(62+26*len(names)))
	return f
}

func variantsTitle(v *verdict.Result, names []string) string {
	var failed []string
	for i, x := range v.Variants {
		if !x.Pass {
			failed = append(failed, names[i])
		}
	}
	switch n := len(v.Variants); {
	case len(failed) == 0 && n == 1:
		return names[0] + " does not fail"
	case len(failed) == 0:
		return fmt.Sprintf("None of %d variants fails", n)
	case len(failed) == n && n > 1:
		return fmt.Sprintf("All %d variants fail", n)
	case len(failed) == 1:
		return failed[0] + " fails"
	case len(failed) <= 3:
		return strings.Join(failed, ", ") + " fail"
	}
	return fmt.Sprintf("%d of %d variants fail", len(failed), len(v.Variants))
}

// variantNames are the names of the variants, in order. Names that are equal when shortened get numbers.
func variantNames(v *verdict.Result) []string {
	names := make([]string, len(v.Variants))
	count := map[string]int{}
	for i, x := range v.Variants {
		names[i] = short(x.Name, 26)
		count[names[i]]++
	}
	labels := slices.Clone(names)
	for i, name := range names {
		if count[name] > 1 {
			labels[i] = fmt.Sprintf("%d: %s", i+1, name)
		}
	}
	return labels
}

// short is a name of at most n characters, whose unprintable ones become question marks. The middle of a longer one is
// left out, as names of variants often begin alike.
func short(name string, n int) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, name)
	if runes := []rune(name); len(runes) > n {
		return string(runes[:n/2-1]) + "…" + string(runes[len(runes)-(n-n/2):])
	}
	return name
}

// change is one variant's number over the baseline's. ratio is NaN where it is not known, which missing says why.
type change struct {
	ratio, low, high float64 // the interval's ends are equal where there is none
	missing          string
	verdict          string
}

// changes are the changes of a metric, by variant.
type changes struct {
	list []change
	cut  bool // some interval is shown in part
	log  bool // some number is less than half or more than twice the baseline's
}

func newChanges(v *verdict.Result, path string) changes {
	var c changes
	for i := range v.Variants {
		x := change{ratio: math.NaN(), missing: "no ratio"}
		if len(v.States) > 0 && (v.States[0].Overloaded() || v.States[i+1].Overloaded()) {
			x.missing = "overloaded"
		}
		for _, d := range v.Variants[i].Metrics {
			base, _ := number(d.Baseline)
			if d.Path != path || !(base > 0) || math.IsNaN(d.Ratio()) {
				continue
			}
			x = change{ratio: d.Ratio(), verdict: d.Verdict}
			if d.CI95 != nil {
				x.low, x.high = 1+d.CI95[0]/base, 1+d.CI95[1]/base
			}
			c.log = c.log || x.ratio > 2 || x.ratio < 0.5 && x.ratio > 0
		}
		c.list = append(c.list, x)
	}
	return c
}

// at is the place of a ratio on the axis, which is of per cent where it is linear.
func (c changes) at(ratio float64) float64 {
	if c.log {
		return ratio
	}
	return 100 * (ratio - 1)
}

// panel draws them; nil where no ratio is known.
func (c *changes) panel(title string, names []string) *panel {
	none := c.at(1)
	p := &panel{
		title: title,
		x:     axis{title: "Change, %"},
		y:     axis{places: make([]string, len(names)), min: -0.6, max: float64(len(names)) - 0.2},
		rules: []rule{{at: none, vertical: true, color: grey}},
	}
	if c.log {
		p.x.log, p.x.title = true, "Times the baseline, log scale"
	}
	low, high := 1.0, 1.0
	for _, x := range c.list {
		if x.ratio > 0 || !c.log && x.ratio == 0 {
			low, high = min(low, x.ratio), max(high, x.ratio)
		}
	}
	// An interval may be wide beyond measure, or reach below nothing: the panel shows only so much of it.
	least, greatest := 0.0, high+1
	if c.log {
		least, greatest = low/2, high*2
	}
	known := false
	for i, x := range c.list {
		y := float64(len(names) - 1 - i)
		p.y.places[len(names)-1-i] = names[i]
		if !finite(x.ratio) || c.log && x.ratio <= 0 {
			p.tags = append(p.tags, tag{x: none, y: y, text: x.missing, order: []direction{east, west}, must: true})
			continue
		}
		known = true
		if x.low < x.high {
			from, to := max(x.low, least), min(x.high, greatest)
			low, high = min(low, from), max(high, to)
			c.cut = c.cut || from > x.low || to < x.high
			p.bars = append(p.bars, bar{from: c.at(from), to: c.at(to), y: y, height: 0.14, color: x.color()})
		}
		p.series = append(p.series, series{color: x.color(), radius: 3.2, scattered: true,
			points: []xy{{x: c.at(x.ratio), y: y}}})
		p.tags = append(p.tags, tag{x: c.at(x.ratio), y: y, text: x.words(), color: x.color(),
			order: []direction{north, northEast, northWest}, must: true})
	}
	if !known {
		return nil
	}
	p.x.min, p.x.max = c.at(low), c.at(high)
	if c.log {
		p.x.min, p.x.max = p.x.min/1.1, p.x.max*1.1
	} else {
		air := max(0.06*(p.x.max-p.x.min), 0.01)
		p.x.min, p.x.max = p.x.min-air, p.x.max+air
	}
	return p
}

func (x change) color() colour {
	switch x.verdict {
	case verdict.Pass:
		return green
	case verdict.Fail:
		return vermilion
	}
	return grey
}

// words are the verdict and the size of the change.
func (x change) words() string {
	size := fmt.Sprintf("%s times", sig(x.ratio, 2))
	switch {
	case x.ratio == 1:
		size = "equal"
	case x.ratio <= 2 && x.ratio >= 0.5:
		size = strings.Replace(fmt.Sprintf("%+.2g %%", 100*(x.ratio-1)), "-", "−", 1)
	}
	switch x.verdict {
	case verdict.Pass:
		return "better: " + size
	case verdict.Fail:
		return "worse: " + size
	case verdict.Unknown:
		return "not judged: " + size
	}
	return x.verdict + ": " + size
}
