package simtest

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// headings are those of the columns of a table of steps. Of the optional ones those are printed that
// are not empty throughout.
var (
	headings = [...]string{"step", "begins", "ends", "scheduled", "sampled", "finished", "preempted", "hit", "free",
		"held", "swapped", "padded"}
	optional = [...]bool{1: true, 2: true, 6: true, 7: true, 8: true, 9: true, 10: true, 11: true}
)

// row is a row of a table of steps.
type row [len(headings)]string

// table prints the steps of the last run.
func (e *Env) table(times bool) string {
	k := newTableBuilder(e)
	var rows []row
	var first, last []int // numbers of the steps of a row
	for i := range e.recording.Steps {
		it := &e.recording.Iterations[i]
		r := k.row(i)
		if times {
			r[1], r[2] = milliseconds(it.Start), milliseconds(it.End)
		}
		if n := len(rows); n > 0 && rows[n-1] == r {
			last[n-1] = i + 1
			continue
		}
		rows, first, last = append(rows, r), append(first, i+1), append(last, i+1)
	}

	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	write := func(cells row) {
		var shown []string
		for c, cell := range cells {
			if !optional[c] || slices.ContainsFunc(rows, func(r row) bool { return r[c] != "" }) {
				shown = append(shown, orDash(cell))
			}
		}
		fmt.Fprintln(w, strings.Join(shown, "\t"))
	}
	write(headings)
	for i, r := range rows {
		r[0] = fmt.Sprint(first[i])
		if last[i] > first[i] {
			r[0] += fmt.Sprint("-", last[i])
		}
		write(r)
	}
	w.Flush()
	return out.String()
}

func orDash(cell string) string {
	if cell == "" {
		return "-"
	}
	return cell
}

func milliseconds(t clock.Time) string {
	return fmt.Sprint(float64(t) / float64(clock.Millisecond))
}

// tableBuilder follows the sequences through the steps of a run.
type tableBuilder struct {
	env      *Env
	records  []*event.Record // by request
	computed []int32         // computed tokens of running sequences, 0 of others, by request
	produced []int32         // tokens scheduled so far, by request
}

func newTableBuilder(e *Env) *tableBuilder {
	n := len(e.attempts)
	k := &tableBuilder{env: e, records: make([]*event.Record, n), computed: make([]int32, n),
		produced: make([]int32, n)}
	for i := range e.recording.Records {
		rec := &e.recording.Records[i]
		k.records[rec.Request.ID] = rec
	}
	return k
}

// row formats a step.
func (k *tableBuilder) row(i int) (r row) {
	e, s := k.env, &k.env.recording.Steps[i]
	begins := e.recording.Iterations[i].Start
	for id, rec := range k.records {
		if rec.Outcome >= event.TimedOut && rec.Released <= begins {
			k.computed[id] = 0
		}
	}
	var scheduled, sampled, finished, preempted, hit, held, swapped []string
	for _, id := range s.Preempted {
		if slices.Contains(s.SwappedOut, id) {
			swapped = append(swapped, "out:"+e.attempts[id])
		} else {
			preempted = append(preempted, e.attempts[id])
		}
		k.computed[id] = 0
	}
	for id, tokens := range k.computed {
		given := slices.ContainsFunc(s.Scheduled, func(sh event.Share) bool { return sh.Request == int64(id) })
		if tokens > 0 && !given {
			held = append(held, e.attempts[id])
		}
	}
	for _, sh := range s.Scheduled {
		id, name := sh.Request, e.attempts[sh.Request]
		scheduled = append(scheduled, fmt.Sprint(name, sh.Tokens))
		if sh.Cached > 0 {
			hit = append(hit, fmt.Sprint(name, sh.Cached))
		}
		if sh.Loaded > 0 {
			swapped = append(swapped, "in:"+name)
		}
		k.computed[id] += sh.Cached + sh.Loaded + sh.Tokens - max(0, sh.Drafts+1-max(1, sh.Produced))
	}
	r[8] = k.free(i)
	for _, sh := range s.Scheduled {
		id, name := sh.Request, e.attempts[sh.Request]
		if !sh.Emits {
			continue
		}
		if k.produced[id] += sh.Produced; sh.Produced > 1 {
			name += fmt.Sprint("×", sh.Produced)
		}
		if k.produced[id] > k.records[id].Tokens {
			sampled = append(sampled, "("+name+")")
			k.computed[id] = 0
			continue
		}
		sampled = append(sampled, name)
		if sh.Ends {
			finished = append(finished, e.attempts[id])
			k.computed[id] = 0
		}
	}
	for c, list := range [...][]string{3: scheduled, 4: sampled, 5: finished, 6: preempted, 7: hit, 9: held,
		10: swapped} {
		if c != 8 {
			r[c] = strings.Join(list, " ")
		}
	}
	r[11] = padding(&e.recording.Iterations[i])
	return r
}

