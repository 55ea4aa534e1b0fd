package scenario

import (
	"cmp"
	"fmt"
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/workload"
)

// resolveClients makes the clients of the traffic, of all requests or of each class, and judges them. reading is their
// speed in tokens per second; 0 if it is unlimited or no single one.
func resolveClients(s *Scenario, l pools, d *Disaggregation, classes []Class, served bool) (
	specs []workload.ClientSpec, reading float64, found findings) {
	all := []*Clients{&s.Clients}
	key := func(int) string { return "clients" }
	if own := func(k Class) bool { return k.Clients != nil }; slices.ContainsFunc(classes, own) {
		all = nil
		for i := range classes {
			all = append(all, cmp.Or(classes[i].Clients, &s.Clients))
		}
		key = func(i int) string {
			if own(classes[i]) {
				return fmt.Sprintf("workload.classes.%d.clients", i)
			}
			return "clients"
		}
	}
	reading = optional.Value(all[0].Reading)
	limited := l.limited()
	failing := s.Lifecycle != nil || d.losesKV(served, s.Lifecycle) && d.KVLoadFailurePolicy == "fail"
	for i, c := range all {
		specs = append(specs, c.spec(s.Engine.RetryAfter))
		if optional.Value(c.Reading) != reading {
			reading = 0
		}
		found.add(c.judge(key(i), limited, failing))
		if fault := tooShort(s, &l[0].Config, key(i), c); fault != nil {
			return specs, reading, refuse(fault)
		}
	}
	found.add(judgeRetryAfter(optional.Value(s.Engine.RetryAfter).Clock(), all, limited))
	if err := workload.ValidateClients(specs...); err != nil {
		found.fault(s.fieldFaults(err)...)
	}
	return specs, reading, found
}

// tooShort rejects timeouts that are shorter than any response.
func tooShort(s *Scenario, engine *engine.Config, key string, c *Clients) *yamldoc.Fault {
	timer := engine.Timer
	if timer == nil {
		return nil
	}
	femtos, _, _ := timer.Span(&model.Batch{Decodes: 1, Context: 1, Emit: 1})
	step := clock.Duration(femtos / clock.FemtosPerPico)
	way := engine.NetworkIn + engine.Frontend + engine.NetworkOut
	for _, x := range []struct {
		key  string
		wait *yamldoc.Duration
	}{{"ttft_timeout", c.TTFTTimeout}, {"timeout", c.Timeout}} {
		if x.wait != nil && x.wait.Clock() < step+way {
			return s.Fault(yamldoc.Join(key, x.key),
				"%v is too short for any response: one iteration takes %v, network and front end %v (want more "+
					"than both)",
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

// judge warns of keys without effect, and of retries that keep an overload alive. limited says that requests may be
// refused, failing that connections may fail.
func (c *Clients) judge(key string, limited, failing bool) (found findings) {
	impatient := c.Timeout != nil || c.TTFTTimeout != nil
	found.unused(!c.CancelOnTimeout && !impatient && c.Cancel == nil, yamldoc.Join(key, "cancel_on_timeout"),
		"clients have no timeout")
	if c.Retries == 0 {
		d := defaultClients()
		why := yamldoc.Join(key, "retries") + " is 0"
		found.unused(!slices.Equal(c.RetryOn, d.RetryOn), yamldoc.Join(key, "retry_on"), why)
		found.unused(c.Backoff != d.Backoff, yamldoc.Join(key, "backoff"), why)
		found.unused(!c.HonorRetryAfter, yamldoc.Join(key, "honor_retry_after"), why)
		found.unused(c.RetryBudget != nil, yamldoc.Join(key, "retry_budget"), why)
		return found
	}
	onTimeout, onBusy, onConnection := slices.Contains(c.RetryOn, "timeout"), slices.Contains(c.RetryOn, "busy"),
		slices.Contains(c.RetryOn, "connection")
	found.unused(!(onTimeout && impatient) && !(onBusy && limited) && !(onConnection && failing),
		yamldoc.Join(key, "retries"),
		"no event triggers a retry (set a timeout with retry_on timeout, or a queue limit such as "+
			"engine.max_num_queued_reqs with retry_on busy)")
	if c.Backoff.Base == 0 {
		found.warn("metastable", "%s without backoff are sent at once, while the server is overloaded: the overload "+
			"can then outlast its cause (set backoff.base or retry_budget)", yamldoc.Join(key, "retries"))
	}
	return found
}

// judgeRetryAfter warns where no client obeys Retry-After.
func judgeRetryAfter(after clock.Duration, all []*Clients, limited bool) (found findings) {
	const key = "engine.retry_after"
	heeds := func(c *Clients) bool { return c.Retries > 0 && c.HonorRetryAfter }
	switch {
	case after == 0:
	case !limited:
		found.unused(true, key, "no queue limit rejects requests (set engine.max_num_queued_reqs or "+
			"max_num_queued_tokens)")
	case !slices.ContainsFunc(all, heeds):
		found.unused(true, key, "no client retries after a rejection and honors it")
	default:
		found.unused(after > workload.MaxRetryAfter, key,
			fmt.Sprintf("clients honor %v at most, and then use their own backoff",
				yamldoc.Duration(workload.MaxRetryAfter)))
	}
	return found
}

// leavesWork says that clients leave work behind, which the server goes on with: then even users who wait for their
// outputs can pile up more and more.
func leavesWork(c workload.ClientSpec) bool {
	return c.Silent && (c.FirstTimeout > 0 || c.Timeout > 0 || c.Cancel > 0)
}
