package gate

import (
	"math"
	"sync"

	"pgregory.net/rapid"
)

var routerNames = sync.OnceValue(func() []string { return names("routers") })

// fleets are laws about replicas, pools, routers and their lifecycle.
var fleets = []relation{
	{"one replica is the same behind every router", func(t *rapid.T) {
		s := plain(t)
		a := summary(t, s)
		for _, name := range routerNames() {
			b := valid(t, s.with("deployment.router", name))
			if b.get("deployment.router") == name {
				same(t, a, summary(t, b), "warnings")
			}
		}
	}},
	{"one pool is a fleet", func(t *rapid.T) {
		s := plain(t)
		n := drawer{t}.whole(1, 4)
		pair(t, s.with("deployment.replicas", n), s.with("pools", []any{law{"name": "a", "replicas": n}}), "pool",
			"pools", "replicas", "warnings")
	}},
	{"two equal pools are one", func(t *rapid.T) {
		s := plain(t)
		pool := func(name string) law { return law{"name": name, "replicas": 2} }
		served(t, s.with("deployment.replicas", 4), s.with("pools", []any{pool("a"), pool("b")}))
	}},
	{"two replicas in turn carry twice the constant rate", func(t *rapid.T) {
		d := drawer{t}
		rate := d.whole(1, 10)
		one := doc{"workload": law{"input": d.whole(5, 900), "output": d.whole(2, 90)}, "lifecycle": law{}}
		arrivals := func(rate int) law { return law{"process": "constant", "rate": rate} }
		a := summary(t, one.with("workload.arrivals", arrivals(rate), "run.requests", 50))
		b := summary(t, one.with("workload.arrivals", arrivals(2*rate), "run.requests", 100,
			"deployment", law{"replicas": 2, "router": "round-robin"}))
		for _, path := range []string{"latency_ms.ttft.mean", "latency_ms.tpot.mean", "latency_ms.e2e.max"} {
			if x, y := at(t, a, path), at(t, b, path); math.Abs(x-y) > 1e-6*x {
				t.Fatalf("%s is %v with one replica and %v with two", path, x, y)
			}
		}
	}},
	{"an autoscaler between equal limits changes no latency", func(t *rapid.T) {
		s, d := plain(t), drawer{t}
		n := d.whole(1, 3)
		policy := one(d, "hpa", "keda", "knative")
		a := summary(t, s.with("deployment.replicas", n, "lifecycle", law{}))
		b := summary(t, s.with("lifecycle.autoscale", law{"policy": policy, "min": n, "max": n, "initial": n, "target": 5}))
		equal(t, a, b)
	}},
	{"a fleet is the sum of its replicas", func(t *rapid.T) {
		s := plain(t).with("deployment.replicas", drawer{t}.whole(2, 4))
		sum := summary(t, s)
		for _, key := range []string{"requests.completed", "tokens.output"} {
			total := 0.
			for _, r := range listOf(sum, "replicas") {
				total += number(doc(r).get(key))
			}
			if whole := at(t, sum, key); total != whole {
				t.Fatalf("%s is %v, and that of the replicas adds up to %v", key, whole, total)
			}
		}
	}},
	{"all replicas of a stopped fleet fail nothing that they finished", func(t *rapid.T) {
		s := plain(t)
		crash := law{"kind": "crash", "at": drawer{t}.duration(1, 10), "replica": 0, "for": "2s"}
		sum := summary(t, s.with("lifecycle.failures", []any{crash}), "--check")
		if problems := inspect(sum); len(problems) > 0 {
			t.Fatalf("%v", problems)
		}
	}},
}

