// Package engine simulates one serving engine, which vLLM calls EngineCore: the waiting queue, the running batch, the
// KV cache and the iterations on the GPU. Package sim runs one engine per replica of a fleet.
//
// Start with engine.go: an [Engine] moves from one iteration boundary to the next. At a boundary it handles the results
// of the oldest iteration in flight (results.go), lets the policy of package sched compose the next one through a view
// (batch_builder.go, batch_view.go, decode.go, admit.go), and plans how often that iteration repeats (span.go,
// commit.go). The decoding sequences are a cohort (cohort.go): one counter of steps stands for all of them, so that no
// loop visits sequences while nothing changes.
//
// Further parts each have a file: the queue and its orders (queue.go, fair_queue.go), prefix caching (prefix_lookup.go,
// prefix_registration.go, radix.go), KV in other tiers and from other engines (connector.go, load.go, offload.go,
// transfers.go), pipeline stages (pipeline.go), data-parallel ranks in lock step (lockstep.go), and speculative
// decoding (speculative.go, verify.go). What an engine needs of the fleet around it is the interface [Host].
//
// The definition of what this package must compute is the naive engine of package simtest, which visits every sequence
// in every iteration. Random tests demand equal results.
package engine
