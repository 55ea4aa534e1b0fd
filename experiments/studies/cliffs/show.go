package main

import (
	"fmt"
	"math"
	"strings"

	"clifftop/report"
	"clifftop/report/curve"
	"clifftop/report/plot"
)

// findings holds the results of a cliff.
type findings struct {
	*cliff
	base     *runs
	controls []*runs
	// varied are the base and its variations with other constants, at the two loads between which throughput falls.
	varied []*runs
}

// The loads between which throughput falls.
const before, after = 100, 200

// column is a column of the table of details.
type column struct {
	title string
	of    func(*report.Summary) float64
	plain float64 // where nothing happens
	tail  bool    // a 99th percentile of TTFT, which needs enough requests
}

func columns() []column {
	return []column{
		{"Hit rate", func(s *report.Summary) float64 { return value(s.System.PrefixHitRate) }, 0, false},
		{"Preemptions/s", func(s *report.Summary) float64 {
			return float64(s.System.Preemptions) / (s.Window.EndS - s.Window.StartS)
		}, 0, false},
		{"Recomputed", recomputed, 0, false},
		{"Error rate", func(s *report.Summary) float64 { return value(s.System.ErrorRate) }, 0, false},
		{"Attempts per request", func(s *report.Summary) float64 {
			return float64(s.Requests.Attempts) / float64(s.Requests.Offered)
		}, 1, false},
		{"Received by clients", func(s *report.Summary) float64 {
			return *s.Throughput.SuccessfulOutputTokensPerS / *s.Throughput.OutputTokensPerS
		}, 1, false},
		{"TTFT p50, s", func(s *report.Summary) float64 { return value(s.Latency.TTFT.P50) / 1e3 }, 0, false},
		{"TTFT p99, s", func(s *report.Summary) float64 { return value(s.Latency.TTFT.P99) / 1e3 }, 0, true},
		{"TPOT p50, ms", func(s *report.Summary) float64 { return value(s.Latency.TPOT.P50) }, 0, false},
		gpuTime("GPU time: lost cache", func(g *report.GPUSeconds) *float64 { return g.CacheMiss }),
		gpuTime("GPU time: recomputed", func(g *report.GPUSeconds) *float64 { return g.Recompute }),
		gpuTime("GPU time: cancelled", func(g *report.GPUSeconds) *float64 { return g.Cancelled }),
		{"Busy", func(s *report.Summary) float64 { return value(s.System.BusyFraction) }, 0, false},
		{"Waiting: KV", func(s *report.Summary) float64 { return value(s.System.GapByCause.KV) }, 0, false},
		{"Waiting: token budget", func(s *report.Summary) float64 {
			return value(s.System.GapByCause.TokenBudget)
		}, 0, false},
		{"Waiting: seats", func(s *report.Summary) float64 { return value(s.System.GapByCause.Seats) }, 0, false},
	}
}

// gpuTime returns a column: a kind of GPU time, as a fraction of the window.
func gpuTime(title string, part func(*report.GPUSeconds) *float64) column {
	return column{title: title, of: func(s *report.Summary) float64 {
		return value(part(&s.System.GPUSeconds)) / (s.Window.EndS - s.Window.StartS)
	}}
}

func value(p *float64) float64 {
	if p == nil {
		return math.NaN()
	}
	return *p
}

func recomputed(s *report.Summary) float64 { return float64(s.Tokens.Recomputed) / computed(s) }

// computed returns the number of tokens that went through the model.
func computed(s *report.Summary) float64 {
	t := s.Tokens
	return float64(t.Input - t.CachedInput + t.Output + t.Recomputed)
}

func perResult(s *report.Summary) float64 { return computed(s) / float64(s.Tokens.OutputSuccessful) }

// fewest is the number of requests that a 99th percentile needs, over all seeds.
const fewest = 1000

// cell returns the mean of a column over seeds.
func (r *runs) cell(users int, c column) float64 {
	n := int64(0)
	for _, s := range r.at(users) {
		n += s.Latency.TTFT.N
	}
	if c.tail && n < fewest {
		return math.NaN()
	}
	return r.mean(users, c.of)
}

// mean returns the mean over seeds, NaN if some run did not give the number.
func (r *runs) mean(users int, of func(*report.Summary) float64) float64 {
	return estimate(r.of(users, of)).mean
}

// predicted returns the throughput of the base as a fraction of the control's: by the rule X = X₀/(1+p/o+w), and in the
// simulation. The control computes 1+p/o tokens per output token, the base 1+p/o+w.
func predicted(base, control *runs, users int) (rule, seen float64) {
	return control.mean(users, perResult) / base.mean(users, perResult),
		estimate(base.throughput(users)).mean / estimate(control.throughput(users)).mean
}

