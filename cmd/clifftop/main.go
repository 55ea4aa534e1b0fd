// Clifftop simulates LLM serving: it computes throughput, latency, goodput and cost of a model on GPUs, and the load at
// which the system saturates.
//
//	clifftop sweep                          # the default scenario, from idle to beyond saturation
//	clifftop run scenario.yaml --rate 8     # one load
//	clifftop init scenario.yaml             # an example scenario with comments
package main

import "clifftop/cmd/cli"

func main() { cli.Main() }
