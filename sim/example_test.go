package sim_test

import (
	"context"
	"fmt"

	"clifftop/model"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/sched"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// endLogger prints how each request ends.
type endLogger struct{ quiet }

func (n *endLogger) Finished(rec *event.Record) {
	fmt.Printf("request %d: first token at %v, last at %v, preempted %d times\n",
		rec.Request.ID, rec.FirstToken.Sub(0), rec.LastToken.Sub(0), rec.Preemptions)
}

// Three requests meet a pool of ten blocks of 16 tokens. All are admitted at once, but the pool cannot hold
// them as they grow: the last one admitted loses its blocks, waits for the others to end, and is computed
// again.
func ExampleEngine() {
	var requests []workload.Request
	for id := range int64(3) {
		requests = append(requests, workload.Request{ID: id, InputTokens: 48, OutputTokens: 20})
	}
	cfg := engine.Config{
		Scheduler:  new(sched.VLLM),
		Timer:      model.NewLinear(10*clock.Millisecond, 0), // every iteration takes 10 ms
		MaxNumSeqs: 8, MaxNumBatchedTokens: 512, MaxModelLen: 4096,
		BlockSize: 16, NumGPUBlocks: 11, // one of them is the null block
	}
	engine, err := sim.New(cfg, simtest.NewRequests(requests), new(endLogger))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := engine.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// request 0: first token at 10ms, last at 200ms, preempted 0 times
	// request 1: first token at 10ms, last at 200ms, preempted 0 times
	// request 2: first token at 10ms, last at 390ms, preempted 1 times
}
