package collect

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// totals are sums over the whole run.
type totals struct {
	attemptCounts
	prompts
	residence
	records          recordSums
	successful       int64         // output tokens of completed requests
	completedPrompts int64         // their prompt tokens
	completedInput   int64         // of these, the computed ones
	goodTokens       int64         // output tokens of requests within the SLO
	goodWork         int64         // tokens computed for them, at least
	goodTime         clock.Uint128 // femtoseconds of the GPU for them
	wasted           int64         // output tokens of attempts that did not complete
	dropped          int64         // output tokens that the replica itself discarded
	busy             clock.Uint128 // femtoseconds of iterations
	further          clock.Uint128 // those femtoseconds times the pipeline stages beyond the first
	preemptions      int64
	undone           int64         // attempts that were admitted and did not complete
	arrivals         clock.Uint128 // sum of instants
}

// recordSums are sums over all attempts, by their records.
type recordSums struct {
	tokens, recomputed int64
	gpu                cancelledTime
}

// add adds an attempt.
func (t *recordSums) add(rec *event.Record) {
	t.tokens += int64(rec.Tokens)
	t.recomputed += int64(rec.RecomputedTokens)
	t.gpu.add(&rec.GPU)
}

// residence holds sums of the times that attempts were in the system and in its parts, in picoseconds.
type residence struct {
	endedArrivals                            clock.Uint128 // instants
	system, engine, queue, running, decoding clock.Uint128
	handed                                   int64 // attempts whose prompt another replica computed
}

// stayed adds an attempt.
func (t *residence) stayed(rec *event.Record) {
	arrival := rec.Request.Arrival
	add(&t.endedArrivals, int64(arrival))
	add(&t.system, int64(ended(rec)-arrival))
	if rec.Queued == clock.Never || rec.Released == clock.Never {
		return
	}
	add(&t.engine, int64(rec.Released-rec.Queued)-int64(rec.Between))
	if rec.HandedOver {
		t.handed++
	}
	admitted := min(rec.Scheduled, rec.Released)
	add(&t.queue, int64(admitted-rec.Queued))
	add(&t.running, int64(rec.Released-admitted))
	if rec.FirstToken < rec.Released {
		add(&t.decoding, int64(rec.Released-rec.FirstToken))
	}
}
