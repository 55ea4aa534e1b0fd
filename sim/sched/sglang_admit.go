package sched

import "slices"

// pass is one attempt of SGLang's scheduler to build a prefill batch.
//
// The estimate: of the free KV, the ratio's fraction of what every running request may still produce is reserved. A
// candidate fits if the rest has more room than its uncached tokens, its whole allowance of output tokens and a page;
// once admitted it counts with that, without the ratio.
type pass struct {
	*SGLang
	v          View
	reserved   float64 // reserved tokens beyond those that have blocks
	chunk      int32   // the rest of the chunk; without chunking the maximum
	input      int32   // the rest of max_prefill_tokens
	batch      []Seq   // sequences that were given tokens
	seats      int     // the most requests that the batch may have, the unfinished one included
	unfinished Seq     // the request whose prompt is computed in part
	evicted    []int64 // requests retracted by priority
	futures    []future
}

func (p *SGLang) newPass(v View) *pass {
	a := &p.attempt
	*a = pass{
		SGLang: p, v: v, unfinished: v.NextPrefill(None), input: p.MaxPrefillTokens,
		batch: a.batch[:0], evicted: a.evicted[:0], futures: a.futures[:0],
	}
	running := v.Remaining(clipMaxNewTokens) + p.running.reserved + int64(p.running.inFlight)
	a.seats = v.Seats() - p.running.ended
	if a.unfinished != None {
		running -= int64(expected(v.Progress(a.unfinished)))
		// It is not in running_batch, but it is in the batch and has a slot of the pool of requests.
		a.seats = min(a.seats+1, v.Seats())
	}
	a.reserved = float64(p.ratio.at(v.DecodeSteps()) * float64(running))
	a.chunk = 1<<31 - 1
	if p.ChunkedPrefillSize > 0 {
		a.chunk = p.ChunkedPrefillSize
	}
	if p.MixedChunk {
		rows := int32(v.Decoding() + p.running.ended)
		a.chunk -= rows
		a.input -= rows
		a.reserved += float64(rows) - float64(p.mixed)*float64(p.page) // a token each, not the pages that they begin
	}
	return a
}

// expected returns the number of output tokens that the estimate expects of a request.
func expected(p Progress) int32 { return min(max(p.MaxTokens-p.Generated, 0), clipMaxNewTokens) }

// room returns the number of tokens that the estimate leaves.
func (a *pass) room() float64 {
	return float64(a.v.FreeBlocks())*float64(a.page) - a.reserved
}

// whole returns tokens rounded down to a multiple of the page size.
func (a *pass) whole(tokens int32) int32 { return tokens / a.page * a.page }

// charge reserves the tokens that a request of the batch needs besides its blocks; output is 0 for a cut prompt.
func (a *pass) charge(s Seq, tokens, output int32) {
	pages := (tokens + a.page - 1) / a.page * a.page
	a.reserved += float64(output + a.page)
	a.chunk -= pages
	a.input -= pages
	a.batch = append(a.batch, s)
}

// goOn gives the unfinished request its next chunk as long as there are free blocks, regardless of the estimate.
func (a *pass) goOn() {
	v, s := a.v, a.unfinished
	missing := v.Missing(s)
	n := min(missing, a.chunk, v.Budget())
	if left := max(a.room(), 0); left < float64(n) {
		if part := a.whole(int32(left)); part > 0 {
			n = part
		}
	}
	if n < missing && !a.MixedChunk {
		n = a.whole(n)
	}
	if n > 0 && !v.Grow(s, n) {
		for n = a.whole(min(n, int32(v.FreeBlocks())*a.page)); n > 0 && !v.Grow(s, n); {
			n -= a.page
		}
	}
	if n <= 0 {
		return
	}
	v.Give(s, n)
	if n < missing {
		a.charge(s, n, 0)
		return
	}
	a.charge(s, n, min(v.Progress(s).MaxTokens, clipMaxNewTokens))
	a.unfinished = None
}

// admit tries the waiting requests in order until one does not fit, and returns the cause, or NotBlocked.
func (a *pass) admit() Cause {
	a.order.begin(a)
	full, admitted := &a.running.full, false
	for {
		if admitted {
			if why := a.spent(); why != NotBlocked {
				return a.refuse(why)
			}
		}
		i, next, ok := a.order.next(a.v)
		switch {
		case !ok:
			return NotBlocked
		case slices.Contains(a.evicted, next.Request):
			return HeldByPolicy
		}
		if len(a.batch) >= a.seats && *full == NotBlocked {
			*full = LacksSeats
		}
		if *full != NotBlocked && !(a.PreemptByPriority && a.preemptFor(next)) {
			return *full
		}
		w, _ := a.v.Waiting(i)
		why := a.add(i, w)
		a.note(w, why)
		if why != NotBlocked {
			return a.refuse(why)
		}
		admitted = true
	}
}

// refuse sets the flag of the batch if it lacks KV, and returns the cause.
func (a *pass) refuse(why Cause) Cause {
	if why == LacksKV {
		a.running.full = LacksKV
	}
	return why
}

// spent returns what the batch has used up, or NotBlocked.
func (a *pass) spent() Cause {
	switch {
	case a.room() <= 0 || a.v.FreeBlocks() == 0:
		return LacksKV
	case a.input <= 0 || a.chunk <= 0:
		return LacksBudget
	}
	return NotBlocked
}

// add admits the i-th request of the queue, or returns the cause why not.
func (a *pass) add(i int, w Waiting) Cause {
	v := a.v
	n := w.Known - w.Cached
	locked := w.Cached - int32(w.Held)*a.page // what its prefix takes from the evictable tokens
	pages := (n + a.page - 1) / a.page * a.page
	fits := float64(n+expected(w.Progress)+a.page) < a.room()-float64(locked)
	if a.lookAhead {
		fits = float64(pages) <= a.room() && a.lasts(w, pages)
	}
	if !fits && v.RunningLen() > 0 {
		return LacksKV
	}
	output := min(w.MaxTokens, clipMaxNewTokens)
	switch limit := min(a.chunk, v.Budget()); {
	case a.ChunkedPrefillSize == 0 && (len(a.batch) > 0 && pages >= a.input || n > v.Budget()):
		return LacksBudget
	case a.ChunkedPrefillSize > 0 && pages > limit:
		if n = a.whole(limit); n == 0 || a.unfinished != None {
			return LacksBudget
		}
		output = 0
	}
	if v.BlocksFor(w.Cached+n)-w.Held > v.FreeBlocks() {
		return LacksKV
	}
	s := v.Admit(i, n)
	a.order.admitted()
	if w.Cached+n < w.Known {
		a.unfinished = s
	}
	a.charge(s, n, output)
	return NotBlocked
}
