package inspect

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/report/stats"
	"clifftop/workload/trace"
)

// Account adds what the reader of the trace knows: its format, what became of the rows, and its remarks.
func (x *Result) Account(f *trace.File) {
	x.File, x.Format, x.Rows = f.Name(), f.Format(), f.Counts()
	for _, m := range []*map[trace.Code]int64{&x.Rows.Dropped, &x.Rows.Fixed, &x.Rows.Noted} {
		if *m == nil {
			*m = map[trace.Code]int64{}
		}
	}
	if f.Timeless() {
		x.warning("timeless", "The trace has lengths but no times: a replay needs a rate, and gets Poisson arrivals.")
	}
	if n := x.Rows.Dropped[trace.ZeroOut]; n > 0 {
		x.warning("failures", "%d rows (%s) have no answer and are left out: requests that failed, or faults of the "+
			"recording.", n, layout.Percent(float64(n)/float64(x.Rows.Rows)))
	}
	if n := x.Rows.Noted[trace.Total]; n > 0 {
		x.warning("total", "The total of %d rows is not the sum of its parts; the parts are trusted.", n)
	}
	for _, text := range f.Warnings() {
		x.warning("trace", "%s.", text)
	}
}

func (x *Result) warning(code, form string, args ...any) {
	x.Warnings = append(x.Warnings, report.Warning{Code: code, Text: fmt.Sprintf(form, args...)})
}

func (x *Result) warn() {
	const few = 1000
	if x.Requests < few {
		x.warning("few_rows", "%d requests are too few to tell much from (want %d or more).", x.Requests, few)
	}
	if t := x.Arrivals.TogetherS; t != nil {
		x.warning("coarse_clock", "The recording clock ticks every %s: shorter windows show the clock, not the "+
			"traffic. A replay spreads the rows over their ticks.", layout.Seconds(*t))
	}
	const cap = 0.01
	for _, l := range []struct {
		what string
		TokenLengths
	}{{"prompts", x.InputTokens}, {"outputs", x.OutputTokens}} {
		if l.AtMaxShare != nil && l.N >= few && *l.AtMaxShare >= cap && *l.Max > *l.P50 {
			x.warning("cap", "%s of the %s are as long as the longest, %s tokens: they were cut there.",
				layout.Percent(*l.AtMaxShare), l.what, layout.Digits(*l.Max))
		}
	}
	d := x.Arrivals.Dispersion
	if short, long := d[0].Index, d[len(d)-1].Index; short != nil && long != nil && *long > 2 && *long > 2**short &&
		x.Arrivals.TogetherS == nil {
		x.warning("wandering_rate", "Counts vary %s times as much as Poisson's over %s, %s times over %s: the rate "+
			"wanders. Independent gaps of the same law would understate queues.",
			layout.Digits(*long), layout.Seconds(d[len(d)-1].WindowS), layout.Digits(*short),
			layout.Seconds(d[0].WindowS))
	}
}

// WriteTable writes the inspection for people, in lines of at most 80 characters.
func (x *Result) WriteTable(w io.Writer) error { return x.write(w, &layout.Text{}) }

// WriteMarkdown writes the inspection as Markdown.
func (x *Result) WriteMarkdown(w io.Writer) error {
	return x.write(w, &layout.Text{Markdown: true})
}

