package verdict

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"clifftop/report/layout"
	"clifftop/report/stats"
)

// WriteTable writes the verdict for people: a row for each variant, and then what differs.
func (v *Result) WriteTable(w io.Writer) error { return v.write(w, &layout.Text{}) }

// WriteMarkdown writes the same as Markdown.
func (v *Result) WriteMarkdown(w io.Writer) error { return v.write(w, &layout.Text{Markdown: true}) }

// WriteCSV writes a row for each variant and metric.
func (v *Result) WriteCSV(w io.Writer) error {
	c := layout.NewCSVWriter(w)
	text := func(x *float64) string {
		if x == nil {
			return ""
		}
		return strconv.FormatFloat(*x, 'g', -1, 64)
	}
	rows := [][]string{{"variant", "metric", "baseline", "value", "difference", "ci95_low", "ci95_high", "verdict", "p",
		"variance_reduction", "statistic"}}
	for _, variant := range v.Variants {
		for _, m := range variant.Metrics {
			low, high := "", ""
			if m.CI95 != nil {
				low, high = text(&m.CI95[0]), text(&m.CI95[1])
			}
			rows = append(rows, []string{variant.Name, m.Path, text(m.Baseline), text(m.Variant), text(m.Difference),
				low, high, m.Verdict, text(m.P), text(m.VarianceReduction),
				m.Statistic})
		}
	}
	return c.WriteAll(rows)
}

func (v *Result) write(w io.Writer, t *layout.Text) error {
	v.overview(t)
	v.states(t)
	if text := v.Traffic.String(); text != "" {
		t.Space()
		t.Line("traffic", text)
	}
	for _, variant := range v.Variants {
		v.details(t, &variant)
		variant.verdicts(t)
	}
	v.groups(t)
	if len(v.Seeds) > 1 {
		t.Space()
		t.Line("VR", "how many times more a difference would vary if the runs of a pair did not share their random "+
			"numbers")
	}
	for _, warning := range v.Warnings {
		t.Line("warning", warning.Text)
	}
	_, err := t.WriteTo(w)
	return err
}

// overviewColumns are the metrics of the first table.
var overviewColumns = [...]struct{ path, title string }{
	{"throughput.requests_per_s", "req/s"}, {"throughput.output_tokens_per_s", "tok/s"},
	{"latency_ms.ttft.p50", "TTFTp50"}, {"latency_ms.ttft.p99", "p99"}, {"latency_ms.tpot.p50", "TPOTp50"},
	{"latency_ms.itl.p99", "ITLp99"}, {"system.preemptions", "preempt"}, {"fairness", "Jain"},
}

// overview has a row for the baseline and one for each variant.
func (v *Result) overview(t *layout.Text) {
	head, base := []string{"ms"}, []string{v.Baseline}
	for _, c := range overviewColumns {
		head = append(head, c.title)
		for k, m := range v.metrics {
			if m.Path == c.path {
				base = append(base, layout.Cell(stats.Finite(v.baseline[k])))
			}
		}
	}
	rows := [][]string{head, base}
	for _, variant := range v.Variants {
		row := []string{variant.Name}
		for _, c := range overviewColumns {
			for _, m := range variant.Metrics {
				if m.Path == c.path {
					row = append(row, layout.Cell(m.Variant))
				}
			}
		}
		rows = append(rows, row)
	}
	t.Grid(rows, 8)
	for _, s := range v.Pooled {
		if text := s.FewSamplesNote(); text != "" {
			t.Space()
			t.Line("–", text)
			break
		}
	}
}

