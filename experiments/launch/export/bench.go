package export

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"clifftop/experiments/scenario"
)

// bench writes a shell script with the commands of vllm bench serve and GuideLLM that send the traffic of a scenario,
// and of clifftop verify, which compares the result with the simulation.
func bench(u *scenario.Setup) []byte {
	w := &u.Scenario.Workload
	var b strings.Builder
	b.WriteString("#!/usr/bin/env bash\n# The traffic of the scenario, to measure the deployment with.\n" +
		"set -euo pipefail\nURL=${URL:-http://127.0.0.1:8000}\n")
	model := hubName(&u.Pools[0].Deployment.LLM, u.Scenario.Model)
	remark := func(format string, args ...any) { fmt.Fprintf(&b, "# Not in these commands: "+format+"\n", args...) }
	if len(w.Classes) > 0 {
		remark("%d classes of requests; the lengths are those of the mixture's mean", len(w.Classes))
	}
	if w.Trace != nil {
		remark("the recorded requests of %s; write them with clifftop trace convert and replay them",
			plain(w.Trace.File))
	}
	input, output, err := u.Traffic.Spec.MeanTokens()
	if err != nil || u.Traffic.Recording != nil {
		input, output = defaultInput, defaultOutput
		remark("the lengths: those here are %d and %d tokens", defaultInput, defaultOutput)
	}
	requests := 1000
	if n := u.Scenario.Run.Requests; n != nil {
		requests = *n
	}
	c := []string{"vllm", "bench", "serve", "--base-url", "$URL", "--model", model, "--dataset-name", "random",
		"--random-input-len", whole(input), "--random-output-len", whole(output), "--ignore-eos", "--num-prompts",
		strconv.Itoa(requests)}
	g := []string{"guidellm", "benchmark", "--target", "$URL", "--model", model, "--data",
		fmt.Sprintf("prompt_tokens=%s,output_tokens=%s", whole(input), whole(output))}
	if w.Sessions != nil || w.Prefix != nil {
		remark("conversations and shared prefixes of prompts")
	}
	if w.Input == nil || w.Input.Law != "fixed" {
		remark("the distribution of lengths: the means are sent, with a range of half of them")
		c = append(c, "--random-range-ratio", "0.5")
	}
	vllm, guide := loadFlags(u, remark)
	c = append(append(c, vllm...), "--save-result", "--save-detailed", "--result-filename", "result.json")
	g = append(append(g, guide...), "--max-requests", strconv.Itoa(requests), "--output-path", "guidellm.json")
	line := func(words []string) string { return strings.ReplaceAll(join(words), `'$URL'`, `"$URL"`) }
	fmt.Fprintf(&b, "\n%s\n\n# or\n# %s\n", line(c), strings.ReplaceAll(line(g), "\n", "\n# "))
	b.WriteString("\nclifftop verify scenario.yaml --measured result.json\n")
	return []byte(b.String())
}

// loadFlags returns the flags of vllm bench serve and of GuideLLM for the load. What they cannot say is remarked.
func loadFlags(u *scenario.Setup, remark func(string, ...any)) (vllm, guide []string) {
	var stage scenario.Stage
	if a := u.Scenario.Workload.Arrivals; a != nil && len(a.Stages) > 0 {
		stage = a.Stages[0]
		if len(a.Stages) > 1 {
			remark("%d of the %d phases of traffic: the load is that of the first one", len(a.Stages)-1, len(a.Stages))
		}
	}
	switch {
	case u.Traffic.Closed:
		users := "1"
		if stage.Users != nil {
			users = strconv.Itoa(*stage.Users)
		}
		return []string{"--request-rate", "inf", "--max-concurrency", users},
			[]string{"--rate-type", "concurrent", "--rate", users}
	case u.Traffic.Rate > 0:
		rate := strconv.FormatFloat(u.Traffic.Rate, 'g', 6, 64)
		vllm = []string{"--request-rate", rate}
		if stage.Process == "gamma" && stage.CV != nil {
			vllm = append(vllm, "--burstiness", strconv.FormatFloat(1/(*stage.CV**stage.CV), 'g', 4, 64))
			remark("GuideLLM has no bursts: gaps with a coefficient of variation of %g", *stage.CV)
		} else if stage.Process != "" && stage.Process != "poisson" {
			remark("the arrival process %s: a Poisson process of the same rate is sent", stage.Process)
		}
		return vllm, []string{"--rate-type", "poisson", "--rate", rate}
	}
	return []string{"--request-rate", "inf"}, []string{"--rate-type", "throughput"}
}

// Lengths where those of the scenario are not known.
const (
	defaultInput  = 1024
	defaultOutput = 256
)

func whole(x float64) string { return strconv.Itoa(int(math.Max(1, math.Round(x)))) }
