package simtest

import (
	"fmt"

	"clifftop/sim/clock"
	"clifftop/sim/sched"
)

// Policy is a batching policy for tests: a name, and how to make one from its knobs. Scenario files
// give the knobs as arguments of the config command, random cases draw them.
type Policy struct {
	Name string
	// New makes a scheduler. It reads all knobs, always in the same order.
	New func(k *Knobs) sched.Scheduler
}

// Policies are the policies of package sched. Add a new one here: scenario files then know it, and random cases verify
// it.
func Policies() []Policy {
	return []Policy{
		{"vllm", func(k *Knobs) sched.Scheduler {
			p := vllm(k)
			return &p
		}},
		{"preemptive", func(k *Knobs) sched.Scheduler {
			p := &sched.Preemptive{VLLM: vllm(k), Threshold: int64(k.Int("preempt-threshold", 0, 0, 10))}
			p.Victim, p.Swap, p.MaxLoRAs = sched.LeastUrgent, k.Flag("swap"), 0
			return p
		}},
		{"vllm-variants", func(k *Knobs) sched.Scheduler {
			p := vllm(k)
			p.Victim = sched.Victim(k.Choice("victim", "last-admitted", "least-urgent", "most-remaining",
				"least-progress", "longest"))
			if p.Swap = k.Flag("swap"); k.Flag("full-length") {
				p.Admission = sched.FullLength
			}
			return &p
		}},
		{"vllm-v0", func(k *Knobs) sched.Scheduler {
			return &sched.VLLMV0{Watermark: k.Float("watermark", 0, .01, .05, .2, .5), Swap: k.Flag("swap")}
		}},
		{"sarathi", func(k *Knobs) sched.Scheduler {
			return &sched.Sarathi{Watermark: k.Float("watermark", 0, .01, .05, .2, .5)}
		}},
		{"orca", func(k *Knobs) sched.Scheduler { return &sched.Orca{} }},
		{"static", func(k *Knobs) sched.Scheduler { return &sched.Static{} }},
		{"tgi", func(k *Knobs) sched.Scheduler {
			return &sched.TGI{
				WaitingServedRatio: k.Float("ratio", .3, 0, 1.2, 3),
				MaxWaitingTokens:   k.Int("max-waiting-tokens", 20, 0, 12),
				Chunking:           k.Flag("chunking"),
			}
		}},
		{"sglang", sglang},
		{"mlfq", func(k *Knobs) sched.Scheduler {
			return &sched.MLFQ{
				Quantum: k.Int("quantum", 64, 1, 20), Ratio: k.Int("ratio", 2, 1, 4), Levels: k.Int("levels", 4, 1, 6),
				Starvation: starvation(k), Batch: k.Int("batch", 0, 0, 6),
			}
		}},
		{"trtllm", func(k *Knobs) sched.Scheduler {
			return &sched.TRTLLM{
				Capacity: sched.Capacity(k.Choice("capacity", "guaranteed-no-evict", "max-utilization",
					"static-batch")),
				ChunkedContext: k.Flag("chunked"),
				Chunking:       sched.Chunking(k.Choice("chunking", "first-come-first-served", "equal-progress")),
				ChunkUnit:      int32(k.Int("unit", 64, 1, 20)),
				Waits: sched.ContextWaits{Timeout: k.Int("timeout", 0, 0, 9),
					Batching: k.Int("batching", 0, 0, 3)},
			}
		}},
	}
}

func vllm(k *Knobs) sched.VLLM {
	p := sched.VLLM{
		DisableChunkedPrefill:     k.Flag("whole-prompts"),
		LongPrefillTokenThreshold: int32(k.Int("threshold", 0, 1, 24)),
		Watermark:                 k.Float("watermark", 0, .05, .2, .5),
		MaxLoRAs:                  k.Int("max-loras", 0, 1, 2),
		PadAdmissions:             k.Flag("pad-admissions"),
	}
	if k.Flag("first-chunk") {
		p.Admission = sched.FirstChunk
	}
	if k.Flag("least-urgent") {
		p.Victim = sched.LeastUrgent
	}
	return p
}

