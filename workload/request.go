package workload

import "clifftop/sim/clock"

// Request is one request of a client: what is asked for, and when.
type Request struct {
	// ID numbers the requests of a run from 0, in the order of the source.
	ID int64
	// Arrival is the instant at which the client sends the request.
	Arrival clock.Time
	// Client is how its client waits; nil means that it waits for ever, and that this is its only attempt.
	Client *Client
	// Content says which leading tokens of the prompt are shared with other requests;
	// nil means that the prompt is unique.
	Content *Content
	// Session numbers the conversation from 1; 0 is no session. User numbers the client of a
	// closed loop from 0.
	Session, User int32
	// InputTokens and OutputTokens are the lengths of prompt and answer, at least 1 each.
	InputTokens, OutputTokens int32
	// Turn counts the requests of the session from 0.
	Turn int32
	// Priority orders requests under a priority policy: lower goes first, as in vLLM.
	Priority int16
	// Class indexes the source's table of class names.
	Class uint16
}

// Content describes the leading tokens of a prompt as a chain of segments. Two prompts share what
// leads alike: a token's identity is the chain of segments up to it. Tokens beyond the last segment
// are unique to the request. A Content is immutable and may be shared by many requests.
type Content struct {
	Segments []Segment
}

// Segment is a run of tokens of one origin.
type Segment struct {
	// ID identifies the text that the tokens come from. Use [SegmentID] to make one from a name and
	// [AnswerID] for a previous answer of the session.
	ID uint64
	// Tokens is the length, at least 1.
	Tokens int32
}

// Source produces requests in the order of their arrival. Implementations are deterministic and
// for one goroutine.
type Source interface {
	// Peek returns the arrival of the next request. ok is false when there is none for now: a
	// closed loop may produce one after the next call of Done.
	Peek() (at clock.Time, ok bool)
	// Next returns the next request. It is called only after Peek said ok.
	Next() Request
	// Done tells how r ended for its client, once for each request. again says that the client will send it
	// once more: that attempt was not its last.
	Done(r *Request, end End) (again bool)
	// Err is the error that ended the source early, or nil.
	Err() error
}