// clients are laws about timeouts, retries and cancellation.
var clients = []relation{
	{"a timeout that is never reached changes nothing", func(t *rapid.T) {
		s := plain(t)
		pair(t, s, s.with("clients.timeout", "900h"))
	}},
	{"a timeout of the first token that is never reached changes nothing", func(t *rapid.T) {
		s := plain(t)
		pair(t, s, s.with("clients.ttft_timeout", "900h"))
	}},
	{"retries without failures change nothing", func(t *rapid.T) {
		s, d := plain(t), drawer{t}
		pair(t, s, s.with("clients.retries", d.whole(1, 9), "clients.backoff.base", d.duration(.1, 2)))
	}},
	{"nobody cancels with probability 0", func(t *rapid.T) {
		s := plain(t)
		pair(t, s, s.with("clients.cancel", law{"probability": 0, "after": "1s"}))
	}},
	{"a cancellation after the end changes nothing", func(t *rapid.T) {
		s := plain(t)
		pair(t, s, s.with("clients.cancel", law{"probability": 1, "after": "900h"}))
	}},
	{"the speed of reading changes no latency of an open loop", func(t *rapid.T) {
		s := open(t)
		pair(t, s, s.with("clients.reading", drawer{t}.between(1, 50)), "pace_surplus", "warnings")
	}},
	{"nothing completes if no client waits long enough", func(t *rapid.T) {
		sum := summary(t, plain(t).with("workload.output", 200, "clients.timeout", "200ms"))
		if n := at(t, sum, "requests.timed_out"); n != at(t, sum, "requests.offered") {
			t.Fatalf("%v requests time out: %v", n, sum["requests"])
		}
	}},
	{"attempts are requests and retries", func(t *rapid.T) {
		s, d := plain(t), drawer{t}
		sum := summary(t, s.with("clients.timeout", d.duration(.05, 2), "clients.retries", d.whole(1, 4)))
		if a := at(t, sum, "requests.attempts"); a != at(t, sum, "requests.offered")+at(t, sum, "requests.retries") {
			t.Fatalf("%v attempts: %v", a, sum["requests"])
		}
	}},
}

// limits are laws about limits that are not reached.
var limits = []relation{
	{"seats above those in use change nothing", func(t *rapid.T) {
		s := plain(t).with("engine", nil)
		a := s.with("engine.max_num_seqs", 500)
		pair(t, a, s.with("engine.max_num_seqs", 900), "system.gap_by_cause", "system.gap_fraction",
			"system.gap_fraction_seed", "replicas", "warnings", "system.mfu", "system.kv_blocks", "system.kv_usage")
	}},
	{"a queue limit that is not reached changes nothing", func(t *rapid.T) {
		s := plain(t)
		pair(t, s, valid(t, s.with("engine.max_num_queued_reqs", 100000)))
	}},
	{"a token limit of the queue that is not reached changes nothing", func(t *rapid.T) {
		s := plain(t)
		pair(t, s, valid(t, s.with("engine.max_num_queued_tokens", 1000000000)))
	}},
	{"max_tokens above every output changes nothing", func(t *rapid.T) {
		s := plain(t).with("engine", law{"async_scheduling": false}) // the end of an output is known in advance, or not
		pair(t, s, s.with("workload.max_tokens", 100000))
	}},
	{"max_tokens cuts outputs", func(t *rapid.T) {
		s, n := plain(t), drawer{t}.whole(1, 30)
		pair(t, s.with("workload.output", 200, "workload.max_tokens", n), s.with("workload.output", n), "warnings")
	}},
	{"more blocks than are used change no latency", func(t *rapid.T) {
		s := plain(t).with("engine", nil)
		a := summary(t, s.with("engine.num_gpu_blocks_override", 20000))
		b := summary(t, s.with("engine.num_gpu_blocks_override", 26000))
		if at(t, a, "system.preemptions") == 0 && at(t, a, "system.kv_usage.max") < .5 {
			equal(t, a, b)
		}
	}},
	{"more requests than a duration has change nothing", func(t *rapid.T) {
		d := drawer{t}
		s := doc{"workload": traffic(d), "lifecycle": law{}, "run": law{"duration": d.duration(2, 12)}}
		a := summary(t, s)
		n := at(t, a, "requests.offered")
		if n == 0 {
			t.Skip("nothing arrives")
		}
		o := command(t, "run", s.with("run.requests", 100000).file(t, "scenario"), "--quiet", "--format", "json")
		if o.status == 0 {
			equal(t, a, decode(t, o.stdout))
		} else if o.status != 2 {
			t.Fatalf("exit status %d: %s", o.status, o.stderr)
		}
	}},
}
