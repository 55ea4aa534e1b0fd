package sim

// StepObserver is an Observer that wants every iteration in detail. The engine then steps singly
// for it, which changes no result but costs time; it is meant for timelines and tests.
type StepObserver interface {
	Observer
	// Step tells of one iteration when it has been scheduled. The slices are valid only
	// during the call.
	Step(s *Step)
}

// Step is one iteration, sequence by sequence.
type Step struct {
	Span *Span
	// Scheduled lists the sequences of the batch in running order.
	Scheduled []Share
	// Preempted lists the requests preempted since the previous step was scheduled, in that order.
	Preempted []int64
	// SwappedOut lists those of them whose KV went to host memory.
	SwappedOut []int64
	// FreeBlocks is the number of free KV blocks after scheduling.
	FreeBlocks int
}

// Share is one sequence's part of an iteration.
type Share struct {
	Request int64 // the request's ID
	Tokens  int32 // tokens computed
	Cached  int32 // tokens found in the prefix cache, on admission
	Loaded  int32 // tokens brought back from host memory, on admission
	// Drafts are those of the tokens computed that only may be right, and Produced the answer tokens that the sequence
	// has at the iteration's end: one, or more with speculative decoding.
	Drafts, Produced int32
	Emits            bool // the sequence produces a token at the iteration's end
	Ends             bool // its last token is among them
}
