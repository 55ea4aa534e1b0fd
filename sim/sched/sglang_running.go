package sched

import "slices"

// sglangBatch is what SGLang's running_batch and last_batch hold in addition to the running sequences.
//
// A sequence that has ended frees its KV at once, but stays in running_batch, with its seat and with what is reserved
// for the rest of its output, until the next decode iteration filters it out. A prefill batch is tried before that. The
// flag batch_is_full is set when a request did not fit; until it is cleared, none is tried.
type sglangBatch struct {
	full Cause // why batch_is_full is set; NotBlocked if it is not

	filtered bool  // this iteration has filtered sequences out, so that the next one may decide differently
	ended    int   // sequences that have ended and are not filtered out
	reserved int64 // Σ min(max_new_tokens - output, clip) over them
	sessions []int32

	async    bool // overlap: the last iteration is in flight, and its tokens are not counted as output yet
	rows     int  // sequences to which the last iteration gives a token
	inFlight int  // rows, while the next iteration is composed

	prefill  bool    // the last iteration had prefill chunks, and is not merged yet
	whole    bool    // it had the decoding sequences too
	requests []int64 // its requests with prefill chunks
	size     int     // its requests
	gone     int     // requests of it that have ended
}

// Ended implements [EndObserver].
func (p *SGLang) Ended(r Progress) {
	b := &p.running
	if !b.prefill || b.whole {
		b.rows-- // its token will be dropped
	}
	if b.prefill && (b.whole || slices.Contains(b.requests, r.Request)) {
		b.gone++ // the merge leaves it out
		return
	}
	b.ended++
	b.reserved += int64(expected(r))
	b.sessions = append(b.sessions, r.Session)
}

func (b *sglangBatch) begin(v View) {
	b.filtered, b.inFlight = false, 0
	if b.async {
		b.inFlight = b.rows
	}
	b.rows = 0
	b.merge(v, v.NextPrefill(None))
}

// merge merges the last iteration, if it had prefill chunks, into the running batch. The flag is cleared if the last
// iteration has lost a request: one that has ended with its first token, or the one with an unfinished prompt. It is
// lost if the running batch was empty.
func (b *sglangBatch) merge(v View, unfinished Seq) {
	if !b.prefill {
		return
	}
	left := b.size - b.gone
	before := v.RunningLen() - left + b.ended
	if unfinished != None {
		left--
	}
	if left < b.size || left > 0 && before <= 0 {
		b.full = NotBlocked
	}
	b.prefill, b.whole, b.requests, b.size, b.gone = false, false, b.requests[:0], 0, 0
}

// launched notes the iteration that was composed: a prefill batch, which may have decoding sequences too.
func (b *sglangBatch) launched(v View, batch []Seq, decodes int) {
	b.prefill, b.whole, b.size = true, decodes > 0, len(batch)+decodes
	if b.rows = b.size; v.NextPrefill(None) != None {
		b.rows--
	}
	for _, s := range batch {
		b.requests = append(b.requests, v.Progress(s).Request)
	}
}

// filter removes the sequences that have ended, at a decode iteration. If there were any, it clears the flag.
func (b *sglangBatch) filter() {
	if b.filtered = b.ended > 0; b.filtered {
		b.full = NotBlocked
	}
	b.forget()
}

// forget removes the sequences that have ended.
func (b *sglangBatch) forget() { b.ended, b.reserved, b.sessions = 0, 0, b.sessions[:0] }
