package event

import "clifftop/sim/clock"

// Chunk is output that a front end sends at once.
//
// It is known before it is sent. If the replica fails or the client leaves in between, the client does not get it: the
// [Record] of the request has the number of tokens that were delivered, and when.
type Chunk struct {
	Request int64 // the ID of the request
	Replica int
	// At is when the client gets the chunk.
	At clock.Time
	// Tokens is the number of output tokens of the request up to the end of this chunk.
	Tokens int32
}
