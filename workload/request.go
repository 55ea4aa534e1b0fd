package workload

import "clifftop/sim/clock"

// Request is one attempt of a client: its arrival, its lengths and the text of its prompt.
type Request struct {
	// ID numbers the requests of a run from 0, in order of arrival.
	ID int64
	// Arrival is the instant at which the client sends the request.
	Arrival clock.Time
	// Client holds timeouts and the attempt number; nil means no timeout and a single attempt.
	Client *Client
	// Content names the leading prompt tokens that other requests share; nil means that the prompt is unique.
	Content *Content
	// Session numbers the conversation from 1; 0 means none. User numbers the client of a closed loop from 0.
	Session, User int32
	// InputTokens and OutputTokens are the lengths of the prompt and the output in tokens, at least 1 each.
	InputTokens, OutputTokens int32
	// Turn counts the requests of the session from 0.
	Turn int32
	// Priority orders requests under a priority policy: the lower value goes first, as in vLLM.
	Priority int16
	// Class is an index into the source's list of class names.
	Class uint16
	// Replica numbers the replica, from 1, that the client addresses itself; 0 leaves the choice to the routers.
	Replica int32
	// Adapter numbers the LoRA adapter that the request uses, from 1; 0 means the base model. Requests with different
	// adapters share no tokens in prefix caches.
	Adapter int32
	// Images are the images of the prompt. Their tokens are among InputTokens.
	Images Images
	// Transfer says what happens to the KV of the prompt when the client sends a request to a prefill replica, and
	// another one for its output to a decode replica; nil means nothing.
	Transfer *Transfer
}

// Transfer is the part of a request in disaggregated prefill and decode, if its client or an external router addresses
// the replicas: see Replica in [Request]. It is immutable.
type Transfer struct {
	// Keeps makes the prefill replica keep the KV of the prompt after the last token, as do_remote_decode does in
	// vLLM.
	Keeps bool
	// From numbers the prefill replica, from 1, that keeps the KV of the request Of, which the decode replica loads, as
	// do_remote_prefill makes it in vLLM. 0 means none. Tokens whose KV is not there are computed.
	From int32
	Of   int64
}

// Content describes the leading tokens of a prompt as a chain of segments. Two prompts share their longest common
// chain of tokens from the start. Tokens after the last segment are unique to the request. A Content is immutable
// and may be shared by many requests.
type Content struct {
	Segments []Segment
}

// Segment is a run of tokens from one text.
type Segment struct {
	// ID identifies the text. [SegmentID] makes one from a name, [OutputID] from an earlier output of the session.
	ID uint64
	// Tokens is the length, at least 1.
	Tokens int32
}

// Source returns requests in order of arrival. Implementations are deterministic and not safe for concurrent use.
type Source interface {
	// Peek returns the arrival of the next request. ok is false if none is pending; a closed loop may have one
	// after the next call of Done.
	Peek() (at clock.Time, ok bool)
	// Next returns the next request. It may be called only after Peek returned ok.
	Next() Request
	// Done reports how r ended for its client. It is called once per request and returns true if the client will
	// send the request again.
	Done(r *Request, end End) (again bool)
	// Err returns the error that ended the source early, or nil.
	Err() error
}

// Adjustable is a [Source] whose end can be moved while it runs. All sources of [New] are.
type Adjustable interface {
	Source
	// Sent returns the number of requests so far.
	Sent() int64
	// EndAfter changes the number of requests after which the traffic ends, to Sent or more. The requests equal the
	// requests of a source that had this number from the start, unless a mean is exact over the whole run; see
	// [Spec.Extends].
	EndAfter(requests int64)
}