func (x *Result) write(w io.Writer, t *layout.Text) error {
	text := x.File + ", format " + x.Format
	const digest = 16 // the rest is in JSON
	if len(x.SHA256) > digest {
		text += ", sha256 " + x.SHA256[:digest] + "…"
	}
	t.Line("trace", text)
	t.Line("rows", x.rowsText())
	if len(x.Applied) > 0 {
		t.Line("changed", strings.Join(x.Applied, "; "))
	}
	text = fmt.Sprintf("%d requests in %s", x.Requests, span(x.SpanS))
	if x.RequestsPerS != nil {
		text += fmt.Sprintf(", %s rows/s; %s prompt tokens/s, %s answer tokens/s", layout.Digits(*x.RequestsPerS),
			layout.Cell(stats.Ratio(float64(x.InputTokens.Total), x.SpanS)),
			layout.Cell(stats.Ratio(float64(x.OutputTokens.Total), x.SpanS)))
	}
	t.Line("traffic", text)
	t.Blank()
	rows := [][]string{{"tokens", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"}}
	for _, l := range []struct {
		name string
		d    *report.Distribution
	}{{"input", &x.InputTokens.Distribution}, {"output", &x.OutputTokens.Distribution}} {
		d := l.d
		rows = append(rows, []string{l.name, layout.Cell(d.Mean), layout.Cell(d.P50), layout.Cell(d.P90),
			layout.Cell(d.P95), layout.Cell(d.Tail(d.P99, report.MinSamplesP99)),
			layout.Cell(d.Tail(d.P999, report.MinSamplesP999)), layout.Cell(d.Max)})
	}
	t.Grid(rows, 9)
	if !t.Markdown {
		t.Blank()
	}
	x.writeRest(t)
	_, err := t.WriteTo(w)
	return err
}

func (x *Result) writeRest(t *layout.Text) {
	if x.Spearman != nil {
		t.Line("correlation", fmt.Sprintf("of the ranks of prompt and answer: %+.2f", *x.Spearman))
	}
	if a := x.Arrivals; a.GapCV != nil {
		t.Line("arrivals", x.arrivalsText())
	}
	if s := x.Sessions; s != nil {
		text := fmt.Sprintf("%d, %s requests each (at most %d)", s.Sessions, layout.Cell(s.MeanTurns), s.MaxTurns)
		if s.Gaps.N > 0 {
			text += fmt.Sprintf("; from arrival to arrival %s s (p50), %s s (p90)", layout.Cell(s.Gaps.P50),
				layout.Cell(s.Gaps.P90))
		}
		if s.Waiting > 0 {
			text += fmt.Sprintf("; %d requests wait for an answer", s.Waiting)
		}
		t.Line("sessions", text)
	}
	if p := x.Prefix; p != nil {
		t.Line("prefixes", fmt.Sprintf("%s of the blocks and %s of the tokens of prompts were there before (%s of the "+
			"blocks in the last quarter of the time): %d blocks of %d tokens, %d different",
			perCent(p.HitBlocks), perCent(p.HitTokens), perCent(p.WarmHitBlocks), p.Accesses, p.BlockTokens, p.Unique))
		var points []string
		for _, l := range p.LRU {
			points = append(points, fmt.Sprintf("%s with %s", perCent(l.Hit), scaled(l.Tokens)))
		}
		t.Line("LRU cache", "finds "+strings.Join(points, ", ")+" tokens")
		if d := p.StackDistance; d.N > 0 {
			t.Line("reuse", fmt.Sprintf("after %s s (p50), %s s (p90), with %s blocks (p50), %s (p95) used in between",
				layout.Cell(p.Reuse.P50), layout.Cell(p.Reuse.P90), layout.Cell(d.P50), layout.Cell(d.P95)))
		}
	}
	x.writeClasses(t)
	for _, w := range x.Warnings {
		t.Line("warning", w.Text)
	}
}

// mostClasses is how many classes a table has.
const mostClasses = 12

func (x *Result) writeClasses(t *layout.Text) {
	if len(x.Classes) == 0 {
		return
	}
	list := slices.Clone(x.Classes)
	slices.SortStableFunc(list, func(a, b ClassShare) int { return cmp.Compare(b.Requests, a.Requests) })
	rows := [][]string{{"class", "requests", "share", "input", "output"}}
	for i, c := range list {
		if i == mostClasses {
			rows = append(rows, []string{fmt.Sprintf("and %d more", len(list)-i), "", "", "", ""})
			break
		}
		name := c.Name
		if name == "" {
			name = "(none)"
		}
		rows = append(rows, []string{name, fmt.Sprint(c.Requests),
			perCent(stats.Ratio(float64(c.Requests), float64(x.Requests))), layout.Cell(c.MeanInputTokens),
			layout.Cell(c.MeanOutputTokens)})
	}
	t.Blank()
	t.Grid(rows, 9)
}

func (x *Result) rowsText() string {
	c := x.Rows
	text := fmt.Sprintf("%d read, %d used", c.Rows, c.Accepted)
	if c.Outside > 0 {
		text += fmt.Sprintf(", %d outside the slice", c.Outside)
	}
	for _, m := range []struct {
		what  string
		codes map[trace.Code]int64
	}{{"left out", c.Dropped}, {"mended", c.Fixed}, {"odd", c.Noted}} {
		var codes []string
		for code := range m.codes {
			codes = append(codes, string(code))
		}
		slices.Sort(codes)
		for _, code := range codes {
			text += fmt.Sprintf(", %d %s (%s)", m.codes[trace.Code(code)], m.what, code)
		}
	}
	return text
}

func (x *Result) arrivalsText() string {
	a := x.Arrivals
	text := fmt.Sprintf("gaps vary by %s (CV; Poisson 1), the longest is %s", layout.Cell(a.GapCV),
		layout.Seconds(*a.MaxGapS))
	var windows []string
	for _, d := range a.Dispersion {
		if d.Index != nil {
			windows = append(windows, fmt.Sprintf("%s in %s", layout.Digits(*d.Index), layout.Seconds(d.WindowS)))
		}
	}
	if len(windows) > 0 {
		text += "; variance of counts over their mean (Poisson 1): " + strings.Join(windows, ", ")
	}
	if a.Correlation != nil {
		text += fmt.Sprintf("; correlation of counts in neighbouring 10 s: %.2f", *a.Correlation)
	}
	return text
}

// span prints a length of time in its natural units.
func span(s float64) string {
	if s < 120 {
		return layout.Seconds(s)
	}
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}

// perCent prints a fraction in per cent.
func perCent(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100**v)
}

// scaled prints a large number in thousands, millions or billions.
func scaled(n int64) string {
	switch v := float64(n); {
	case v >= 1e9:
		return fmt.Sprintf("%.3gG", v/1e9)
	case v >= 1e6:
		return fmt.Sprintf("%.3gM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.3gk", v/1e3)
	}
	return fmt.Sprint(n)
}
