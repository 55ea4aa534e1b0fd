package sched

import (
	"cmp"
	"slices"
)

// future is a sequence whose end is known: left output tokens remain. When it ends it frees what it holds now; the
// remaining tokens are counted where they are taken.
type future struct{ left, holds int64 }

// lasts reports whether the pool suffices until all running sequences, and w, have their whole outputs, if w takes
// tokens now: at each end of a sequence, more tokens must be free than sequences run. It sorts the running batch.
func (a *pass) lasts(w Waiting, tokens int32) bool {
	a.futures = a.futures[:0]
	for s := a.v.First(); s != None; s = a.v.Next(s) {
		a.foresee(a.v.Progress(s))
	}
	a.foresee(w.Progress)
	slices.SortFunc(a.futures, func(x, y future) int {
		return cmp.Or(cmp.Compare(x.left, y.left), cmp.Compare(x.holds, y.holds))
	})
	free := int64(a.v.FreeBlocks())*int64(a.page) - int64(tokens)
	for i, f := range a.futures {
		rows := int64(len(a.futures) - i)
		if free-f.left*rows <= rows {
			return false
		}
		free += f.holds
	}
	return true
}

func (a *pass) foresee(p Progress) {
	if left := int64(p.MaxTokens - p.Generated); left > 0 {
		a.futures = append(a.futures, future{left, int64(p.Prompt + p.Generated)})
	}
}