func padding(it *Iteration) string {
	var list []string
	if it.PaddedRows > 0 {
		list = append(list, fmt.Sprint(it.PaddedRows, " rows"))
	}
	if it.PaddedTokens > 0 {
		list = append(list, fmt.Sprint(it.PaddedTokens, " tokens"))
	}
	return strings.Join(list, " ")
}

// free is the number of free blocks after a step and what finishes in it. It is unknown if sequences share blocks, or
// hold more than their computed tokens need, unless all finish.
func (k *tableBuilder) free(i int) string {
	cfg, s := &k.env.cfg, &k.env.recording.Steps[i]
	if cfg.NumGPUBlocks == 0 {
		return ""
	}
	freed, held := 0, 0
	all := true
	for id, tokens := range k.computed {
		blocks := (int(tokens) + int(cfg.BlockSize) - 1) / int(cfg.BlockSize)
		held += blocks
		if slices.ContainsFunc(s.Scheduled, func(sh event.Share) bool { return sh.Request == int64(id) && sh.Ends }) {
			freed += blocks
		} else if tokens > 0 {
			all = false
		}
	}
	switch {
	case cfg.AsyncScheduling || cfg.Stages > 1 || freed == 0:
		return fmt.Sprint(s.FreeBlocks)
	case all:
		return fmt.Sprint(cfg.UsableBlocks())
	case held != cfg.UsableBlocks()-s.FreeBlocks:
		return "?"
	}
	return fmt.Sprint(s.FreeBlocks + freed)
}

// ends prints how the requests of the last run ended.
func (e *Env) ends(args *arguments) string {
	if e.recording == nil {
		args.fault("nothing was run")
		return ""
	}
	k := newTableBuilder(e)
	var out strings.Builder
	for id, rec := range k.records {
		fmt.Fprintf(&out, "%s: %v", e.attempts[id], rec.Outcome)
		if rec.Refusal != event.NotRefused {
			fmt.Fprintf(&out, ", %v", rec.Refusal)
		}
		if rec.Ending == workload.TimedOutFirst {
			fmt.Fprint(&out, ", no first token in time")
		}
		if rec.Tokens > 0 {
			fmt.Fprintf(&out, ", %d tokens, first in step %d", rec.Tokens, e.stepEnding(rec.FirstToken))
		}
		if rec.LastToken != clock.Never {
			fmt.Fprintf(&out, ", last in step %d", e.stepEnding(rec.LastToken))
		}
		if rec.CachedTokens > 0 {
			fmt.Fprintf(&out, ", %d cached", rec.CachedTokens)
		}
		if rec.Preemptions > 0 {
			fmt.Fprintf(&out, ", preempted %d, recomputed %d", rec.Preemptions, rec.RecomputedTokens)
		}
		if rec.Again {
			fmt.Fprintf(&out, ", sent again")
		}
		fmt.Fprintln(&out)
	}
	for _, g := range e.recording.Gapped {
		fmt.Fprintf(&out, "gap of %s ms to step %d\n", milliseconds(clock.Time(g.Gap)), e.stepEnding(g.At))
	}
	return out.String()
}

func (e *Env) stepEnding(at clock.Time) int {
	return 1 + slices.IndexFunc(e.recording.Iterations, func(it Iteration) bool { return it.End == at })
}
