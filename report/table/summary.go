package table

import (
	"fmt"
	"io"
	"strings"

	"clifftop/report"
	"clifftop/report/layout"
)

// Write writes the summary for people, in lines of at most 80 characters. Latencies are in
// milliseconds. Percentiles of too few samples are refused: p99 below 1,000, p99.9 below 10,000.
func Write(s *report.Summary, w io.Writer, p report.Profile) error {
	t := &layout.Text{}
	sections(s, t, p)
	_, err := t.WriteTo(w)
	return err
}

// WriteMarkdown writes the summary as Markdown: the table of latencies, and a list of the rest.
func WriteMarkdown(s *report.Summary, w io.Writer, p report.Profile) error {
	t := &layout.Text{Markdown: true}
	sections(s, t, p)
	_, err := t.WriteTo(w)
	return err
}

func sections(s *report.Summary, t *layout.Text, p report.Profile) {
	loadLines(s, t)
	t.Blank()
	latencyGrid(s, t, p)
	if !t.Markdown {
		t.Blank()
	}
	stageGrid(s, t)
	classGrid(s, t)
	replicaGrid(s, t)
	serviceLines(s, t)
	systemLines(s, t)
	if s.EngineDefaults != "" {
		t.Line("defaults", s.EngineDefaults)
	}
	if s.Effort.Compositions > 0 {
		t.Line("effort", s.Effort.String())
	}
	if s.Accuracy != nil {
		t.Line("error", report.ErrorText(s.Predictive, s.Accuracy))
	}
	for _, w := range s.Warnings {
		if w.Code != "few_samples" { // the latencies say it
			t.Line("warning", w.Text)
		}
	}
}

// loadLines are the run, its requests and its throughput.
func loadLines(s *report.Summary, t *layout.Text) {
	t.Line("window", windowText(s))
	if text := trafficText(s); text != "" {
		t.Line("traffic", text)
	}
	if text := saturationText(s.Saturation); text != "" {
		t.Line("saturation", text)
	}
	if s.Replications != nil {
		t.Line("runs", s.Replications.String())
	}
	t.Line("requests", requestsText(s))
	if n := s.Sessions; n != nil {
		t.Line("sessions", fmt.Sprintf("%d conversations, %d turns", n.Begun, n.Turns))
	}
	if text := attemptsText(s); text != "" {
		t.Line("attempts", text)
	}
	t.Line("throughput", throughputText(s))
}

// serviceLines writes what clients get, except latencies.
func serviceLines(s *report.Summary, t *layout.Text) {
	if g := s.Goodput; g.SLO != nil || g.Attainment != nil {
		t.Line("goodput", goodputText(s))
	}
	if h := s.Hours; h != nil && s.Window.State != report.Settled {
		t.Line("hours", h.String())
	}
	if h := s.SLOHours; h != nil {
		t.Line("SLO hours", h.String()+" meet the SLO")
	}
	if p := s.PaceSurplus; p != nil && p.P50 != nil {
		t.Line("pace", fmt.Sprintf("output arrives %s times as fast as users read (median; p90 %s)",
			layout.Cell(p.P50), layout.Cell(p.P90)))
	}
}

// systemLines writes the state of the system and its use of resources.
func systemLines(s *report.Summary, t *layout.Text) {
	c := s.Concurrency
	t.Line("concurrency", fmt.Sprintf("in system %s (p95 %s), running %s (%s), decoding %s (%s), queued %s (%s)",
		layout.Cell(c.InSystem.Mean), layout.Cell(c.InSystem.P95), layout.Cell(c.Running.Mean),
		layout.Cell(c.Running.P95),
		layout.Cell(c.Decoding.Mean), layout.Cell(c.Decoding.P95), layout.Cell(c.QueueDepth.Mean),
		layout.Cell(c.QueueDepth.P95)))
	t.Line("GPU", gpuText(s))
	if r := s.System.Replicas; r != nil {
		t.Line("replicas", replicaCountsText(r))
	}
	if o := s.System.Offload; o != nil {
		t.Line("offload", offloadText(o))
	}
	if text := lossText(s); text != "" {
		t.Line("GPU time", text)
	}
	t.Line("waiting", gapText(s))
	if e := s.Energy; e != nil && e.GPUJoules != nil {
		t.Line("energy", energyText(e))
	}
	if k := s.Cost; k != nil && k.USDPerHour != nil {
		t.Line("cost", fmt.Sprintf("%s/h, %s per million output tokens at this load", layout.Price(k.USDPerHour),
			layout.Price(k.USDPerMillionOutputAtLoad)))
	}
}

