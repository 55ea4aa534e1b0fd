package plan

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"clifftop/report"
	"clifftop/report/layout"
)

// shown is the number of candidates, and of refusals of a kind, that tables list.
const (
	shown        = 12
	shownRefused = 4
)

// WriteTable writes the plan for people, in lines of at most 80 characters.
func (p *Result) WriteTable(w io.Writer) error { return p.write(w, &layout.Text{}) }

// WriteMarkdown writes the plan as a page: what, why, what was assumed, what would change the answer.
func (p *Result) WriteMarkdown(w io.Writer) error { return p.write(w, &layout.Text{Markdown: true}) }

// WriteCSV writes a row for each candidate that meets the SLO.
func (p *Result) WriteCSV(w io.Writer) error {
	c := layout.NewCSVWriter(w)
	rows := [][]string{{"candidate", "gpu", "dtype", "kv_cache_dtype", "tensor_parallel_size", "pipeline_parallel_size",
		"expert_parallel_size", "replicas", "gpus",
		"usd_per_month", "usd_per_million_output_tokens_at_capacity", "usd_per_million_output_tokens_at_plan",
		"usd_per_million_output_tokens_at_load",
		"capacity_requests_per_s", "slo_use", "error", "validated", "pareto", "group", "hours_met", "hours"}}
	hours := func(v *Verification) (met, of string) {
		if v == nil {
			return "", ""
		}
		return strconv.Itoa(v.Met), strconv.Itoa(v.Of)
	}
	number := func(x *float64) string {
		if x == nil {
			return ""
		}
		return strconv.FormatFloat(*x, 'g', -1, 64)
	}
	for i := range p.Candidates {
		k := &p.Candidates[i]
		met, of := hours(k.Verified)
		rows = append(rows, []string{k.Name, k.GPU, k.Dtype, k.KVCacheDtype, strconv.Itoa(k.TensorParallel),
			strconv.Itoa(k.PipelineParallel), strconv.Itoa(k.ExpertParallel),
			strconv.Itoa(k.Replicas), strconv.Itoa(k.GPUs), number(k.USDPerMonth), number(k.PerMillion.AtCapacity),
			number(k.PerMillion.AtPlan), number(k.PerMillion.AtLoad),
			number(&k.Capacity.PassesRequestsPerS), number(&k.AtPlan.SLOUse), number(&k.Error),
			strconv.FormatBool(k.Validated), strconv.FormatBool(k.Pareto), strconv.Itoa(k.Group), met, of})
	}
	return c.WriteAll(rows)
}

func (p *Result) write(w io.Writer, t *layout.Text) error {
	if t.Markdown {
		t.Printf("# %s\n\n", p.Answer())
	} else {
		t.Paragraph(p.Answer())
		t.Blank()
	}
	p.trafficLines(t)
	if len(p.Candidates) > 0 {
		p.ranking(t)
		p.bestLines(t)
		p.apart(t)
	}
	p.refusedLines(t)
	p.sentences(t, "Why", p.Why)
	p.sentences(t, "What would change the answer", p.Flips)
	p.sentences(t, "What was assumed", p.Assumptions)
	for _, x := range p.Warnings {
		t.Line("warning", x.Text)
	}
	_, err := t.WriteTo(w)
	return err
}

// Answer is the plan in a sentence.
func (p *Result) Answer() string {
	switch {
	case len(p.Candidates) == 0 && p.Partial:
		return "No plan yet: the search was interrupted before a candidate was known to meet the SLO"
	case len(p.Candidates) == 0:
		return "No plan: " + p.impossible()
	}
	b := &p.Candidates[0]
	text := fmt.Sprintf("%s for %s", b.Name, p.Model)
	if b.USDPerMonth != nil {
		text += fmt.Sprintf(": %s a month", layout.Dollars(*b.USDPerMonth))
		if m := b.PerMillion.AtPlan; m != nil {
			text += fmt.Sprintf(", %s per million output tokens at the peak", layout.Dollars(*m))
		}
	} else {
		text += ": price unknown"
	}
	if v := b.Verified; v != nil {
		text += "; " + v.text()
	}
	if !b.Validated {
		text += "; no measured run stands behind it"
	}
	if p.Partial {
		text += " (the search was interrupted)"
	}
	return text
}

