package simtest

import (
	"fmt"

	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// ChunkRecorder is a [Recorder] that also gets the chunks of output.
type ChunkRecorder struct {
	Recorder
	chunks map[int64][]event.Chunk // by request; only the last report of a chunk
}

var _ event.ChunkObserver = (*ChunkRecorder)(nil)

// Chunk implements [event.ChunkObserver].
func (r *ChunkRecorder) Chunk(c event.Chunk) {
	if r.chunks == nil {
		r.chunks = make(map[int64][]event.Chunk)
	}
	list := r.chunks[c.Request]
	if n := len(list); n > 0 && list[n-1].At == c.At {
		list = list[:n-1]
	}
	r.chunks[c.Request] = append(list, c)
}

// Check reports a request whose chunks are not those of its record: a client that stays gets every token once, the
// first and the last chunk at the instants of the record, and the chunks in order.
func (r *ChunkRecorder) Check() error {
	for k := range r.Records {
		rec := &r.Records[k]
		list := r.chunks[rec.Request.ID]
		for i, c := range list {
			if i > 0 && (c.At < list[i-1].At || c.Tokens < list[i-1].Tokens) {
				return fmt.Errorf("request %d: chunk %+v after %+v", rec.Request.ID, c, list[i-1])
			}
		}
		if rec.Outcome != event.Completed {
			continue
		}
		if len(list) == 0 {
			return fmt.Errorf("request %d: completed without a chunk", rec.Request.ID)
		}
		first, last := list[0], list[len(list)-1]
		if first.At != rec.ClientFirst || last.At != rec.ClientLast || last.Tokens != rec.Tokens {
			return fmt.Errorf("request %d: chunks from %v to %v with %d tokens, but its record has %v to %v with %d",
				rec.Request.ID, first.At, last.At, last.Tokens, rec.ClientFirst, rec.ClientLast, rec.Tokens)
		}
	}
	return nil
}

// ChunksOf returns the instants at which the client of a request gets its chunks.
func (r *ChunkRecorder) ChunksOf(request int64) (at []clock.Time) {
	for _, c := range r.chunks[request] {
		at = append(at, c.At)
	}
	return at
}