// energyText says how much power and energy is used.
func energyText(e *report.Energy) string {
	text := fmt.Sprintf("%s W per GPU (at most %s), servers %s W (at most %s), %s J per output token",
		layout.Cell(e.GPUWatts.Mean), layout.Cell(e.GPUWatts.Max), layout.Cell(e.SystemWatts.Mean),
		layout.Cell(e.SystemWatts.Max), layout.Cell(e.PerOutputToken))
	if e.CarbonPerMillion != nil {
		text += fmt.Sprintf(", %s g CO2e per million output tokens", layout.Cell(e.CarbonPerMillion))
	}
	return text
}

func windowText(s *report.Summary) string {
	text := fmt.Sprintf("%s to %s", layout.Seconds(s.Window.StartS), layout.Seconds(s.Window.EndS))
	if s.Replications != nil {
		text += " on average"
	}
	if s.Window.WarmupS > 0 {
		text += " (after a warm-up)"
	}
	switch st := s.Window.Stationary; {
	case len(s.Stages) > 1:
		text += fmt.Sprintf(", over all %d phases", len(s.Stages))
	case s.System.Replicas != nil:
		text += ", with replicas that start and stop"
	case s.Window.State == report.Overloaded:
		text += ", OVERLOADED"
	case st != nil && !*st:
		text += ", NOT STATIONARY"
	case s.Window.State == report.Settled:
		text += ", steady"
	case s.Window.State == report.Undetermined:
		text += ", not determined whether steady"
	case s.Window.State == report.Finite && (s.Window.NeedsS != nil || s.CI95 != nil):
		text += ", not settled" + needsText(&s.Window)
	case st == nil:
		text += ", too short to tell whether steady"
	default:
		text += ", steady"
	}
	return text
}

// needsText says how long a window would have to be to show a steady state.
func needsText(w *report.Window) string {
	switch needs := w.NeedsS; {
	case needs == nil:
		return ""
	case *needs > w.EndS-w.StartS:
		return fmt.Sprintf(" (a steady state needs %s)", layout.Seconds(*needs))
	}
	return " (the means are not known to 10 %)"
}

// trafficText says how much the arrivals vary; empty if that is unknown.
func trafficText(s *report.Summary) string {
	text := s.Traffic.String()
	if text != "" && s.Window.MeanOver != "" {
		text += "; the rate is the mean of the " + s.Window.MeanOver
	}
	return text
}

// saturationText says how much the system can carry; empty if that is unknown.
func saturationText(r *report.Saturation) string {
	switch {
	case r == nil:
		return ""
	case r.Metastable:
		return fmt.Sprintf("metastable: keeps up with %s requests/s if it starts empty, recovers from a backlog "+
			"below %s",
			layout.Digits(r.HighRequestsPerS), layout.Digits(r.LowRequestsPerS))
	}
	return fmt.Sprintf("%s requests/s (%s to %s)", layout.Digits(r.HighRequestsPerS), layout.Digits(r.HighCI95[0]),
		layout.Digits(r.HighCI95[1]))
}

func requestsText(s *report.Summary) string {
	r := s.Requests
	text := fmt.Sprintf("%d offered, %d completed", r.Offered, r.Completed)
	return strings.Join(append([]string{text}, counts(s, report.RequestsLine)...), ", ")
}

func counts(s *report.Summary, line report.Line) (texts []string) {
	for _, m := range report.MetricsOf(line) {
		if n := m.Of(s); n != nil && *n > 0 {
			texts = append(texts, fmt.Sprintf("%.0f %s", *n, m.Label))
		}
	}
	return texts
}

// attemptsText says how often clients retried, and why; empty without retries.
func attemptsText(s *report.Summary) string {
	r := s.Requests
	if r.Retries == 0 {
		return ""
	}
	text := fmt.Sprintf("%d, %.3g for each request; sent again after", r.Attempts,
		float64(r.Attempts)/float64(r.Offered))
	if again := counts(s, report.AttemptsLine); len(again) > 0 {
		text += " " + strings.Join(again, ", ")
	}
	return text
}

func throughputText(s *report.Summary) string {
	x := s.Throughput
	useful := ""
	if layout.Cell(x.SuccessfulOutputTokensPerS) != layout.Cell(x.OutputTokensPerS) {
		useful = fmt.Sprintf(" (%s of them in completed requests)",
			withHalfWidth(s, x.SuccessfulOutputTokensPerS, "throughput.successful_output_tokens_per_s"))
	}
	return fmt.Sprintf("%s requests/s, %s output tokens/s%s, %s input tokens/s",
		withHalfWidth(s, x.RequestsPerS, "throughput.requests_per_s"),
		withHalfWidth(s, x.OutputTokensPerS, "throughput.output_tokens_per_s"), useful,
		withHalfWidth(s, x.InputTokensPerS, "throughput.input_tokens_per_s"))
}

