// Package monitor shows what a live server does: as metrics for Prometheus under the names of vLLM or SGLang, as a page
// in the browser, and as a line in the terminal.
//
// A [Monitor] observes the simulation on the driver's goroutine. Each event costs a constant time and no allocation.
// Readers copy their data under a lock that is held for microseconds.
//
// Start with [New].
package monitor
