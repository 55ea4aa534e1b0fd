package sched

import "fmt"

// Fair is an order that shares service among clients. The engine keeps a counter of the charges of each client. The
// next request is one of the client with the lowest counter among those that have requests in the queue; of equals, the
// client whose request is more urgent. Its [Order] ranks the requests of one client.
//
// A request that joins the queue when none of its client waits raises the client's counter to the lowest among the
// waiting clients, so that idle time gives no credit; if none waits, to the lowest among the clients with running
// sequences; if there are none, it stays. Requests that joined since the last composition do so in their order when the
// next one begins.
//
// A composition uses the counters before it, plus what it admits itself.
type Fair interface {
	Order
	// Client numbers the client whose request it is.
	Client(p *Progress) int64
	// Admission is charged when a request is admitted for the first time, Token for each output token when it is
	// scheduled. Neither is negative.
	Admission(p *Progress) int64
	Token() int64
}

// Client is what identifies the client of a request.
type Client uint8

// The ways to identify clients.
const (
	ByUser    Client = iota // the user of a closed loop
	ByClass                 // the class of the request
	BySession               // the conversation
)

// Of returns the number of the client.
func (c Client) Of(p *Progress) int64 {
	switch c {
	case ByClass:
		return int64(p.Class)
	case BySession:
		return int64(p.Session)
	}
	return int64(p.User)
}

var vtcRule = OrderRule{
	Name:   "vtc",
	Does:   "the client with the least service first, by virtual token counters",
	Source: "Sheng et al., Fairness in Serving Large Language Models, OSDI 2024",
	New:    func() OrderOptions { return new(VTC) },
}

// VTC is the virtual token counter of Sheng and others (OSDI 2024): waiting clients get the same service, in weighted
// tokens, within a bound that does not grow with time. The whole prompt is charged, cached or not; what is computed
// again after a preemption is not.
type VTC struct {
	Clients Client `json:"clients" one:"user class session" doc:"whose service is counted"`
	// PerPrompt and PerOutput are the weights of a prompt token and an output token; both 0 stands for 1 and 2.
	PerPrompt, PerOutput int64
	// Within ranks the requests of one client; nil is first come, first served.
	Within Order
}

var _ Fair = VTC{}

// Make implements [OrderOptions].
func (o *VTC) Make(uint64) Order { return *o }

// Idle implements [IdleOrder].
func (o *VTC) Idle(t OrderTraffic) string {
	if o.Clients != ByUser || t.Labelled || t.Users {
		return ""
	}
	return "without arrivals.users all requests belong to one user (set clients to class or session)"
}

// Validate reports weights that are negative or too large.
func (o VTC) Validate() error {
	if min(o.PerPrompt, o.PerOutput) < 0 || max(o.PerPrompt, o.PerOutput) > maxWeight {
		return fmt.Errorf("vtc: weights %d and %d are not allowed (want 0 to %d)", o.PerPrompt, o.PerOutput, maxWeight)
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
	if o.PerPrompt == 0 && o.PerOutput == 0 {
		return int64(p.Prompt)
	}
	return o.PerPrompt * int64(p.Prompt)
}

// Token implements [Fair].
func (o VTC) Token() int64 {
	if o.PerPrompt == 0 && o.PerOutput == 0 {
		return 2
	}
	return o.PerOutput
}