// details has a row for each metric of a variant that has a value and is not the same in every run. Differences and
// their intervals are in percent of the baseline, or in the metric's unit where that is 0.
func (v *Result) details(t *layout.Text, variant *Variant) {
	runs := "one run each"
	if n := len(v.Seeds); n > 1 {
		runs = fmt.Sprintf("%d runs each, paired", n)
	} else if v.Bootstrap != nil && v.Bootstrap.Resamples > 0 {
		runs = "one run each, bootstrap"
	}
	t.Printf("\n%s\n", t.Shown(fmt.Sprintf("%s against %s, %s", variant.Name, v.Baseline, runs)))
	if t.Markdown {
		t.Blank()
	}
	rows := [][]string{{"", "baseline", "value", "difference", "95 % interval", "verdict", "VR"}}
	for k, m := range variant.Metrics {
		if m.Difference == nil || *m.Difference == 0 && (m.CI95 == nil || *m.CI95 == [2]float64{}) {
			continue
		}
		relative := *m.Baseline != 0
		in := func(x float64) string {
			if relative {
				return percent(100 * x / *m.Baseline)
			}
			return signed(x)
		}
		change, interval, verdict := in(*m.Difference), "–", strings.ToUpper(m.Verdict)
		if m.CI95 != nil {
			interval = fmt.Sprintf("%s to %s", in(m.CI95[0]), in(m.CI95[1]))
		}
		if relative {
			change += " %"
			interval = strings.Replace(interval+" %", "– %", "–", 1)
		}
		switch m.Verdict {
		case NotDistinguishable:
			verdict = "NOT DIST."
		case NotRelevant:
			verdict = "NOT RELEV."
		case Unknown:
			verdict = "–"
		}
		rows = append(rows, []string{v.metrics[k].Heading(), layout.Cell(m.Baseline), layout.Cell(m.Variant), change,
			interval, verdict, layout.Cell(m.VarianceReduction)})
	}
	if len(rows) == 1 {
		t.Line("", "no difference")
		return
	}
	t.Table(rows, 1, 2)
}

// harmsShown is the number of harms that the text lists.
const harmsShown = 5

// verdicts are that on the variant, and those on the criteria.
func (v *Variant) verdicts(t *layout.Text) {
	t.Space()
	t.Line("verdict", strings.ToUpper(v.Verdict)+": "+v.Because())
	for _, c := range v.Criteria {
		t.Line(strings.ToUpper(strings.Replace(c.Verdict, "distinguishable", "dist.", 1)), c.Text+": "+c.Reason)
	}
	for _, h := range v.Harms[:min(len(v.Harms), harmsShown)] {
		t.Line("WORSE", h.Text)
	}
	if n := len(v.Harms) - harmsShown; n > 0 {
		t.Line("", fmt.Sprintf("and %d more", n))
	}
}

// Because says in a few words why the verdict on the variant is as it is.
func (v *Variant) Because() string {
	if v.overload != "" {
		return v.overload
	}
	for _, c := range v.Criteria {
		if c.Verdict == Fail || c.endless && v.Verdict == Unknown {
			return c.Text + ": " + c.Reason
		}
	}
	switch {
	case len(v.Harms) > 0:
		return "users are worse off: " + v.Harms[0].Text
	case v.Verdict == Pass:
		return "all criteria hold, and nothing that users feel is surely worse"
	case v.Verdict == NotDistinguishable:
		return "the runs do not decide all criteria, and nothing that users feel is surely worse"
	}
	return "there are no intervals to decide by"
}

// groups writes which variants do not differ significantly, by the metrics of the overview.
func (v *Result) groups(t *layout.Text) {
	if len(v.Groups) == 0 {
		return
	}
	t.Space()
	for _, g := range v.Groups {
		title := ""
		for _, c := range overviewColumns {
			for _, m := range v.metrics {
				if m.Path == g.Path && c.path == g.Path {
					title = m.Heading()
				}
			}
		}
		if title == "" || len(g.Groups) == len(v.Variants)+1 || v.constant(g.Path) {
			continue
		}
		var groups []string
		for _, names := range g.Groups {
			groups = append(groups, "{"+strings.Join(names, ", ")+"}")
		}
		t.Line("alike", title+", best first: "+strings.Join(groups, " "))
	}
}

// constant reports whether a metric is the same in all runs.
func (v *Result) constant(path string) bool {
	for i := range v.Variants {
		if d := v.Variants[i].metric(path); d.CI95 == nil || *d.CI95 != [2]float64{} {
			return false
		}
	}
	return true
}

// percent is a signed number of percent, to a thousandth: less is of no interest.
func percent(x float64) string {
	if tiny := math.Abs(x) < .0005; tiny && x > 0 {
		return "+0.000"
	} else if tiny && x < 0 {
		return "−0.000"
	}
	return signed(x)
}

func signed(x float64) string {
	if x > 0 {
		return "+" + layout.Digits(x)
	}
	return strings.Replace(layout.Digits(x), "-", "−", 1)
}
