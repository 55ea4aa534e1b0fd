package plan

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

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
			least + layout.Digits(c.Capacity.PassesRequestsPerS), layout.Percent(c.AtPlan.SLOUse), e,
			c.Verified.short()})
	}
	t.Table(rows, 1, 2)
	t.Space()
	note := "$/M: per million output tokens in the peak hour; req/s: what one replica carries, by short runs; SLO: " +
		"the part used of the limit that is nearest, by a short run; hours: of the whole fleet, those that meet the " +
		"SLO. Where none were simulated, bursts can take more replicas. * no candidate is both cheaper and faster " +
		"(Pareto set). Costs of one group overlap. “?” marks an assumed error: no measured run stands behind the " +
		"step times."
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
	note := "These are not recommended: no measured run stands behind their step times. req/s is the load " +
		"that one replica carries, within the assumed error. --unmeasured ranked ranks them with the others."
	if hidden > 0 {
		note = fmt.Sprintf("%d more are hidden. ", hidden) + note
	}
	if t.Markdown {
		t.Blank()
	}
	t.Paragraph(note)
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
