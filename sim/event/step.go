package event

// Step is one iteration, sequence by sequence.
type Step struct {
	Span *Span
	// Scheduled lists the sequences of the batch in running order.
	Scheduled []Share
	// Preempted lists the requests preempted since the previous step was scheduled, in that order.
	Preempted []int64
	// SwappedOut lists those of them whose KV went to host memory.
	SwappedOut []int64
	// FreeBlocks is the number of free KV blocks after scheduling, Running and Waiting the lengths of the batch and the
	// queue. A request that was preempted with its last token in flight waits until that token has been processed.
	FreeBlocks, Running, Waiting int
}

// Share is the part of one sequence in an iteration.
type Share struct {
	Request int64 // the request's ID
	Tokens  int32 // tokens computed
	Cached  int32 // tokens found in the prefix cache, on admission
	Loaded  int32 // tokens loaded from host memory or a tier, on admission
	// Drafts are the computed tokens that are speculative, and Produced the output tokens that the sequence has at the
	// end of the iteration: one, or more with speculative decoding.
	Drafts, Produced int32
	Emits            bool // the sequence produces a token at the end of the iteration
	Ends             bool // its last token is among them
}
