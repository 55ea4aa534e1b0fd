// Package report defines the results of runs: the [Summary] with throughput, latency percentiles, goodput and resource
// use, service-level objectives ([SLO]), time series, and the pooling of replications ([Pool]).
//
// The packages below it compute and show results, and none of them is imported here:
//
//   - [clifftop/report/collect] measures a run and makes a Summary.
//   - [clifftop/report/curve] analyses a sweep of loads.
//   - [clifftop/report/verdict], [clifftop/report/plan] and [clifftop/report/inspect] hold the results of compare, plan
//     and inspect.
//   - [clifftop/report/table] writes text tables; [clifftop/report/plot] draws, [clifftop/report/page] makes pages and
//     [clifftop/report/export] writes Prometheus metrics and traces.
//   - [clifftop/report/stats] has the statistics that all of them use.
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
