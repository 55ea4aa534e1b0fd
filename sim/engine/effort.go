package engine

// Effort counts the compositions of an engine.
type Effort struct {
	Compositions int64 // iterations composed; the repetitions of a span do not count
	Plain        int64 // those of them that the plain cycle made
	// General counts the others by the reason.
	General [Reasons]int64
	// First is the reason of the first of them.
	First Reason
	// Forgotten is how often the blocks of an engine with prefix caching lost their names again.
	Forgotten int64
	// Ends counts the compositions by why they are not repeated further.
	Ends [SpanEnds]int64
}

// Reason is why a composition is not plain.
type Reason uint8

// The reasons.
const (
	IsPlain       Reason = iota // no reason
	HasPart                     // the configuration has an optional part, or an observer wants single iterations
	NamesBlocks                 // blocks are found by their tokens
	OutOfStep                   // a decoding sequence got no token in the last iteration
	WasPreempted                // a preempted request waits or is computed again, or a request has left the queue
	PrefillBehind               // a decoding sequence was admitted after one in prefill
	LacksBlocks                 // the pool has too few free blocks for the running sequences
	Reasons                     // the number of reasons
)

// String returns the reason in plain words.
func (r Reason) String() string {
	return [...]string{"none", "an optional part", "shared prefixes", "decodes out of step", "a preempted request",
		"a decode behind a prefill", "too few free KV blocks"}[r]
}

// general counts a composition that is not plain for a reason.
func (f *Effort) general(why Reason) {
	f.Compositions++
	f.General[why]++
	if f.First == IsPlain {
		f.First = why
	}
}

// Add adds the counts of another engine.
func (f *Effort) Add(o *Effort) {
	f.Compositions += o.Compositions
	f.Plain += o.Plain
	for i := range f.General {
		f.General[i] += o.General[i]
	}
	if f.First == IsPlain {
		f.First = o.First
	}
	f.Forgotten += o.Forgotten
	for i := range f.Ends {
		f.Ends[i] += o.Ends[i]
	}
}

// Effort returns the counts so far.
func (e *Engine) Effort() *Effort { return &e.effort }
