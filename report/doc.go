// Package report says what a run means: it turns what a [clifftop/event.Observer] is told into a
// [Summary] of throughput, latency percentiles, goodput and resource use, and a sweep of summaries
// into a [curve.Curve] with its knee, peak and collapse.
//
// A [collect.Collector] watches one run in constant memory. Its numbers are exact where exactness is cheap:
// integrals over time are kept in integers of 128 bits, percentiles of per-request metrics come from
// all samples up to 2²⁰ of them, and the window of measurement begins and ends on edges of time
// buckets, so that whatever is reported for it is a sum of whole buckets. Beyond 2²⁰ requests, and
// for inter-token gaps always, percentiles come from a [stats.Histogram] with a relative error of at
// most 1/256.
//
// # Definitions
//
//   - TTFT runs from the moment the client sends the request to its first token at the client.
//   - TPOT is the time from first to last token at the client, divided by one less than the number
//     of tokens; a request with one token has none.
//   - ITL is every gap between two tokens of a request on the GPU; long answers weigh more in it.
//   - E2E runs from sending to the last token at the client: TTFT + (n-1)·TPOT, exactly.
//   - Queue is the wait in the engine's queue until the first admission.
//   - Stream speed is n tokens over the time from first to last token, as many tools print it;
//     1/TPOT counts the n-1 gaps instead. A request with one token has none. The user's
//     end-to-end speed is n over E2E; in flight it is n over the time from first admission to
//     release.
//
// Latency and goodput look at the requests that arrive in the window; throughput counts tokens
// emitted and requests completed in it. A statistic over no sample is null in JSON, never 0.
package report
