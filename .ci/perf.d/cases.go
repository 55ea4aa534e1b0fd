package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The gate tests itself with a case, and with the functions of a unit.
const plantCase, plantUnit = "p1-10", "spans"

// The sizes of most cases, in requests. Two runs of these sizes are subtracted.
const small, large = 6500, 26500

// Case is a command line whose cost is counted.
type Case struct {
	Name string
	// Sizes of the two runs in requests. With one size, the whole process is counted once.
	Sizes []int
	// Runs is the number of simulations that each make as many requests as the size says.
	Runs int
	// Args of the command. {n} is the size, {trace} a file with as many rows.
	Args []string
	// Anchor replaces Args for the anchor, if its flags differ.
	Anchor []string
	// Timed cases run natively too, with this many requests.
	Timed int
	// Goal has the instructions and misses that are wanted, or 0.
	Goal [2]float64
	// Shown says that the stages of the case are always printed.
	Shown bool
}

var plain = []string{"--format", "json", "--quiet", "--model", "llama-3.1-8b", "--gpu", "h100-sxm",
	"--set", "engine.enable_prefix_caching=false", "--set", "engine.max_num_seqs=256",
	"--set", "workload.input={distribution: lognormal, mean: 512, cv: 0.8}",
	"--set", "workload.output={distribution: lognormal, mean: 256, cv: 0.8}"}

// cases are all cases of the gate, cheap ones last, so that two workers end at about the same time.
func cases() []Case {
	p1 := func(rate int, more ...string) []string {
		arrivals := fmt.Sprintf("workload.arrivals={process: poisson, rate: %d}", rate)
		args := append([]string{"run"}, plain...)
		args = append(args, "--set", arrivals, "--set", "run.requests={n}")
		return append(args, more...)
	}
	p2 := []string{"run", "--format", "json", "--quiet", "--rate", "10", "--requests", "{n}"}
	sizes := []int{small, large}
	caching := "engine.enable_prefix_caching=true"
	return []Case{
		{Name: "fleet-round-robin", Sizes: sizes, Args: p1(1728, "--replicas", "64", "--router", "round-robin"),
			Shown: true},
		{Name: "fleet-least-requests", Sizes: sizes, Args: p1(1728, "--replicas", "64", "--router", "least-requests")},
		{Name: "retries", Sizes: sizes, Args: p1(60, "--set", "clients={timeout: 10s, retries: 2}")},
		{Name: "trace", Sizes: []int{1500, 5500}, Args: []string{"run", "--format", "json", "--quiet", "--model",
			"llama-3.1-8b", "--gpu", "h100-sxm", "--set", "workload.trace={file: {trace}, format: mooncake}"},
			Shown: true},
		{Name: "sweep-3", Sizes: []int{2500, 8500}, Runs: 3,
			Args: append([]string{"sweep", "--out", "", "--jobs", "1", "--over", "rate=10,25,40", "--requests", "{n}"},
				plain...)},
		{Name: "p2-10", Sizes: sizes, Args: append(p2[:len(p2):len(p2)], "--set", "engine.max_num_seqs=1024"),
			Timed: 60000, Goal: [2]float64{9000}, Shown: true},
		{Name: "prefix-groups", Sizes: sizes, Args: p1(25, "--set", caching, "--set",
			"workload.prefix={groups: 100, prompts_per_group: 50, shared_tokens: 256}")},
		{Name: "p1-10", Sizes: sizes, Args: p1(10), Timed: 100000, Goal: [2]float64{6000, 50}, Shown: true},
		{Name: "p1-35", Sizes: sizes, Args: p1(35), Timed: 100000, Goal: [2]float64{4500, 50}, Shown: true},
		{Name: "p1-60", Sizes: sizes, Args: p1(60), Timed: 100000, Goal: [2]float64{4500}},
		{Name: "run-1-p1", Sizes: []int{1}, Args: p1(10), Goal: [2]float64{31e6}},
		{Name: "run-1-p2", Sizes: []int{1}, Args: p2, Goal: [2]float64{31e6}, Shown: true},
		{Name: "version", Sizes: []int{0}, Args: []string{"version"}, Goal: [2]float64{4e6}},
	}
}

// each is the number of requests by which the runs of a case differ, or 1 for a case that counts one process.
func (c *Case) each() float64 {
	if len(c.Sizes) == 1 {
		return 1
	}
	return float64((c.Sizes[1] - c.Sizes[0]) * max(c.Runs, 1))
}

// command returns the arguments for n requests. It writes a trace of n rows into folder, if the case needs one.
func (c *Case) command(n int, anchor bool, folder string) ([]string, error) {
	source := c.Args
	if anchor && c.Anchor != nil {
		source = c.Anchor
	}
	var args []string
	for _, arg := range source {
		if strings.Contains(arg, "{trace}") {
			path := filepath.Join(folder, fmt.Sprintf("trace-%d.jsonl", n))
			if err := os.WriteFile(path, traceRows(n), 0o644); err != nil {
				return nil, err
			}
			arg = strings.ReplaceAll(arg, "{trace}", filepath.Base(path))
		}
		args = append(args, strings.ReplaceAll(arg, "{n}", strconv.Itoa(n)))
	}
	return args, nil
}

// traceRows returns a trace of n requests in Mooncake's format, the same each time. A prompt starts with the 2 to 5
// blocks of 512 tokens of one of 60 documents, popular ones more often, and ends with 1 to 3 blocks of its own.
func traceRows(n int) []byte {
	state := uint64(20261124)
	draw := func(limit int) int {
		state = state*6364136223846793005 + 1442695040888963407
		return int((state >> 33) % uint64(limit))
	}
	var rows strings.Builder
	next := 1000 // block ids below belong to documents
	for i := range n {
		document := draw(60) * draw(60) / 60
		shared, own := 2+document%4, 1+draw(3)
		ids := make([]string, 0, shared+own)
		for k := range shared {
			ids = append(ids, strconv.Itoa(document*8+k))
		}
		for range own {
			ids = append(ids, strconv.Itoa(next))
			next++
		}
		fmt.Fprintf(&rows, `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [%s]}`+"\n",
			i*180+draw(180), 512*len(ids)-draw(400), 20+draw(300), strings.Join(ids, ", "))
	}
	return []byte(rows.String())
}