// text says in how many hours the SLO is met.
func (v *Verification) text() string {
	text := fmt.Sprintf("%d of %d %s meet the SLO", v.Met, v.Of, v.unit())
	if v.Fewer != nil {
		text += fmt.Sprintf(", with one replica fewer %d of %d", v.Fewer.Met, v.Fewer.Of)
	}
	return text
}

// unit names the parts of time that were judged.
func (v *Verification) unit() string {
	if v.HorizonS == 3600 {
		return "hours"
	}
	return "parts of " + layout.Seconds(v.HorizonS)
}

// short is the count for a table.
func (v *Verification) short() string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%d/%d", v.Met, v.Of)
}

// impossible says what forbids every candidate, and by how much the nearest one misses.
func (p *Result) impossible() string {
	if len(p.Refused) == 0 {
		return "there are no candidates"
	}
	reasons := map[string]int{}
	for _, r := range p.Refused {
		reasons[r.Reason]++
	}
	r := &p.Refused[0]
	text := fmt.Sprintf("none of %d candidates meets the SLO within the limits.", p.Counts.Candidates)
	switch {
	case reasons[SLOFloor] == len(p.Refused)-reasons[DoesNotFit]-reasons[NotPossible] && reasons[SLOFloor] > 0:
		text = fmt.Sprintf("the SLO is below what any of %d candidates that fit can reach, however many there are.",
			reasons[SLOFloor])
	case reasons[DoesNotFit]+reasons[NotPossible] == len(p.Refused):
		text = fmt.Sprintf("%s fits none of %d candidates.", p.Model, p.Counts.Candidates)
	}
	return text + fmt.Sprintf(" The nearest: %s: %s", r.Name, r.Text)
}

func (p *Result) trafficLines(t *layout.Text) {
	x := &p.Traffic
	text := fmt.Sprintf("%s requests/s in the peak hour", layout.Digits(x.PeakRequestsPerS))
	if math.Abs(x.PeakRequestsPerS-x.MeanRequestsPerS) > 1e-6*x.PeakRequestsPerS {
		text += fmt.Sprintf(" (%s on average)", layout.Digits(x.MeanRequestsPerS))
	}
	if x.Growth > 0 {
		text += fmt.Sprintf(", %s with %s growth", layout.Digits(x.PlannedRequestsPerS), layout.Percent(x.Growth))
	}
	text += fmt.Sprintf("; prompts of %s tokens and answers of %s on average", layout.Digits(x.MeanInputTokens),
		layout.Digits(x.MeanOutputTokens))
	if x.PlannedRequestsPerS > 0 { // or nothing could be built, and the traffic was not looked at
		t.Line("traffic", text)
	}
	t.Line("SLO", p.sloText())
	n := &p.Counts
	text = fmt.Sprintf("%d", n.Candidates)
	for _, k := range []struct {
		n    int
		text string
	}{{n.NotBuilt, "%d not possible"}, {n.DoNotFit, "%d do not fit"}, {n.ByBound, "%d discarded by bounds"},
		{n.Simulated, "%d simulated"}, {n.Met, "%d meet the SLO"}} {
		if k.n > 0 {
			text += ", " + fmt.Sprintf(k.text, k.n)
		}
	}
	t.Line("candidates", text+fmt.Sprintf("; %d runs", n.Runs))
}

func (p *Result) sloText() string {
	if p.Classes == nil {
		text := p.SLO.Text()
		if p.SLOAssumed {
			text += " (assumed)"
		}
		return text
	}
	var parts []string
	for _, k := range p.Classes {
		parts = append(parts, k.Name+": "+k.SLO.Text())
	}
	return strings.Join(parts, "; ")
}

