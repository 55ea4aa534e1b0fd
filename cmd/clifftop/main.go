// Clifftop simulates LLM serving: throughput, latency and cost of a model on GPUs under a traffic, and the load at
// which throughput falls.
//
//	clifftop sweep                          # the default scenario, from idle to beyond saturation
//	clifftop run scenario.yaml --rate 8     # one operating point
//	clifftop init scenario.yaml             # a scenario with comments, to start from
package main

import "clifftop/cmd/cli"

func main() { cli.Main() }