// starvation is one of some times, random or given; 0 is none.
func starvation(k *Knobs) (longest clock.Duration) {
	for _, d := range k.Durations("starvation", clock.Picosecond, 20*clock.Microsecond, 100*clock.Microsecond,
		100*clock.Millisecond, clock.Second) {
		longest = max(longest, d)
	}
	return longest
}

func sglang(k *Knobs) sched.Scheduler {
	p := &sched.SGLang{
		ChunkedPrefillSize: int32(k.Int("chunk", 8192, 16, 60)),
		MaxPrefillTokens:   int32(k.Int("max-prefill", 16384, 1, 60)),
		MixedChunk:         k.Flag("mixed"),
		Conservativeness:   k.Float("conservativeness", 1, .1, .3, 2),
		QueueOrder:         sched.QueueOrder(k.Choice("schedule", sched.QueueOrder(0).Names()...)),
		Seed:               uint64(k.Int("seed", 1, 2, 1000)),
		IgnoreEOS:          k.Flag("ignore-eos"),
	}
	if k.Flag("whole-prompts") {
		p.ChunkedPrefillSize, p.MixedChunk = 0, false
	}
	if preempts, threshold := k.Flag("preempt"), k.Int("preempt-threshold", 10, 0, 2); preempts &&
		p.QueueOrder == sched.FirstCome {
		p.PreemptByPriority, p.PreemptionThreshold = true, int32(threshold)
	}
	return p
}

// Knobs are the knobs of a policy by name.
type Knobs struct {
	args  *arguments // of a scenario file
	drawn *drawer    // or, if that is nil, random ones
	value map[string]any
}

// knob is the value of a knob, read or drawn once.
func knob[T any](k *Knobs, name string, read func(*arguments) T, draw func(*drawer) T) T {
	if v, ok := k.value[name]; ok {
		return v.(T)
	}
	if k.value == nil {
		k.value = make(map[string]any)
	}
	var v T
	if k.args != nil {
		v = read(k.args)
	} else {
		v = draw(k.drawn)
	}
	k.value[name] = v
	return v
}

// Flag is a knob that is off by default.
func (k *Knobs) Flag(name string) bool {
	return knob(k, name, func(a *arguments) bool { return a.flag(name) },
		func(d *drawer) bool { return d.once(name, 3) })
}

// Int is a knob with a default; random ones are the default or from lo to hi.
func (k *Knobs) Int(name string, otherwise, lo, hi int) int {
	return knob(k, name, func(a *arguments) int { return a.int(name, otherwise) },
		func(d *drawer) int {
			if d.once(name+" as usual", 2) {
				return otherwise
			}
			return d.between(name, lo, hi)
		})
}

// Float is a knob with a default; random ones are that or one of the others.
func (k *Knobs) Float(name string, otherwise float64, others ...float64) float64 {
	return knob(k, name, func(a *arguments) float64 { return a.float(name, otherwise) },
		func(d *drawer) float64 {
			if i := d.of(name, 2+len(others)); i < len(others) {
				return others[i]
			}
			return otherwise
		})
}

// Choice is the place in values of a knob; the first is the default.
func (k *Knobs) Choice(name string, values ...string) int {
	return knob(k, name, func(a *arguments) int {
		text := a.text(name, values[0])
		for i, v := range values {
			if v == text {
				return i
			}
		}
		a.fault("%s: %q is not among %v", name, text, values)
		return 0
	}, func(d *drawer) int { return d.of(name, len(values)) })
}

// Durations is a knob with a list of times, empty by default; a random one has up to three of the others.
func (k *Knobs) Durations(name string, others ...clock.Duration) []clock.Duration {
	return knob(k, name, func(a *arguments) (list []clock.Duration) {
		for _, text := range a.values(name) {
			list = append(list, a.parseDuration(name, text))
		}
		return list
	}, func(d *drawer) (list []clock.Duration) {
		for range d.of(name, 4) {
			list = append(list, others[d.of(name, len(others))])
		}
		return list
	})
}

func policy(list []Policy, name string) (Policy, error) {
	for _, p := range list {
		if p.Name == name {
			return p, nil
		}
	}
	return Policy{}, fmt.Errorf("policy: there is none called %q", name)
}