// ranking lists candidates: the Pareto set, and the cheapest others of each GPU. What others dominate is hidden after
// the first few.
func (p *Result) ranking(t *layout.Text) {
	t.Heading("Ranking")
	rows := [][]string{{"", "group", "$/month", "$/M", "req/s", "SLO", "error", "hours"}}
	gpus := map[string]bool{}
	hidden := 0
	for i := range p.Candidates {
		c := &p.Candidates[i]
		if c.Apart {
			break
		}
		if len(rows) > shown || i > 4 && !c.Pareto && gpus[c.GPU] {
			hidden++
			continue
		}
		gpus[c.GPU] = true
		name := c.Name
		if c.Pareto {
			name += " *"
		}
		e := layout.Percent(c.Error)
		if !c.Validated && c.Error > 0 {
			e += "?"
		}
		cost, least := "unknown", "≥ "
		if c.Capacity.Resolved {
			least = ""
		}
		if c.USDPerMonth != nil {
			cost = layout.Dollars(*c.USDPerMonth)
		}
		rows = append(rows, []string{name, strconv.Itoa(c.Group), cost, layout.Price(c.PerMillion.AtPlan),
			least + layout.Digits(c.Capacity.PassesRequestsPerS), layout.Percent(c.AtPlan.SLOUse), e, c.Verified.short()})
	}
	t.Table(rows, 1, 2)
	t.Space()
	note := "$/M: per million output tokens in the peak hour; req/s: what one replica carries, by short runs; SLO: the part " +
		"used of the limit that is nearest, by a short run; hours: of the whole fleet, those that meet the SLO. Where none " +
		"were simulated, bursts can take more replicas. * no candidate is both cheaper and faster (Pareto set). Costs of one group overlap. " +
		"“?” marks an assumed error: no measured run stands behind the step times."
	if hidden > 0 {
		note = fmt.Sprintf("%d more candidates, dearer and slower or of a GPU listed, are hidden. ", hidden) + note
	}
	if t.Markdown {
		t.Blank()
	}
	t.Paragraph(note)
}

// apart lists candidates without measured runs: the cheapest of each GPU.
func (p *Result) apart(t *layout.Text) {
	first := slices.IndexFunc(p.Candidates, func(c Candidate) bool { return c.Apart })
	if first < 0 {
		return
	}
	t.Heading("Without measured runs")
	const most = 6
	rows := [][]string{{"", "$/month", "req/s", "error"}}
	gpus := map[string]bool{}
	hidden := 0
	for i := first; i < len(p.Candidates); i++ {
		c := &p.Candidates[i]
		if gpus[c.GPU] || len(rows) > most {
			hidden++
			continue
		}
		gpus[c.GPU] = true
		cost := "unknown"
		if r := c.USDPerMonthRange; r != nil {
			if cost = layout.Dollars(r[1]); r[0] < r[1] {
				cost = layout.Dollars(r[0]) + " to " + cost
			}
		}
		carries, least := c.Capacity.PassesRequestsPerS, "≥ "
		if c.Capacity.Resolved {
			least = ""
		}
		rows = append(rows, []string{c.Name, cost, least + layout.Digits(carries*(1-c.Error)) + " to " +
			layout.Digits(carries*(1+c.Error)), layout.Percent(c.Error) + "?"})
	}
	t.Table(rows, 1, 2)
	t.Space()
	note := "These are not recommended: no measured run stands behind their step times. req/s is what one replica carries, " +
		"within the assumed error. --unmeasured ranked ranks them with the others."
	if hidden > 0 {
		note = fmt.Sprintf("%d more are hidden. ", hidden) + note
	}
	if t.Markdown {
		t.Blank()
	}
	t.Paragraph(note)
}

// bestLines tell more of the first candidate.
func (p *Result) bestLines(t *layout.Text) {
	b := &p.Candidates[0]
	t.Heading("%s", b.Name)
	t.Line("each replica", p.replicaText(b))
	if v := b.Verified; v != nil {
		t.Line("verified", fmt.Sprintf("%s; all are simulated whole behind the router %s, with a lead-in of %s", v.text(),
			v.Router, layout.Seconds(v.LeadS)))
	}
	t.Line("cost", b.costText())
	if b.USDPerMonthRange != nil && b.USDPerMonthRange[0] < b.USDPerMonthRange[1] {
		t.Line("uncertainty", fmt.Sprintf("%s to %s a month within the error of the step model and the width of the search",
			layout.Dollars(b.USDPerMonthRange[0]), layout.Dollars(b.USDPerMonthRange[1])))
	}
	if b.Predictive != nil {
		t.Line("error", b.Predictive.String())
		t.Line("allowance", b.errorText())
	} else {
		t.Line("error", b.errorText())
	}
	for _, h := range b.Headroom {
		text := "holds"
		if h.Breaks != "" {
			text = "breaks: " + h.Breaks
		}
		t.Line(h.What, text)
	}
	if b.LimitedBy != "" {
		t.Line("first limit", b.LimitedBy)
	}
	if x := b.Spare; x != nil {
		t.Line("N+"+strconv.Itoa(x.Failures), x.text())
	}
	if x := b.Energy.Kilowatts; x != nil {
		text := fmt.Sprintf("about %s kW", layout.Digits(*x))
		if wh := b.Energy.WattHoursPerMillionToks; wh != nil {
			text += fmt.Sprintf(", %s Wh per million output tokens at the peak (estimate)", layout.Digits(*wh))
		}
		t.Line("energy", text)
	}
	if a := p.Autoscaling; a != nil {
		t.Line("autoscaling", a.text())
	}
	if o := p.OnPrem; o != nil {
		t.Line("on premises", o.text())
	}
	if a := p.API; a != nil {
		t.Line("API", a.text())
	}
}

