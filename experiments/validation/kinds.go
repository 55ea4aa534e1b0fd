package validation

import "fmt"

// Kinds of runs other than runs of a plain engine.
const (
	kindPools    = "prefill and decode apart"
	kindDrafts   = "multi-token prediction"
	kindSessions = "sessions of several turns"
)

// kind returns the kind of a run; empty for a plain engine.
func (r *Row) kind() string {
	n, _, err := r.drafts(0)
	switch {
	case r.multiTurn():
		return kindSessions
	case r.Pools():
		return kindPools
	case n > 0 && err == nil:
		return kindDrafts
	}
	return ""
}

// layoutOf is how pools divide their GPUs: of each pool the workers, and the parallelism of one.
func layoutOf(r *Row) string {
	if !r.Pools() {
		return ""
	}
	prefill, err := r.Prefill.parallel("prefill")
	if err != nil {
		return ""
	}
	decode, err := r.Decode.parallel("decode")
	if err != nil {
		return ""
	}
	of := func(p parallelism) string {
		return fmt.Sprintf("%d x (TP %d, DP %d, EP %d)", p.workers, p.tp, p.dp, p.ep)
	}
	return of(prefill) + " + " + of(decode)
}

// doubt returns the reason to exclude a measurement from its kind; empty if there is none.
func (r *Row) doubt() string {
	switch {
	case r.Quality == "suspect" || r.Quality == "server only":
		return r.Quality
	case r.stalled():
		return "stalled"
	}
	return ""
}

// stalledFactor is how much longer requests wait than the engine's queue explains before a run counts as stalled.
const stalledFactor = 2

// stalled reports whether requests waited for their first token though the engine had none waiting: by Little's law the
// mean number of waiting requests is their rate times the mean TTFT.
func (r *Row) stalled() bool {
	o, seconds := &r.Offload, or(r.DurationS, 0)
	if !r.multiTurn() || o.WaitingMean == nil || r.TTFT.Mean == nil || o.Completed == nil || seconds <= 0 {
		return false
	}
	waiting := float64(*o.Completed) / seconds * *r.TTFT.Mean / 1000
	return waiting > stalledFactor*(*o.WaitingMean+0.5)
}