// latencyGrid is the table of latencies, and below it what is to be known of it.
func latencyGrid(s *report.Summary, t *layout.Text, p report.Profile) {
	rows := [][]string{{"ms", "mean", "p50", "p90", "p95", "p99", "p99.9", "max", "n"}}
	var few, fewer int64
	halves := false
	for _, m := range report.LatencyMetrics() {
		d := m.Of(&s.Latency)
		rows = append(rows, []string{
			m.Label, layout.Cell(d.Mean), layout.Cell(d.P50), layout.Cell(d.P90), layout.Cell(d.P95),
			layout.Cell(d.Tail(d.P99, report.MinSamplesP99)), layout.Cell(d.Tail(d.P999, report.MinSamplesP999)),
			layout.Cell(d.Max), fmt.Sprint(d.N),
		})
		if row := halfWidths(s, m.Path(), d); row != nil {
			rows, halves = append(rows, row), true
		}
		if n := d.Samples(); n > 0 && n < report.MinSamplesP99 {
			few = max(few, n)
		} else if n >= report.MinSamplesP99 && n < report.MinSamplesP999 {
			fewer = max(fewer, n)
		}
	}
	t.Grid(rows, 9)
	intervalNote(s, t, halves)
	fewNote(s, t, few, fewer)
	bandsNote(s, t, p)
}

// intervalNote says what the half widths below the numbers are, or why there are none.
func intervalNote(s *report.Summary, t *layout.Text, halves bool) {
	switch {
	case s.CI95Method != report.ByBatchMeans:
	case halves || ratesHaveIntervals(s):
		t.Line("±", "half of a 95 % confidence interval, by the means of batches of this run")
	default:
		t.Line("±", "unknown: parts of this run resemble those beside them, so another run may differ by an unknown "+
			"amount; use --replications 5")
	}
}

// fewNote says why percentiles are missing: of some latencies there are so few samples, 0 for none, that there is no
// p99, or fewer than a p99.9 takes.
func fewNote(s *report.Summary, t *layout.Text, few, fewer int64) {
	each := ""
	if s.Replications != nil {
		each = " in each run"
	}
	if few > 0 {
		t.Line("–", fmt.Sprintf("no p99 from %d samples%s (want %d or more)", few, each, report.MinSamplesP99))
	} else if fewer > 0 {
		t.Line("–", fmt.Sprintf("no p99.9 from %d samples%s (want %d or more)", fewer, each, report.MinSamplesP999))
	}
}

// bandsNote puts the latencies into words.
func bandsNote(s *report.Summary, t *layout.Text, p report.Profile) {
	d := s.Latency.TTFT
	if d.P95 == nil {
		return
	}
	text := "TTFT p95 is " + p.TTFT.Name(*d.P95)
	if g := s.Latency.TPOT.P95; g != nil {
		text += ", TPOT p95 is " + p.TPOT.Name(*g)
	}
	if p.Name != report.DefaultProfile().Name {
		text += " (" + p.Name + ")"
	}
	t.Line("bands", text)
}

// halfWidths returns a row of the half-widths of the intervals of a distribution's numbers; nil without intervals.
func halfWidths(s *report.Summary, path string, d *report.Distribution) []string {
	row, any := []string{"  ±"}, false
	for _, c := range []struct {
		name  string
		least int64
	}{{"mean", 0}, {"p50", 0}, {"p90", 0}, {"p95", 0}, {"p99", report.MinSamplesP99},
		{"p99_9", report.MinSamplesP999}} {
		at := report.JoinPath(path, c.name)
		half := s.HalfWidth(at, report.MetricAt(at).Of(s))
		if d.Samples() < c.least {
			half = ""
		}
		row, any = append(row, half), any || half != ""
	}
	if !any {
		return nil
	}
	return row
}

// withHalfWidth formats a number with the half-width of its interval, if it has one.
func withHalfWidth(s *report.Summary, v *float64, path string) string {
	half := s.HalfWidth(path, v)
	if half == "" {
		return layout.Cell(v)
	}
	return layout.Cell(v) + " ±" + half
}

// ratesHaveIntervals reports whether a ± stands beside any of the rates.
func ratesHaveIntervals(s *report.Summary) bool {
	for _, path := range []string{"throughput.requests_per_s", "throughput.output_tokens_per_s",
		"throughput.successful_output_tokens_per_s", "throughput.input_tokens_per_s", "goodput.requests_per_s",
		"goodput.output_tokens_per_s"} {
		if _, ok := s.CI95[path]; ok {
			return true
		}
	}
	return false
}

// section writes a table with a blank line before it in Markdown, and after it in text.
func section(t *layout.Text, rows [][]string) {
	if t.Markdown {
		t.Blank()
	}
	t.Grid(rows, 8)
	if !t.Markdown {
		t.Blank()
	}
}

