package plot

import (
	"fmt"

	"clifftop/report"
	"clifftop/report/chart"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// shownRequests is the number of requests with a lane of their own.
const shownRequests = 16

// Kinds of slices.
const (
	decodeOnly = iota
	prefillAndDecode
	prefillOnly
	waitingKind
)

// Gantt draws the start of a run: a lane for the iterations of each replica and a lane for each of the first requests.
// It returns nil if nothing ran.
func Gantt(o *report.Gantt) *chart.Timeline {
	if o == nil || len(o.Iterations) == 0 {
		return nil
	}
	t := &chart.Timeline{Kinds: []string{"decode only", "prefill and decode", "prefill only", "waiting"}}
	last := clock.Time(0)
	replicas := 0
	for _, i := range o.Iterations {
		last, replicas = max(last, i.End), max(replicas, i.Replica+1)
	}
	t.ToS = last.Seconds()
	t.FromS = o.Iterations[0].Start.Seconds()
	for r := range replicas {
		name := "iterations"
		if replicas > 1 {
			name = fmt.Sprintf("replica %d", r)
		}
		t.Lanes = append(t.Lanes, chart.Lane{Name: name, Slices: iterationsOf(o, r)})
	}
	for _, q := range o.Requests {
		if q.Arrival >= last || len(t.Lanes) >= replicas+shownRequests {
			break
		}
		if slices := phases(&q, last); len(slices) > 0 {
			t.Lanes = append(t.Lanes, chart.Lane{Name: fmt.Sprintf("request %d", q.ID), Slices: slices})
			t.FromS = min(t.FromS, slices[0].StartS)
		}
	}
	t.Title = ganttTitle(o, t.ToS-t.FromS)
	t.Notes = []string{fmt.Sprintf("The first %d iterations, and the requests that arrived first.", len(o.Iterations))}
	return t
}

func iterationsOf(o *report.Gantt, replica int) []chart.Slice {
	var out []chart.Slice
	for _, i := range o.Iterations {
		if i.Replica != replica {
			continue
		}
		kind, text := decodeOnly, fmt.Sprintf("%s: %d requests decode one token",
			duration(1e3*i.End.Sub(i.Start).Seconds(), 3), i.Decodes)
		if i.PrefillTokens > 0 {
			kind = prefillAndDecode
			if i.Decodes == 0 {
				kind, text = prefillOnly,
					fmt.Sprintf("%s: no request decodes", duration(1e3*i.End.Sub(i.Start).Seconds(), 3))
			}
			text += fmt.Sprintf(", %d prompt tokens", i.PrefillTokens)
		}
		out = append(out, chart.Slice{StartS: i.Start.Seconds(), EndS: i.End.Seconds(), Kind: kind, Text: text})
	}
	return out
}

// phases returns the phases of a request up to an instant.
func phases(q *report.Phases, until clock.Time) []chart.Slice {
	var out []chart.Slice
	add := func(from, to clock.Time, kind int, format string, args ...any) {
		if from == clock.Never || from >= until {
			return
		}
		if to == clock.Never {
			to = q.End
		}
		length := to.Sub(from)
		if to = min(to, until); to > from {
			text := fmt.Sprintf(format, args...) + ", " + duration(1e3*length.Seconds(), 3)
			out = append(out, chart.Slice{StartS: from.Seconds(), EndS: to.Seconds(), Kind: kind, Text: text})
		}
	}
	add(q.Arrival, q.Scheduled, waitingKind, "request %d: front end and queue", q.ID)
	add(q.Scheduled, q.FirstToken, prefillOnly, "request %d: prompt of %d tokens", q.ID, q.InputTokens)
	add(q.FirstToken, q.End, decodeOnly, "request %d: output of %d tokens", q.ID, q.OutputTokens)
	if n := len(out); n > 0 && q.Outcome != event.Completed {
		out[n-1].Text += ", " + q.Outcome.String()
	}
	return out
}

func ganttTitle(o *report.Gantt, seconds float64) string {
	answers, n, longest, held := 0.0, 0, 0.0, 0
	for _, i := range o.Iterations {
		ms := 1e3 * i.End.Sub(i.Start).Seconds()
		switch {
		case i.PrefillTokens == 0:
			answers, n = answers+ms, n+1
		case ms > longest && i.Decodes > 0:
			longest, held = ms, i.Decodes
		}
	}
	text := fmt.Sprintf("The first %s s", sig(seconds, 2))
	if n > 0 {
		text += fmt.Sprintf(": iterations without prompts take %s on average", duration(answers/float64(n), 2))
	}
	if held > 0 && n > 0 && longest > 1.2*answers/float64(n) {
		requests := "1 request"
		if held > 1 {
			requests = fmt.Sprintf("%d requests", held)
		}
		text += fmt.Sprintf("; the longest with one takes %s and delays %s", duration(longest, 2), requests)
	}
	return text
}

// PromptShare draws the fraction of computed tokens that are prompt tokens, over time.
func PromptShare(buckets []report.SeriesPoint) *Figure {
	r := newTimes(buckets)
	p := r.panel()
	p.y = axis{title: "% of the tokens computed", unit: chart.Fraction, min: 0, max: 1.04}
	p.x.title = "Time since the start, " + r.unit
	p.series = []series{r.series("", vermilion, func(b *report.SeriesPoint) *float64 {
		if b.ComputedTokens == 0 {
			return nil
		}
		share := float64(b.PrefillTokens) / float64(b.ComputedTokens)
		return &share
	})}
	prompts, all := 0.0, 0.0
	for _, b := range buckets {
		prompts, all = prompts+float64(b.PrefillTokens), all+float64(b.ComputedTokens)
	}
	title := "Nothing was computed"
	if all > 0 {
		title = fmt.Sprintf("Prompts are %s of all tokens that are computed", percent(prompts/all))
	}
	if len(p.series[0].points) == 0 {
		p.empty = "Nothing was recorded"
	}
	return &Figure{Title: title, width: pageWidth, height: 240, rows: []row{{1, []*panel{p}}}}
}
