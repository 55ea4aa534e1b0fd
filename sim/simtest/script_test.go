package simtest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"clifftop/sim/sched"
)

// script is a policy for scenario files that does what they say: config policy=script do=(+A16, all +B20, …), one
// item for each composition, with these words:
//
//	all, first    decodes all, first of all
//	A16           gives A 16 tokens
//	+A16          admits A with 16 tokens; +A16/64 reserves room for 64 then, +A16!64 promises it
//	-A, _A, ~A    preempts A to the head or the tail of the queue, swaps it out
//	pad2:100      pads with 2 rows of 100 tokens together; chunks64 pads chunks to 64 tokens
//
// Requests are called A, B, … in their order. When the script is over it decodes first, then goes on with
// prefills and admits from the head of the queue, all as far as they fit.
var script = Policy{"script", func(k *Knobs) sched.Scheduler {
	return &scripted{steps: knob(k, "do", func(a *arguments) []string { return a.values("do") }, nil)}
}}

type scripted struct{ steps []string }

func (p *scripted) Validate(l sched.Limits) error { return nil }
func (p *scripted) Repeats(v sched.View) int      { return 1 }

func (p *scripted) Schedule(v sched.View) {
	if len(p.steps) == 0 {
		p.goOn(v)
		return
	}
	words := strings.Fields(p.steps[0])
	p.steps = p.steps[1:]
	for _, w := range words {
		p.do(v, w)
	}
}

var word = regexp.MustCompile(`^([-_~+]?)([A-Z])(\d*)([/!]?)(\d*)$|^(all|first)$|^pad(\d+):(\d+)$|^chunks(\d+)$`)

func (p *scripted) do(v sched.View, text string) {
	m := word.FindStringSubmatch(text)
	if m == nil {
		panic(fmt.Sprintf("script: %q is no word", text))
	}
	number := func(i int) int32 {
		n, _ := strconv.Atoi(m[i])
		return int32(n)
	}
	id := int64(0)
	if m[2] != "" {
		id = int64(m[2][0] - 'A')
	}
	switch {
	case m[6] == "all":
		v.DecodeAll()
	case m[6] == "first":
		v.DecodeFirst()
	case m[7] != "":
		v.Pad(int(number(7)), int64(number(8)))
	case m[9] != "":
		v.PadChunks(number(9))
	case m[1] == "+":
		s := p.admit(v, id, number(3))
		if m[4] == "/" {
			v.Reserve(s, number(5))
		} else if m[4] == "!" {
			v.Book(s, number(5))
		}
	case m[1] == "-":
		v.Preempt(p.running(v, id))
	case m[1] == "_":
		v.PreemptToTail(p.running(v, id))
	case m[1] == "~":
		v.SwapOut(p.running(v, id))
	default:
		if s := p.running(v, id); v.Grow(s, number(3)) {
			v.Give(s, number(3))
		}
	}
}

func (p *scripted) running(v sched.View, id int64) sched.Seq {
	for s := v.First(); s != sched.None; s = v.Next(s) {
		if v.Progress(s).Request == id {
			return s
		}
	}
	panic(fmt.Sprintf("script: request %c does not run", 'A'+rune(id)))
}

func (p *scripted) admit(v sched.View, id int64, n int32) sched.Seq {
	for i := 0; ; i++ {
		w, ok := v.Waiting(i)
		if !ok {
			panic(fmt.Sprintf("script: request %c does not wait", 'A'+rune(id)))
		}
		if w.Request == id {
			return v.Admit(i, n)
		}
	}
}

// goOn schedules what fits.
func (p *scripted) goOn(v sched.View) {
	v.DecodeFirst()
	for s := v.NextPrefill(sched.None); s != sched.None; s = v.NextPrefill(s) {
		if n := min(v.Missing(s), v.Budget()); n > 0 && v.Grow(s, n) {
			v.Give(s, n)
		}
	}
	for {
		w, ok := v.Waiting(0)
		n := min(w.Known-w.Cached-w.Computed, v.Budget())
		if !ok || n == 0 || v.Seats() == 0 || v.BlocksFor(w.Cached+w.Computed+n)-w.Held > v.LargestFree() {
			return
		}
		v.Admit(0, n)
	}
}