// stageGrid has a row for each stage.
func stageGrid(s *report.Summary, t *layout.Text) {
	if len(s.Stages) == 0 {
		return
	}
	rows := [][]string{{"phase", "from s", "to s", "req/s", "tok/s", "TTFTp50", "p95", "TPOTp50", "p95"}}
	for _, g := range s.Stages {
		l := &g.Latency
		rows = append(rows, []string{g.Name, layout.Digits(g.StartS), layout.Digits(g.EndS),
			layout.Cell(g.Throughput.RequestsPerS), layout.Cell(g.Throughput.OutputTokensPerS),
			layout.Cell(l.TTFT.P50), layout.Cell(l.TTFT.P95), layout.Cell(l.TPOT.P50), layout.Cell(l.TPOT.P95)})
	}
	section(t, rows)
}

func goodputText(s *report.Summary) string {
	g := s.Goodput
	verdict := "SLO undecided"
	if g.Met != nil {
		verdict = "SLO MISSED"
		if *g.Met {
			verdict = "SLO met"
		}
	}
	share := layout.PercentCell(g.Attainment)
	if ci, ok := s.CI95["goodput.attainment"]; ok {
		share += fmt.Sprintf(" (%s to %s)", layout.Percent(ci[0]), layout.Percent(ci[1]))
	}
	text := fmt.Sprintf("%s; %s of offered requests are good: %s requests/s, %s output tokens/s",
		verdict, share, withHalfWidth(s, g.RequestsPerS, "goodput.requests_per_s"),
		withHalfWidth(s, g.OutputTokensPerS, "goodput.output_tokens_per_s"))
	if v := g.AnyBadOf10; v != nil && *v > 0 {
		text += fmt.Sprintf("; of users who send 10, %s meet a bad one", layout.Percent(*v))
	}
	return text
}

func gpuText(s *report.Summary) string {
	y := &s.System
	parts := values(s, report.GPULine)
	if y.BusyFraction == nil {
		parts = append([]string{"busy –"}, parts...)
	}
	if y.KVBlocks != nil {
		parts = append(parts, fmt.Sprintf("KV %s (at most %s of %d blocks)", layout.PercentCell(y.KVUsage.Mean),
			layout.PercentCell(y.KVUsage.Max), *y.KVBlocks))
		if e := y.KVUsage.ReservedMean; e != nil && *e > 0 {
			parts = append(parts, layout.PercentCell(e)+" reserved and empty")
		}
	}
	parts = append(parts, fmt.Sprintf("%d preemptions", y.Preemptions))
	return strings.Join(append(parts, values(s, report.CacheLine)...), ", ")
}

// values are the known numbers of a line.
func values(s *report.Summary, line report.Line) (texts []string) {
	for _, m := range report.MetricsOf(line) {
		if v := m.Of(s); v != nil {
			texts = append(texts, m.Label+" "+m.Text(*v))
		}
	}
	return texts
}

// lossText lists the parts of the GPU time, if any is lost other than by idling.
func lossText(s *report.Summary) string {
	metrics := report.MetricsOf(report.GPUTimeLine) // the first is useful, the last is idle
	total, lost := 0.0, 0.0
	for i, m := range metrics {
		if v := m.Of(s); v != nil {
			total += *v
			if i > 0 && i < len(metrics)-1 {
				lost += *v
			}
		}
	}
	if lost == 0 {
		return ""
	}
	var texts []string
	for _, m := range metrics {
		if v := m.Of(s); v != nil && *v > 0 {
			texts = append(texts, m.Label+" "+layout.Percent(*v/total))
		}
	}
	return strings.Join(texts, ", ")
}

func gapText(s *report.Summary) string {
	var parts []string
	total := 0.0
	for _, m := range report.MetricsOf(report.WaitingLine) {
		if v := m.Of(s); v != nil && *v > 0 {
			parts = append(parts, m.Label+" "+layout.Percent(*v))
			total += *v
		}
	}
	if len(parts) == 0 {
		return "never"
	}
	return layout.Percent(total) + " of the time: " + strings.Join(parts, ", ")
}

// offloadText describes the tiers in a line.
func offloadText(o *report.Offload) string {
	text := fmt.Sprintf("%s of prompt tokens loaded, in %s ms on average", layout.PercentCell(o.HitRate),
		layout.Cell(o.LoadMs))
	for _, t := range o.Tiers {
		text += fmt.Sprintf("; %s: %.3g GB in, %.3g GB out, link busy %s", t.Name, float64(t.StoredBytes)/1e9,
			float64(t.LoadedBytes)/1e9, layout.PercentCell(t.LinkBusyFraction))
	}
	return text
}