func (p *Result) replicaText(b *Candidate) string {
	a := &b.AtPlan
	var parts []string
	for i := range a.Limits {
		x, value := &a.Limits[i], "∞"
		switch {
		case x.N == 0:
			value = "–"
		case x.ValueMs != nil:
			value = layout.Milliseconds(*x.ValueMs)
		case x.LimitMs == nil && x.Fraction != nil:
			value = layout.Percent(*x.Fraction)
		}
		parts = append(parts, report.LimitName(x.Key)+" "+value)
	}
	text := fmt.Sprintf("at %s requests/s %s", layout.Digits(a.RequestsPerS), strings.Join(parts, ", "))
	if x := a.InSystem; x.Mean != nil && x.P95 != nil && x.P99 != nil {
		text += fmt.Sprintf("; %s requests at once (p95 %s, p99 %s)", layout.Digits(*x.Mean), layout.Digits(*x.P95),
			layout.Digits(*x.P99))
	}
	if a.BusyFraction != nil {
		text += ", busy " + layout.Percent(*a.BusyFraction)
	}
	if a.KVUsageMax != nil && b.KVTokens > 0 {
		text += fmt.Sprintf(", KV at most %s of %s tokens", layout.Percent(*a.KVUsageMax),
			layout.Digits(float64(b.KVTokens)))
	}
	text += fmt.Sprintf("; in short runs it carries %s requests/s", layout.Digits(b.Capacity.PassesRequestsPerS))
	if f := b.Capacity.FailsRequestsPerS; f != nil {
		text += fmt.Sprintf(" and fails at %s", layout.Digits(*f))
	}
	return text
}

func (c *Candidate) costText() string {
	if c.USDPerHour == nil {
		return "price unknown: set plan.prices"
	}
	text := fmt.Sprintf("%s/h for %d × %s (%s); per million output tokens %s at capacity, %s at the peak, %s at the "+
		"mean load, idle hours paid",
		layout.Dollars(*c.USDPerHour), c.GPUs, layout.Dollars(*c.USDPerGPUHour), c.PriceSource,
		layout.Price(c.PerMillion.AtCapacity), layout.Price(c.PerMillion.AtPlan), layout.Price(c.PerMillion.AtLoad))
	if c.PerMillion.Good != nil {
		text += fmt.Sprintf(", %s for good ones at the peak", layout.Price(c.PerMillion.Good))
	}
	return text
}

func (c *Candidate) errorText() string {
	switch {
	case c.Error == 0:
		return c.Scope
	case !c.Validated:
		return fmt.Sprintf("%s; ±%s is assumed, and %s requests/s are planned for", c.Scope, layout.Percent(c.Error),
			layout.Digits(c.AtPlan.RequestsPerS*float64(c.Replicas)))
	}
	return fmt.Sprintf("±%s (%s): planned for %s requests/s, the peak divided by 1 − %s", layout.Percent(c.Error),
		c.Scope, layout.Digits(c.AtPlan.RequestsPerS*float64(c.Replicas)), strconv.FormatFloat(c.Error, 'g', 3, 64))
}