func (f *findings) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s: %s\n\n", f.name, f.scenario.Name)
	if n := f.search.size(); n > 1 {
		fmt.Fprintf(b, "%d traffics were tried with seed %d: %v. [%s.yaml](%s.yaml) has the chosen one.\n", n, chosenOn,
			f.search, f.name, f.name)
	} else {
		fmt.Fprintf(b, "There was no search. [%s.yaml](%s.yaml) has the traffic.\n", f.name, f.name)
	}
	f.throughputs(b)
	f.details(b)
	f.rules(b)
	f.diagnoses(b)
	f.variances(b)
}

// throughputs writes the throughput of the base and of the controls, with the published ones.
func (f *findings) throughputs(b *strings.Builder) {
	fmt.Fprintf(b, "\n**%s**, with 95 %% confidence intervals over the seeds %v\n\n| users |",
		strings.ToUpper(f.unit[:1])+f.unit[1:], f.base.seeds)
	for _, u := range users {
		fmt.Fprintf(b, " %.0f |", float64(u)*f.copies)
	}
	fmt.Fprintf(b, " %.0f minus %.0f users |\n|---|%s\n", after*f.copies, before*f.copies,
		strings.Repeat("---:|", len(users)+1))
	if f.published != nil {
		b.WriteString("| published |")
		for _, x := range f.published {
			fmt.Fprintf(b, " %.0f |", x)
		}
		fmt.Fprintf(b, " %.0f |\n", f.published[3]-f.published[2])
	}
	for _, r := range append([]*runs{f.base}, f.controls...) {
		fmt.Fprintf(b, "| %s |", r)
		for _, u := range users {
			x := estimate(r.throughput(u))
			fmt.Fprintf(b, " %.0f ± %.0f |", x.mean, x.high-x.mean)
		}
		d := r.change(before, after)
		fmt.Fprintf(b, " %+.0f (%+.0f to %+.0f) |\n", d.mean, d.low, d.high)
	}
}

func (v variant) String() string {
	text := v.name
	for i, s := range v.settings {
		text += []string{": ", ", "}[min(i, 1)] + "`" + s.Key + "=" + s.Value + "`"
	}
	return text
}

// details writes the causes, load by load.
func (f *findings) details(b *strings.Builder) {
	var shown []column
	for _, c := range columns() {
		for _, r := range []*runs{f.base, f.controls[0]} {
			if some(r, c) {
				shown = append(shown, c)
				break
			}
		}
	}
	for _, r := range []*runs{f.base, f.controls[0]} {
		fmt.Fprintf(b, "\n**Details: %s**\n\n| users |", r.name)
		for _, c := range shown {
			b.WriteString(" " + c.title + " |")
		}
		b.WriteString("\n|---:|" + strings.Repeat("---:|", len(shown)) + "\n")
		for _, u := range r.users {
			fmt.Fprintf(b, "| %d |", u)
			for _, c := range shown {
				b.WriteString(" " + number(r.cell(u, c)) + " |")
			}
			b.WriteString("\n")
		}
	}
}

// some reports whether a column differs from its normal value at any load.
func some(r *runs, c column) bool {
	for _, u := range r.users {
		if v := r.mean(u, c.of); math.Abs(v-c.plain) > .0005 {
			return true
		}
	}
	return false
}

// number writes three significant digits.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case math.Abs(v) >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// rules compares the rule of thumb with the simulation.
func (f *findings) rules(b *strings.Builder) {
	rule, seen := predicted(f.base, f.controls[0], after)
	fmt.Fprintf(b, "\nAt %d users the base computes %s tokens per token of completed output, and the control %s. The "+
		"rule X = X₀/(1+p/o+w) predicts %.0f %% of the control's throughput; the simulation gives %.0f %%.\n",
		after, number(f.base.mean(after, perResult)), number(f.controls[0].mean(after, perResult)), 100*rule, 100*seen)
}

func (f *findings) diagnoses(b *strings.Builder) {
	for _, r := range []*runs{f.base, f.controls[0]} {
		c := r.curve()
		fmt.Fprintf(b, "\n**What `sweep` says: %s**\n\n", r.name)
		if c.Knee != nil {
			fmt.Fprintf(b, "* knee: %s\n", c.Knee.Evidence)
		}
		if c.Peak != nil {
			fmt.Fprintf(b, "* peak: %.0f output tokens/s at %g\n", c.Peak.OutputTokensPerS, c.Peak.Value)
		}
		none := true
		for _, k := range []*curve.Collapse{c.Collapse, c.UsefulCollapse} {
			if k != nil {
				fmt.Fprintf(b, "* collapse: from %g, by up to %.1f %%: %s\n", k.Value, 100*k.FallFraction, k.Evidence)
				none = false
			}
		}
		if none {
			b.WriteString("* no collapse\n")
		}
		if c.FirstLimit != nil {
			fmt.Fprintf(b, "* first limit: %s, from %g: %s\n", c.FirstLimit.Resource, c.FirstLimit.Value,
				c.FirstLimit.Evidence)
		}
		for _, s := range c.WarningSigns {
			fmt.Fprintf(b, "* %s at %g: %s\n", s.Code, s.Value, s.Evidence)
		}
	}
}

