package sched

import "fmt"

// Fair is an order that shares service among clients. The engine keeps a counter for each client: what it was
// charged for. The next request is one of the client with the lowest counter among those who
// have requests in the queue; of equals, the client whose request is more urgent. Its [Order] ranks the requests
// of one client.
//
// A request that joins the queue when none of its client waits lifts the client's counter to the lowest among the
// clients who wait, so that idle time gives no credit; if nobody waits, to the lowest among those who have running
// sequences; if there are none, it stays. Requests that joined since the last composition do so in their order, when
// the next one begins.
//
// The counters that a composition goes by are those before it, but for what it admits.
type Fair interface {
	Order
	// Client numbers the client whose request it is.
	Client(p *Progress) int64
	// Admission is charged when a request is admitted for the first time, Token for each token of the answer when
	// it is scheduled. Neither is negative.
	Admission(p *Progress) int64
	Token() int64
}

// Client says whom a request is counted for.
type Client uint8

// The ways to tell clients apart.
const (
	ByUser    Client = iota // the user of a closed loop
	ByClass                 // the class of the request
	BySession               // the conversation
)

// Of is the number of the client.
func (c Client) Of(p *Progress) int64 {
	switch c {
	case ByClass:
		return int64(p.Class)
	case BySession:
		return int64(p.Session)
	}
	return int64(p.User)
}

// VTC is the virtual token counter of Sheng and others (OSDI 2024): clients who wait get the same service, in weighted
// tokens, within a bound that does not grow with time. The whole prompt is charged, whatever the cache holds of it, and
// what a preemption makes the engine compute again is not.
type VTC struct {
	Clients Client
	// PerPrompt and PerAnswer weigh a token of the prompt and one of the answer; both 0 stands for 1 and 2.
	PerPrompt, PerAnswer int64
	// Within ranks the requests of one client; nil is first come, first served.
	Within Order
}

var _ Fair = VTC{}

// Validate reports weights that are negative or too large.
func (o VTC) Validate() error {
	if min(o.PerPrompt, o.PerAnswer) < 0 || max(o.PerPrompt, o.PerAnswer) > maxWeight {
		return fmt.Errorf("vtc: weights %d and %d are not allowed (want 0 to %d)", o.PerPrompt, o.PerAnswer, maxWeight)
	}
	return nil
}

// Key implements [Order].
func (o VTC) Key(w *Waiting) int64 {
	if o.Within == nil {
		return 0
	}
	return o.Within.Key(w)
}

// Client implements [Fair].
func (o VTC) Client(p *Progress) int64 { return o.Clients.Of(p) }

// Admission implements [Fair].
func (o VTC) Admission(p *Progress) int64 {
	if o.PerPrompt == 0 && o.PerAnswer == 0 {
		return int64(p.Prompt)
	}
	return o.PerPrompt * int64(p.Prompt)
}

// Token implements [Fair].
func (o VTC) Token() int64 {
	if o.PerPrompt == 0 && o.PerAnswer == 0 {
		return 2
	}
	return o.PerAnswer
}