func (x *SparePlan) text() string {
	text := fmt.Sprintf("%d replicas survive the failure of %d", x.Replicas, x.Failures)
	if x.USDPerMonth != nil {
		text += fmt.Sprintf(" (%s a month)", layout.Dollars(*x.USDPerMonth))
	}
	switch {
	case x.ColdReplicas == x.Replicas:
		text += ", also with cold prefix caches"
	case x.ColdReplicas > 0:
		text += fmt.Sprintf(", %d with cold prefix caches", x.ColdReplicas)
		if x.ColdUSD != nil {
			text += fmt.Sprintf(" (%s)", layout.Dollars(*x.ColdUSD))
		}
	default:
		text += "; with cold prefix caches no number does"
	}
	return text + fmt.Sprintf("; without spares, when %d fails: %s", x.Failures, x.Degraded)
}

func (a *Autoscaling) text() string {
	least := a.Static
	for _, n := range a.ReplicasByHour {
		least = min(least, n)
	}
	text := fmt.Sprintf("the peak is %s times the mean; %d to %d replicas by the hour, %s on average with starts of %s "+
		"s; standing ones are idle %s of their time",
		layout.Digits(a.PeakToMean), least, a.Static, layout.Digits(a.ReplicaHours()), layout.Digits(a.StartUpS),
		layout.Percent(a.PaidIdle))
	if a.USDPerMonth != nil {
		text += fmt.Sprintf("; %s a month, not %s", layout.Dollars(*a.USDPerMonth),
			layout.Dollars(*a.StaticUSDPerMonth))
	}
	return text
}

func (o *OnPremCost) text() string {
	text := fmt.Sprintf("%s to buy, %s a month for power and staff, %s a month with the write-off over %s years (%s "+
		"per GPU and hour), rented %s",
		layout.Dollars(o.CapexUSD), layout.Dollars(o.OpexUSDPerMonth), layout.Dollars(o.USDPerMonth),
		layout.Digits(o.LifeYears), layout.Dollars(o.USDPerGPUHour), layout.Dollars(o.CloudUSDPerMonth))
	switch {
	case o.BreakEvenUtilisation <= 1:
		text += fmt.Sprintf("; cheaper where GPUs are needed more than %s of the time",
			layout.Percent(o.BreakEvenUtilisation))
	default:
		text += "; renting is cheaper even around the clock"
	}
	if o.BreakEvenMonth != nil {
		text += fmt.Sprintf("; paid for after %s months", layout.Digits(*o.BreakEvenMonth))
	}
	return text
}

func (a *APIComparison) text() string {
	text := fmt.Sprintf("%s a month at the mean load, own %s; they cost the same at %s requests/s on average",
		layout.Dollars(a.APIUSDPerMonth), layout.Dollars(a.OwnUSDPerMonth), layout.Digits(a.BreakEvenRequestsPerS))
	if !a.PlanCarries {
		text += ", more than this plan carries"
	}
	return text
}

// refusedLines count the refusals of each kind, and list the nearest of those that say something of their own.
func (p *Result) refusedLines(t *layout.Text) {
	if len(p.Refused) == 0 {
		return
	}
	t.Heading("Left out")
	for _, k := range []struct {
		reason, title string
		listed        bool
	}{
		{MissesSLO, "miss the SLO, with any number of replicas", true},
		{SLOFloor, "cannot meet the SLO, however many there are", true},
		{TooManyGPUs, "would take too many GPUs", true}, {DoesNotFit, "do not fit", true},
		{TooDear, "cost too much to look into", false}, {NotPossible, "cannot be built that way", false},
	} {
		var of []*Refusal
		for i := range p.Refused {
			if p.Refused[i].Reason == k.reason {
				of = append(of, &p.Refused[i])
			}
		}
		if len(of) == 0 {
			continue
		}
		text := k.title
		if k.listed {
			text += ":"
		} else {
			text += ", such as " + of[0].Name + ": " + of[0].Text
		}
		t.Item(strconv.Itoa(len(of)), text)
		for i, r := range of {
			if !k.listed || i == shownRefused {
				break
			}
			bullet(t, r.Name+": "+r.Text)
		}
	}
	t.Paragraph("--format json lists all of them.")
}

// bullet writes an item of a list.
func bullet(t *layout.Text, text string) {
	if t.Markdown {
		t.Printf("* %s\n", t.Shown(text))
		return
	}
	t.Item("•", text)
}

func (p *Result) sentences(t *layout.Text, title string, list []string) {
	if len(list) == 0 {
		return
	}
	t.Heading("%s", title)
	for _, s := range list {
		bullet(t, s)
	}
}