// fall counts the variations in which throughput falls.
func (f *findings) fall() int {
	n := 0
	for _, r := range f.varied {
		if r.falls(before, after) {
			n++
		}
	}
	return n
}

// variances writes with which constants throughput still falls.
func (f *findings) variances(b *strings.Builder) {
	fmt.Fprintf(b, "\n**Throughput falls from %d to %d users with %d of %d sets of constants**\n\n| constants | %d "+
		"users | %d users | difference | falls |\n|---|---:|---:|---:|---|\n",
		before, after, f.fall(), len(f.varied), before, after)
	for _, r := range f.varied {
		d := r.change(before, after)
		falls := "no"
		if r.falls(before, after) {
			falls = "yes"
		}
		fmt.Fprintf(b, "| %s | %.0f | %.0f | %+.0f (%+.0f to %+.0f) | %s |\n", r.name,
			estimate(r.throughput(before)).mean, estimate(r.throughput(after)).mean, d.mean, d.low, d.high, falls)
	}
}

// picture shows the base, its first control and the published numbers, and below them the cause of the difference.
func (f *findings) picture() *plot.Figure {
	o := plot.Overlay{
		Title: f.title(), Load: "Concurrent users",
		Caption: fmt.Sprintf("%s on %s, %s", f.scenario.Model, f.scenario.GPU, f.scenario.Name) + f.side(),
		Notes:   []string{fmt.Sprintf("Bars: 95 %% confidence intervals over %d seeds.", len(f.base.seeds))},
	}
	main := plot.OverlayPanel{Title: strings.ToUpper(f.unit[:1]) + f.unit[1:]}
	shown := []*runs{f.base, f.controls[0]}
	for _, r := range shown {
		main.Lines = append(main.Lines, r.line(r.throughput))
	}
	if f.also != nil {
		l := f.base.line(func(users int) []float64 { return f.base.of(users, f.also.of) })
		l.Name = f.also.title
		main.Lines = append(main.Lines, l)
	}
	if f.published != nil {
		q := plot.OverlayLine{Name: "published", Quoted: true}
		for i, u := range users {
			q.Points = append(q.Points, plot.OverlayPoint{Load: float64(u) * f.copies,
				Value: f.published[i] / f.scaled()})
		}
		main.Lines = append(main.Lines, q)
		if f.scaled() != 1 {
			o.Notes = append(o.Notes, fmt.Sprintf("The published numbers are divided by %.3g: only the shape is "+
				"compared.",
				f.scaled()))
		}
	}
	o.Panels = append(o.Panels, main)
	for _, c := range columns() {
		if c.title != f.cause {
			continue
		}
		p := plot.OverlayPanel{Title: f.causeTitle, Fraction: true}
		for _, r := range shown {
			p.Lines = append(p.Lines, r.line(func(users int) []float64 { return r.of(users, c.of) }))
		}
		o.Panels = append(o.Panels, p)
	}
	return o.Figure()
}

// side states how many copies there are of the simulated server.
func (f *findings) side() string {
	if f.copies == 1 {
		return ""
	}
	return fmt.Sprintf(": an illustration, one server simulated and multiplied by %g", f.copies)
}

// scaled returns the factor between the simulated and the published numbers.
func (f *findings) scaled() float64 {
	if !f.shape || f.copies > 1 {
		return 1
	}
	var x []float64
	for _, u := range users {
		x = append(x, estimate(f.base.throughput(u)).mean)
	}
	return f.factor(x)
}

// line returns a number of the runs as a function of the load.
func (r *runs) line(of func(users int) []float64) plot.OverlayLine {
	l := plot.OverlayLine{Name: r.name}
	for _, u := range r.users {
		x := estimate(of(u))
		l.Points = append(l.Points, plot.OverlayPoint{Load: float64(u) * r.cliff.copies, Value: x.mean, Low: x.low,
			High: x.high})
	}
	return l
}

func (f *findings) title() string {
	part := func(r *runs) string {
		from, to := estimate(r.throughput(before)).mean, estimate(r.throughput(after)).mean
		switch change := to/from - 1; {
		case change < -.005:
			return fmt.Sprintf("falls by %.0f %%", -100*change)
		case change < .015:
			return "stays the same"
		default:
			return fmt.Sprintf("grows by %.0f %%", 100*change)
		}
	}
	subject := f.subject
	if subject == "" {
		subject = "throughput"
	}
	return fmt.Sprintf("From %.0f to %.0f users %s %s; with %s it %s", before*f.copies, after*f.copies, subject,
		part(f.base), f.controls[0].name, part(f.controls[0]))
}
