package scenario

import (
	"fmt"
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// Clients says how long clients wait for their outputs, what they do then, and how fast they read.
type Clients struct {
	// Timeout is the time after which a client leaves if the response is not complete; null is never.
	Timeout *yamldoc.Duration `json:"timeout" range:"(0,)"`
	// TTFTTimeout is the same for the first token.
	TTFTTimeout *yamldoc.Duration `json:"ttft_timeout" range:"(0,)"`
	// Cancel lets users abandon a response before it is complete; null is never.
	Cancel *Cancel `json:"cancel"`
	// Retries is the maximum number of retries of a request.
	Retries int `json:"retries" range:"[0,1000]"`
	// RetryOn lists the events that cause a retry: timeout (of the first token or the response), busy (the server
	// rejects the request), connection (the connection fails).
	RetryOn []string `json:"retry_on" one:"timeout busy connection"`
	// Backoff is the wait before a retry.
	Backoff Backoff `json:"backoff"`
	// HonorRetryAfter makes clients wait as long as a busy server asks, up to a minute, instead of the backoff.
	HonorRetryAfter bool `json:"honor_retry_after"`
	// RetryBudget limits retries to this fraction of the requests: each request adds this much to a bucket that
	// starts empty and holds 10, and each retry takes 1; null is no limit.
	RetryBudget *float64 `json:"retry_budget" range:"(0,1]"`
	// CancelOnTimeout tells the server when a client leaves, so that it stops generating.
	CancelOnTimeout bool `json:"cancel_on_timeout"`
	// Reading is the reading speed of users, in tokens per second. The next request of a user or session waits until
	// the response is read; null is no wait.
	Reading *float64 `json:"reading" range:"(0,1000000]"`
}

// Cancel is how users lose interest.
type Cancel struct {
	// Probability that the user of a request does.
	Probability float64 `json:"probability" range:"[0,1]"`
	// After is how long that takes, from the first attempt on.
	After ThinkTime `json:"after"`
}

func (c *Cancel) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	d.Require(n, key, "want {probability: 0.05, after: 10s}", "probability", "after")
}

// Backoff is how long a client waits before it sends again: min(cap, base × factor^k) before retry k, from 0, spread
// by the jitter.
type Backoff struct {
	// Base is the wait before the first retry; 0 is none.
	Base yamldoc.Duration `json:"base"`
	// Cap is the longest wait.
	Cap yamldoc.Duration `json:"cap" range:"(0,)"`
	// Factor is by how much the wait grows from one retry to the next.
	Factor float64 `json:"factor" range:"[1,100]"`
	// Jitter spreads a wait d: none, over 0…d (full), d/2…d (equal), or ¾ d…d (openai).
	Jitter string `json:"jitter" one:"none full equal openai"`
}

func (b *Backoff) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	switch base := n.Get("base"); {
	case b.Base <= b.Cap:
	case n.Get("cap") == nil && base != nil:
		b.Cap = b.Base
	case n.Get("cap") != nil:
		d.Refuse(n.Get("cap"), yamldoc.Join(key, "cap"), fmt.Sprintf("base, %v, or more", b.Base))
	}
}

// defaultClients wait without a limit. Their backoff is that of OpenAI's.
func defaultClients() Clients {
	return Clients{
		RetryOn: []string{"timeout", "busy", "connection"}, HonorRetryAfter: true, CancelOnTimeout: true,
		Backoff: Backoff{
			Base: yamldoc.Duration(500 * clock.Millisecond), Cap: yamldoc.Duration(8 * clock.Second), Factor: 2,
			Jitter: "openai",
		},
	}
}

func (c *Clients) SetDefaults() { *c = defaultClients() }

func (c *Clients) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	if c.Timeout != nil && c.TTFTTimeout != nil && *c.TTFTTimeout > *c.Timeout {
		d.Refuse(n.Get("ttft_timeout"), yamldoc.Join(key, "ttft_timeout"),
			fmt.Sprintf("at most timeout, %v, which ends the wait for the first token too", *c.Timeout))
	}
	if c.Retries > 0 && len(c.RetryOn) == 0 {
		d.Fault(n.Get("retry_on").At, yamldoc.Join(key, "retry_on"),
			fmt.Sprintf("the list is empty, but retries is %d (want timeout, busy, connection or several)", c.Retries),
			"")
	}
}

// Spec is what the clients do, as the workload package takes it. The server asks for a wait of retryAfter.
func (c *Clients) spec(retryAfter *yamldoc.Duration) workload.ClientSpec {
	s := workload.ClientSpec{
		FirstTimeout: optional.Value(c.TTFTTimeout).Clock(), Timeout: optional.Value(c.Timeout).Clock(),
		Retries: limitInt32(c.Retries), RetryBudget: optional.Value(c.RetryBudget),
		Silent: !c.CancelOnTimeout, Reading: optional.Value(c.Reading),
	}
	if x := c.Cancel; x != nil {
		s.Cancel = x.Probability
		s.CancelAfter = workload.Delay{Distribution: x.After.Law, Mean: x.After.Mean.Clock(),
			CV: optional.Value(x.After.CV)}
	}
	if c.Retries == 0 {
		return s
	}
	if slices.Contains(c.RetryOn, "timeout") {
		s.RetryOn = s.RetryOn.With(workload.TimedOutFirst).With(workload.TimedOut)
	}
	if slices.Contains(c.RetryOn, "busy") {
		s.RetryOn = s.RetryOn.With(workload.RefusedBusy)
	}
	if slices.Contains(c.RetryOn, "connection") {
		s.RetryOn = s.RetryOn.With(workload.Disconnected)
	}
	if c.HonorRetryAfter {
		s.RetryAfter = optional.Value(retryAfter).Clock()
	}
	b := c.Backoff
	s.Backoff = workload.Backoff{Base: b.Base.Clock(), Cap: b.Cap.Clock(), Factor: b.Factor, Jitter: b.Jitter}
	return s
}
