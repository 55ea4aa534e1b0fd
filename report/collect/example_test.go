package collect_test

import (
	"context"
	"fmt"
	"os"

	"clifftop/report"
	"clifftop/report/collect"
	"clifftop/report/curve"
	"clifftop/report/table"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/sched"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// measure runs an engine of at most 16 sequences whose iterations take 10 ms and 0.1 ms for each sequence: 1,200
// requests of 100 input and 50 output tokens come at equal distances.
func measure(perSecond float64, opts collect.Options) *collect.Collector {
	var list []workload.Request
	for i := range int64(1200) {
		arrival := clock.Time(clock.FromSeconds(float64(i) / perSecond))
		list = append(list, workload.Request{ID: i, Arrival: arrival, InputTokens: 100, OutputTokens: 50})
	}
	opts.MaxNumSeqs, opts.UsableBlocks = 16, 999
	c := collect.New(opts)
	engine, err := sim.New(engine.Config{
		Scheduler: new(sched.VLLM), Timer: simtest.Affine{Base: 10e12, PerSeq: 1e11, PerToken: 1e10},
		MaxNumSeqs: 16, MaxNumBatchedTokens: 2048, MaxModelLen: 4096, BlockSize: 16, NumGPUBlocks: 1000,
	}, simtest.NewRequests(list), c)
	if err != nil {
		panic(err)
	}
	if err := engine.Run(context.Background()); err != nil {
		panic(err)
	}
	return c
}

func ExampleCollector() {
	slo := &report.SLO{
		Objectives: []report.Objective{
			{Metric: "ttft", Percentile: 95, Limit: 200 * clock.Millisecond},
			{Metric: "tpot", Percentile: 95, Limit: 30 * clock.Millisecond},
		},
		Attainment: 0.95,
	}
	c := measure(20, collect.Options{Warmup: collect.Warmup{Auto: true}, SLO: slo, USDPerHour: 3})
	if err := c.Check(); err != nil {
		fmt.Println(err)
	}
	table.Write(c.Summary(), os.Stdout, report.DefaultProfile())
	// Output:
	// window       0.64 s to 60.03 s (after a warm-up), steady
	// requests     1200 offered, 1200 completed
	// throughput   20.0 ±0.077 requests/s, 1000 ±0.539 output tokens/s, 1999 ±7.57
	//              input tokens/s
	//
	// ms         mean      p50      p90      p95      p99    p99.9      max        n
	// TTFT       18.2     18.2     22.7     22.7     22.7        –     22.9     1187
	//   ±       0.030
	// TPOT       11.4     11.4     11.4     11.4     11.4        –     11.4     1187
	//   ±       0.006
	// ITL        11.4     11.1     12.2     12.2     12.2     12.2     12.2    58202
	//   ±       0.001
	// E2E         575      575      579      579      579        –      579     1187
	//   ±       0.305
	// queue      6.04     6.00     10.5     10.5     10.5        –     10.8     1187
	//   ±       0.030
	// ±            half of a 95 % confidence interval, by the means of batches of this
	//              run
	// –            no p99.9 from 1187 samples (want 10000 or more)
	// bands        TTFT p95 is excellent, TPOT p95 is excellent
	//
	// goodput      SLO met; 100 % (99.7 % to 100 %) of offered requests are good: 20.0
	//              ±0.083 requests/s, 999 output tokens/s
	// concurrency  in system 11.5 (p95 12.0), running 11.4 (12.0), decoding 11.1
	//              (12.0), queued 0.121 (1.00)
	// GPU          busy 100 %, KV 9.41 % (at most 10.0 % of 999 blocks), 0
	//              preemptions, prefix hits 0 %
	// waiting      12.1 % of the time: iteration boundary 12.1 %
	// cost         $3.00/h, $0.833 per million output tokens at this load
}

func Example_curve() {
	var points []curve.Point
	for _, rate := range []float64{40, 5, 10, 20, 30} {
		points = append(points, curve.Point{Value: rate, Summary: measure(rate, collect.Options{}).Summary()})
	}
	curve.New("rate", points).WriteTable(os.Stdout)
	// Output:
	// rate  offered   req/s   tok/s TTFTp50     p99 TPOTp50     p99    busy   KVmax
	// 5        5.00    4.99     250    17.1    21.2    10.3    10.3    1.00   0.026
	// 10       9.99    9.96     499    16.7    20.9    10.6    10.6    1.00   0.050
	// 20       20.0    19.8     995    18.2    22.7    11.4    11.4    1.00   0.100
	// 30       30.0    26.5    1334    2324    4631    11.9    11.9    1.00   0.134
	// 40       39.9    26.5    1334    7263   14507    11.9    11.9    1.00   0.139
	//
	// knee         20 (throughput divided by mean E2E latency is greatest at 20: 995
	//              tokens/s in 575 ms)
	// little gain beyond  30
	// peak         1334 output tokens/s at 30
	// bounds       at most 1334 output tokens/s, which a rate of 26.5 asks for; a
	//              request takes 0.5224 s or more on average
	// first limit  seats, from 30 on (requests wait for it 98.6 % of the time)
	// sign at 20   throughput slows: from here to 30 each unit of load brings 68.0 %
	//              of what it brings at the lowest load
	// sign at 30   tail level: TTFT p99 is 4631 ms, 222 times that at 10; p99/p50 is
	//              1.99
	// sign at 30   busy but flat: the GPU is busy 100 % of the time, yet from here to
	//              40 more load brings no more throughput
	// sign at 30   not stationary: the system fills up by 3.15 requests/s
}

func Example_markdown() {
	table.WriteMarkdown(measure(5, collect.Options{}).Summary(), os.Stdout, report.DefaultProfile())
	// Output:
	// * **window**: 0 s to 240.1 s, steady
	// * **requests**: 1200 offered, 1200 completed
	// * **throughput**: 4.99 ±0.027 requests/s, 250 ±0.391 output tokens/s, 500 ±1.86 input tokens/s
	//
	// | ms | mean | p50 | p90 | p95 | p99 | p99.9 | max | n |
	// |---|---:|---:|---:|---:|---:|---:|---:|---:|
	// | TTFT | 17.1 | 17.1 | 21.2 | 21.2 | 21.2 | – | 21.2 | 1200 |
	// |   ± | 0.029 |  |  |  |  |  |
	// | TPOT | 10.3 | 10.3 | 10.3 | 10.3 | 10.3 | – | 10.3 | 1200 |
	// |   ± | 3.6e-04 |  |  |  |  |  |
	// | ITL | 10.3 | 10.3 | 10.3 | 10.3 | 11.3 | 11.3 | 11.3 | 58780 |
	// |   ± | 3.2e-04 |  |  |  |  |  |
	// | E2E | 522 | 522 | 526 | 526 | 526 | – | 526 | 1200 |
	// |   ± | 0.034 |  |  |  |  |  |
	// | queue | 5.82 | 5.80 | 9.90 | 9.90 | 9.90 | – | 9.90 | 1200 |
	// |   ± | 0.029 |  |  |  |  |  |
	//
	// * **±**: half of a 95 % confidence interval, by the means of batches of this run
	// * **–**: no p99.9 from 1200 samples (want 10000 or more)
	// * **bands**: TTFT p95 is excellent, TPOT p95 is excellent
	// * **concurrency**: in system 2.61 (p95 3.00), running 2.58 (3.00), decoding 2.52 (3.00), queued 0.029 (0)
	// * **GPU**: busy 100 %, KV 2.13 % (at most 2.60 % of 999 blocks), 0 preemptions, prefix hits 0 %
	// * **waiting**: 2.91 % of the time: iteration boundary 2.91 %
}
