package scenario

import (
	"cmp"
	"fmt"
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
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

// clients makes the clients of the traffic, and judges them.
func (u trafficResolver) clients() error {
	s := u.Scenario
	all := []*Clients{&s.Clients}
	key := func(int) string { return "clients" }
	if own := func(k Class) bool { return k.Clients != nil }; slices.ContainsFunc(s.Workload.Classes, own) {
		all = nil
		for i := range s.Workload.Classes {
			all = append(all, cmp.Or(s.Workload.Classes[i].Clients, &s.Clients))
		}
		key = func(i int) string {
			if own(s.Workload.Classes[i]) {
				return fmt.Sprintf("workload.classes.%d.clients", i)
			}
			return "clients"
		}
	}
	u.Traffic.clients = nil
	u.Report.Reading = optional.Value(all[0].Reading)
	for i, c := range all {
		u.Traffic.clients = append(u.Traffic.clients, c.spec(s.Engine.RetryAfter))
		if optional.Value(c.Reading) != u.Report.Reading {
			u.Report.Reading = 0 // no single speed holds for all classes
		}
		u.judgeClients(key(i), c)
		if err := u.tooShort(key(i), c); err != nil {
			return err
		}
	}
	u.judgeRetryAfter(all)
	if err := workload.ValidateClients(u.Traffic.clients...); err != nil {
		return s.fieldFaults(err)
	}
	return nil
}

// tooShort rejects timeouts that are shorter than any response.
func (u trafficResolver) tooShort(key string, c *Clients) error {
	timer, s := u.Config.Timer, u.Scenario
	if timer == nil {
		return nil // reported before
	}
	femtos, _, _ := timer.Span(&model.Batch{Decodes: 1, Context: 1, Emit: 1})
	step := clock.Duration(femtos / clock.FemtosPerPico)
	way := u.Config.NetworkIn + u.Config.Frontend + u.Config.NetworkOut
	for _, x := range []struct {
		key  string
		wait *yamldoc.Duration
	}{{"ttft_timeout", c.TTFTTimeout}, {"timeout", c.Timeout}} {
		if x.wait != nil && x.wait.Clock() < step+way {
			return s.Fault(yamldoc.Join(key, x.key),
				"%v is too short for any response: one iteration takes %v, network and front end %v (want more than both)",
				*x.wait, rounded(step), rounded(way))
		}
	}
	return nil
}

// rounded is a duration for messages, to the microsecond.
func rounded(d clock.Duration) yamldoc.Duration {
	if d > clock.Microsecond {
		d = (d + clock.Microsecond/2) / clock.Microsecond * clock.Microsecond
	}
	return yamldoc.Duration(d)
}

// limited reports whether a limit of the queue may refuse requests.
func (u *Setup) limited() bool {
	return slices.ContainsFunc(u.Pools, func(p PoolSetup) bool {
		e := &p.Setup.Scenario.Engine
		return e.MaxNumQueuedReqs != nil || e.MaxNumQueuedTokens != nil
	})
}

// unused warns of a key without effect, if it was changed.
func (u *Setup) unused(changed bool, key, why string) {
	if changed {
		u.Warn("unused", "%s has no effect: %s", key, why)
	}
}

// judgeClients warns of keys without effect, and of retries that keep an overload alive.
func (u trafficResolver) judgeClients(key string, c *Clients) {
	impatient := c.Timeout != nil || c.TTFTTimeout != nil
	u.unused(!c.CancelOnTimeout && !impatient && c.Cancel == nil, yamldoc.Join(key, "cancel_on_timeout"),
		"clients have no timeout")
	if c.Retries == 0 {
		d := defaultClients()
		why := yamldoc.Join(key, "retries") + " is 0"
		u.unused(!slices.Equal(c.RetryOn, d.RetryOn), yamldoc.Join(key, "retry_on"), why)
		u.unused(c.Backoff != d.Backoff, yamldoc.Join(key, "backoff"), why)
		u.unused(!c.HonorRetryAfter, yamldoc.Join(key, "honor_retry_after"), why)
		u.unused(c.RetryBudget != nil, yamldoc.Join(key, "retry_budget"), why)
		return
	}
	onTimeout, onBusy, onConnection := slices.Contains(c.RetryOn, "timeout"), slices.Contains(c.RetryOn, "busy"),
		slices.Contains(c.RetryOn, "connection")
	failing := u.Scenario.Lifecycle != nil || u.losesKV() && u.Scenario.Disaggregation.KVLoadFailurePolicy == "fail"
	u.unused(!(onTimeout && impatient) && !(onBusy && u.limited()) && !(onConnection && failing),
		yamldoc.Join(key, "retries"),
		"no event triggers a retry (set a timeout with retry_on timeout, or a queue limit such as "+
			"engine.max_num_queued_reqs with retry_on busy)")
	if c.Backoff.Base == 0 {
		u.Warn("metastable", "%s without backoff are sent at once, while the server is overloaded: the overload can then "+
			"outlast its cause (set backoff.base or retry_budget)", yamldoc.Join(key, "retries"))
	}
}

// judgeRetryAfter warns where no client obeys Retry-After.
func (u trafficResolver) judgeRetryAfter(all []*Clients) {
	const key = "engine.retry_after"
	after := optional.Value(u.Scenario.Engine.RetryAfter).Clock()
	heeds := func(c *Clients) bool { return c.Retries > 0 && c.HonorRetryAfter }
	switch {
	case after == 0:
	case !u.limited():
		u.unused(true, key, "no queue limit rejects requests (set engine.max_num_queued_reqs or max_num_queued_tokens)")
	case !slices.ContainsFunc(all, heeds):
		u.unused(true, key, "no client retries after a rejection and honors it")
	default:
		u.unused(after > workload.MaxRetryAfter, key,
			fmt.Sprintf("clients honor %v at most, and then use their own backoff",
				yamldoc.Duration(workload.MaxRetryAfter)))
	}
}

// leavesWork says that clients leave work behind, which the server goes on with: then even users who wait for their
// outputs can pile up more and more.
func leavesWork(c workload.ClientSpec) bool {
	return c.Silent && (c.FirstTimeout > 0 || c.Timeout > 0 || c.Cancel > 0)
}
