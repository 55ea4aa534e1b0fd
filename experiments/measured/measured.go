// Package measured reads what load generators, engines and monitoring recorded of real deployments: results of vllm
// bench, GuideLLM, AIPerf, inference-perf and others, snapshots and ranges of Prometheus, and logs of engines. All
// become a [Result] of [Run] values, whatever the tool. [Run.Traffic] is the traffic for a simulation, and package
// validation holds a simulation against the run.
//
// Each tool has one file and one entry in [Formats].
package measured

import (
	"time"

	"clifftop/workload"
)

// Result is the content of one file, or of one set of files of one tool.
type Result struct {
	// Tool is the name of the format, as in [Formats].
	Tool string
	// File is the name of the file.
	File string
	// Runs are the measured runs: one, or one for each load of a sweep.
	Runs []Run
	// Notes say what was assumed or left out, one line each.
	Notes []string
}

// Run is one measured run at one load. Everything but the Name may be unknown: nil, 0 or empty.
type Run struct {
	// Name identifies the run in its file, such as "concurrency 64".
	Name string
	// Model, Engine, Release, GPU and GPUs describe the deployment, as written in the file.
	Model, Engine, Release, GPU string
	GPUs                        int
	// Flags are the engine's flags where the file has them, as on a command line.
	Flags string

	Load Load
	// Duration is the length of the measured window.
	Duration time.Duration
	// Sent, Completed and Failed count requests.
	Sent, Completed, Failed *int

	// Input and Output are lengths in tokens of completed requests.
	Input, Output Lengths
	// TTFT, TPOT, ITL and E2E are in milliseconds, as the client saw them.
	TTFT, TPOT, ITL, E2E Statistics
	// Queue is the time in the waiting queue in milliseconds, as the engine reports it.
	Queue Statistics
	// RequestsPerS, InputTokensPerS and OutputTokensPerS are rates over the window.
	RequestsPerS, InputTokensPerS, OutputTokensPerS *float64
	// GPUWatts is the mean power of one GPU.
	GPUWatts *float64

	// Requests are the single requests in order of arrival; empty where the file has only totals.
	Requests []Request
	// Trace has the requests with shared content and cancellations, if the file has them; a replay uses it in place of
	// Requests.
	Trace []workload.Request
	// Series are samples of the engine's state over time, from logs or from Prometheus.
	Series []Sample
}

// Load says how requests arrived.
type Load struct {
	// Rate is the mean number of requests per second of an open loop.
	Rate *float64
	// Burstiness is the shape of the gamma distribution of the gaps between arrivals, as in vllm bench; 1 is Poisson.
	Burstiness *float64
	// Constant means equal gaps.
	Constant bool
	// Concurrency is the number of requests that a closed loop keeps in flight; with a Rate it is a limit.
	Concurrency *int
	// AtOnce means that all requests are sent at the beginning.
	AtOnce bool
}

// Lengths describe the number of tokens of prompts or outputs.
type Lengths struct {
	Statistics
	// Total is the sum over completed requests.
	Total *float64
}

// Statistics describe a distribution; nil is unknown.
type Statistics struct {
	Mean, Std, Min, Max *float64
	// P50 to P99 are percentiles.
	P50, P90, P95, P99 *float64
}

// Request is one request as the client saw it.
type Request struct {
	// Arrival is the time from the first request of the run.
	Arrival time.Duration
	// Timed means that Arrival is known.
	Timed bool
	// Input and Output are tokens.
	Input, Output int
	// TTFT and E2E are from the arrival to the first and to the last token; 0 is unknown.
	TTFT, E2E time.Duration
	// Session identifies the conversation of the request; empty is none.
	Session string
	// Failed means that the request got no complete output.
	Failed bool
}

// Sample is the state of an engine at one time.
type Sample struct {
	// At is the time from the first sample.
	At time.Duration
	// Replica identifies the engine, such as "engine 0"; empty if there is one.
	Replica string
	// Running and Waiting count requests, KVUse and HitRate are shares from 0 to 1; nil is unknown.
	Running, Waiting, KVUse, HitRate *float64
	// PromptTokensPerS and OutputTokensPerS are rates since the sample before.
	PromptTokensPerS, OutputTokensPerS *float64
}

// Format is a kind of file that the package reads.
type Format struct {
	// Name of the tool, such as guidellm.
	Name string
	// Layout says in one line what the file looks like, and which option of the tool writes it.
	Layout string
	// Requests reports whether single requests, and Series whether states over time, may be in such a file.
	Requests, Series bool
	// Source is the address of the tool's documentation.
	Source string
}
