package sim_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"clifftop/model"
	"clifftop/model/catalog"
	"clifftop/sim"
	"clifftop/sim/engine"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// contender is a policy whose cost is compared with that of vLLM V1.
type contender struct {
	name   string
	policy func() sched.Scheduler
	adapt  func(*engine.Config) // what its engine has that V1's has not
}

func contenders() []contender {
	return []contender{
		{"vllm", func() sched.Scheduler { return new(sched.VLLM) }, nil},
		{"vllm-priority", func() sched.Scheduler { return &sched.VLLM{Victim: sched.LeastUrgent} },
			func(c *engine.Config) { c.Order = sched.ByPriority{} }},
		{"vllm-vtc", func() sched.Scheduler {
			return new(sched.VLLM)
		}, func(c *engine.Config) { c.Order = sched.VTC{} }},
		{"preemptive-srpt", func() sched.Scheduler {
			return &sched.Preemptive{VLLM: sched.VLLM{Victim: sched.LeastUrgent}}
		},
			func(c *engine.Config) { c.Order = sched.SRPT{Size: sched.Size{PerPrompt: 1, PerOutput: 10}} }},
		{"vllm-v0", func() sched.Scheduler { return &sched.VLLMV0{Watermark: 0.01} }, nil},
		{"sarathi", func() sched.Scheduler { return &sched.Sarathi{Watermark: 0.01} },
			func(c *engine.Config) { c.MaxNumBatchedTokens = 512 }},
		{"orca", func() sched.Scheduler { return new(sched.Orca) }, nil},
		{"static", func() sched.Scheduler { return new(sched.Static) },
			func(c *engine.Config) { c.MaxNumBatchedTokens = 1 << 20 }},
		{"tgi", func() sched.Scheduler { return &sched.TGI{WaitingServedRatio: 0.3, MaxWaitingTokens: 20} }, nil},
		{"tgi-chunking", func() sched.Scheduler { return &sched.TGI{Chunking: true} }, nil},
		{"sglang", func() sched.Scheduler {
			return &sched.SGLang{ChunkedPrefillSize: 8192, MaxPrefillTokens: 16384}
		}, nil},
		{"sglang-radix", func() sched.Scheduler {
			return &sched.SGLang{ChunkedPrefillSize: 8192, MaxPrefillTokens: 16384}
		},
			func(c *engine.Config) { c.Radix = c.PrefixCaching }},
		{"sglang-mixed", func() sched.Scheduler {
			return &sched.SGLang{ChunkedPrefillSize: 8192, MaxPrefillTokens: 16384, MixedChunk: true}
		}, nil},
		{"trtllm-guaranteed", func() sched.Scheduler { return new(sched.TRTLLM) }, nil},
		{"trtllm-max-utilization", func() sched.Scheduler {
			return &sched.TRTLLM{Capacity: sched.MaxUtilization}
		}, nil},
		{"trtllm-static", func() sched.Scheduler { return &sched.TRTLLM{Capacity: sched.StaticBatch} }, nil},
	}
}

// overloaded is an engine of Llama-3.1-8B on one H100, and a chat load of 1.2 times what V1 serves at most.
func overloaded(b *testing.B, c contender, caching bool, requests int64) (engine.Config, workload.Spec) {
	llm, err := catalog.LLM("llama-3.1-8b")
	if err != nil {
		b.Fatal(err)
	}
	gpu, err := catalog.GPU("h100")
	if err != nil {
		b.Fatal(err)
	}
	d, err := model.NewDeployment(llm, gpu, model.Options{})
	if err != nil {
		b.Fatal(err)
	}
	cfg := chat(caching)
	if cfg.Timer, err = model.NewKernels(d, model.KernelOptions{}); err != nil {
		b.Fatal(err)
	}
	cfg.Scheduler, cfg.MaxModelLen = c.policy(), 8192
	if c.adapt != nil {
		c.adapt(&cfg)
	}
	spec := workload.Spec{
		Arrivals: []workload.Phase{{Process: "poisson", Rate: 1.2 * 43}},
		Input:    workload.LengthsSpec{Distribution: "lognormal", Mean: 512, CV: 0.8, Max: 4000},
		Output:   workload.LengthsSpec{Distribution: "lognormal", Mean: 256, CV: 0.8, Max: 4000},
		Requests: requests,
	}
	if caching {
		spec.Prefix = workload.PrefixSpec{Groups: 100, PromptsPerGroup: 10, SharedTokens: 256}
	}
	return cfg, spec
}

// serve runs a contender on some requests, and returns how long that took.
func serve(b *testing.B, c contender, caching bool, requests int64) (time.Duration, *quiet) {
	cfg, spec := overloaded(b, c, caching, requests)
	src, err := workload.New(spec, 1)
	if err != nil {
		b.Fatal(err)
	}
	q := new(quiet)
	e, err := sim.New(cfg, src, q)
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	if err := e.Run(context.Background()); err != nil {
		b.Fatal(err)
	}
	return time.Since(start), q
}

// BenchmarkPolicy is the cost of a request in overload under each policy, next to that under vLLM V1: the two take
// turns, and the ratio is the median of the turns, because machines have other things to do. The house asks for 2 at
// most, but for policies that look at each sequence.
func BenchmarkPolicy(b *testing.B) {
	const requests = 5000
	for _, caching := range []bool{false, true} {
		for _, c := range contenders() {
			b.Run(fmt.Sprintf("%s/caching=%v", c.name, caching), func(b *testing.B) {
				var ratios []float64
				var total time.Duration
				var q *quiet
				for range b.N {
					v1, _ := serve(b, contenders()[0], caching, requests)
					var own time.Duration
					own, q = serve(b, c, caching, requests)
					total += own
					ratios = append(ratios, float64(own)/float64(v1))
				}
				slices.Sort(ratios)
				b.ReportMetric(ratios[len(ratios)/2], "of-v1")
				b.ReportMetric(float64(total.Nanoseconds())/float64(b.N*requests), "ns/request")
				b.ReportMetric(float64(q.spans)/requests, "spans/request")
				b.ReportMetric(float64(q.iterations)/requests, "iterations/request")
				b.ReportMetric(float64(q.preempted)/requests, "preemptions/request")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
