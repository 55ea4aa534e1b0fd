package report

import "clifftop/workload"

// SummarySchema identifies the JSON form of a [Summary].
const SummarySchema = "clifftop.summary/1"

// Summary is the result of one run. Its JSON form carries each number's unit in its key; a nil
// pointer is null there and says that the number is unknown or has no sample.
type Summary struct {
	Schema   string `json:"schema"`
	Clifftop string `json:"clifftop"` // version of the program
	Scenario any    `json:"scenario"` // as resolved; set by the caller
	Seed     uint64 `json:"seed"`
	Partial  bool   `json:"partial"` // the run was interrupted

	Window   Window   `json:"window"`
	Requests Requests `json:"requests"`
	// Sessions counts synthetic conversations; nil without them. It is set by the caller.
	Sessions   *workload.SessionCounts `json:"sessions,omitempty"`
	Tokens     Tokens                  `json:"tokens"`
	Throughput Throughput              `json:"throughput"`
	Latency    Latency                 `json:"latency_ms"`

	// Speeds of single requests, in tokens per second: n tokens over the time from first to last
	// (StreamTPS), from sending to last (E2ETPSUser), and from admission to release (E2ETPSInFlight).
	StreamTPS      Distribution `json:"stream_tps"`
	E2ETPSUser     Distribution `json:"e2e_tps_user"`
	E2ETPSInFlight Distribution `json:"e2e_tps_inflight"`
	// PaceSurplus is StreamTPS over the speed at which users read: below 1 they wait for words. It is nil where
	// nothing is said of their reading.
	PaceSurplus *Distribution `json:"pace_surplus"`

	Goodput     Goodput     `json:"goodput"`
	Concurrency Concurrency `json:"concurrency"`
	System      System      `json:"system"`
	Energy      *Energy     `json:"energy"` // nil if the power of a GPU is unknown
	Cost        *Cost       `json:"cost"`
	Stages      []Stage     `json:"stages"`            // empty unless the traffic has stages
	Classes     []Class     `json:"classes,omitempty"` // of traffic that has some
	// Replicas has the replicas of a fleet; Imbalance needs two or more.
	Replicas  []Replica  `json:"replicas,omitempty"`
	Imbalance *Imbalance `json:"imbalance,omitempty"`

	// EngineDefaults names knobs that follow from the engine's rules for the GPU; empty if there are none. It is set by
	// the caller.
	EngineDefaults string `json:"engine_defaults,omitempty"`
	// Traffic says how much the arrivals vary; nil for a closed loop and if it is unknown. It is set by the caller.
	Traffic *Traffic `json:"traffic,omitempty"`
	// Saturation is the load that the system can carry in the long run; nil in closed loops and if it was not looked
	// for. It is set by the caller.
	Saturation *Saturation `json:"saturation,omitempty"`
	// SLOHours counts the whole hours of the window, or its minutes if it is shorter than two hours, that meet the SLO;
	// nil without an SLO, and for less than two of them.
	SLOHours *SLOHours `json:"slo_hours,omitempty"`
	// Hours compares the hours of the window, or pooled runs of an hour or longer; nil for less than two.
	Hours *Hours `json:"hours,omitempty"`
	// Accuracy says how far the numbers can be trusted; nil where no machine is modelled. It is set by the caller.
	Accuracy *Accuracy `json:"accuracy"`
	// Predictive has the error bars; nil if nothing like the run was measured. It is set by the caller.
	Predictive *Predictive `json:"predictive,omitempty"`

	Warnings []Warning `json:"warnings"`
	// CI95 maps a path such as "latency_ms.ttft.p99" to the ends of its 95 % confidence interval; nil where nothing
	// can be said.
	CI95 map[string][2]float64 `json:"ci95"`
	// CI95Method is [ByReplications] or [ByBatchMeans]; empty without intervals.
	CI95Method string `json:"ci95_method,omitempty"`
	// TailSamples maps the path of a percentile that has an interval to the number of samples beyond it.
	TailSamples map[string]int64 `json:"tail_samples,omitempty"`
	// Replications describes the runs that were pooled; nil for a single run.
	Replications *Replications `json:"replications"`
	// Effort counts the requests that were simulated. It is set by the caller.
	Effort Effort `json:"effort"`

	// Detail is for pictures: of the first of the runs that were pooled; nil where it was not asked for. It is set by
	// the caller.
	Detail *Detail `json:"-"`
}

// Window is the part of the run that rates and latencies are measured over.
type Window struct {
	StartS  float64 `json:"start_s"`
	EndS    float64 `json:"end_s"`
	WarmupS float64 `json:"warmup_s"` // what was cut from the start of the run
	// Stationary is false when the system had not settled: the warm-up took half the run, or the
	// queue kept growing. It is nil when the run is too short to say, or has several stages.
	Stationary *bool `json:"stationary"`
	// GrowthRequestsPerS is the rate at which requests pile up in a system that is not stationary.
	GrowthRequestsPerS *float64 `json:"growth_requests_per_s,omitempty"`
	// Backlog is the rate of completions while requests wait, if it is surely less than the arrivals; otherwise nil.
	Backlog *Backlog `json:"backlog,omitempty"`
	// State is [Settled], [Finite], [Overloaded] or [Undetermined]; empty if it was not judged. NeedsS is the time that
	// a window must last to show a steady state; nil if there is none or it is unknown. They are set by the caller.
	State  string   `json:"state,omitempty"`
	NeedsS *float64 `json:"needs_s,omitempty"`
	// MeanOver is the time over which a rate that changes is the mean: run, hour or process; empty if it does not
	// change.
	MeanOver string `json:"mean_over,omitempty"`
}

// The states of a window.
const (
	// Settled means that the run shows a steady state: it is long enough, and its means are known to 10 %.
	Settled = "settled"
	// Finite means that the numbers describe the simulated time only, not a steady state.
	Finite = "finite"
	// Overloaded means that the load is at or above saturation, so that there is no steady state.
	Overloaded = "overloaded"
	// Undetermined means that the run looks settled, and that only the saturation of the system could tell, for which
	// the run is too short to look.
	Undetermined = "undetermined"
)

// Unsettled says that the run is known to have had no steady state.
func (w *Window) Unsettled() bool { return w.Stationary != nil && !*w.Stationary }

// Requests counts the requests of the whole run by fate: logical ones, each of which its client may have sent several
// times, by the end of the last attempt. One that waits to be sent again at the end of the run is in the system.
type Requests struct {
	Offered       int64 `json:"offered"`
	Completed     int64 `json:"completed"`
	Rejected      int64 `json:"rejected"`          // of which
	RejectedBusy  int64 `json:"rejected_busy"`     // by a limit of the queue, or of requests waiting for a replica, and
	RejectedLong  int64 `json:"rejected_too_long"` // because they exceed the model's context or the KV pool
	TimedOut      int64 `json:"timed_out"`
	Cancelled     int64 `json:"cancelled"`
	Failed        int64 `json:"failed"`
	InSystemAtEnd int64 `json:"in_system_at_end"`
	Attempts      int64 `json:"attempts"` // requests that were sent; of which
	Retries       int64 `json:"retries"`  // not for the first time
	// RetriedAfter says how the attempts ended that were not the last of their requests.
	RetriedAfter RetriedAfter `json:"retried_after"`
}

// RetriedAfter counts attempts that were not the last of their requests by how they ended.
type RetriedAfter struct {
	FirstTimeout int64 `json:"ttft_timeout"`
	Timeout      int64 `json:"timeout"`
	Busy         int64 `json:"busy"`
	Connection   int64 `json:"connection"`
}

// Tokens counts the tokens of the whole run.
type Tokens struct {
	Input            int64  `json:"input"`        // prompts of requests that got their first token
	CachedInput      int64  `json:"cached_input"` // the part of them found in the prefix cache
	Output           int64  `json:"output"`       // delivered
	OutputSuccessful int64  `json:"output_successful"`
	OutputGood       *int64 `json:"output_good"` // of requests within the SLO; nil without one
	Recomputed       int64  `json:"recomputed"`
	Wasted           int64  `json:"wasted"` // generated for attempts that did not complete
}

// Throughput counts what the system did in the window, per second.
type Throughput struct {
	OfferedRequestsPerS        *float64 `json:"offered_requests_per_s"` // arrived
	RequestsPerS               *float64 `json:"requests_per_s"`         // completed
	OutputTokensPerS           *float64 `json:"output_tokens_per_s"`
	InputTokensPerS            *float64 `json:"input_tokens_per_s"` // whole prompts, at their first token
	TotalTokensPerS            *float64 `json:"total_tokens_per_s"`
	SuccessfulOutputTokensPerS *float64 `json:"successful_output_tokens_per_s"`
	OutputTokensPerSPerGPU     *float64 `json:"output_tokens_per_s_per_gpu"`
}

// Distribution describes a sample. All but N are nil when it is empty.
type Distribution struct {
	N    int64    `json:"n"`
	Mean *float64 `json:"mean"`
	SD   *float64 `json:"sd"` // of the population
	P50  *float64 `json:"p50"`
	P90  *float64 `json:"p90"`
	P95  *float64 `json:"p95"`
	P99  *float64 `json:"p99"`
	P999 *float64 `json:"p99_9"`
	Max  *float64 `json:"max"`

	fewest int64 // Samples of any of the runs that were pooled; 0 for a single run
}

// Latency holds distributions in milliseconds over the completed requests that arrived in the
// window; ITL is over the inter-token gaps that ended in it.
type Latency struct {
	TTFT  Distribution `json:"ttft"`
	TPOT  Distribution `json:"tpot"`
	ITL   Distribution `json:"itl"`
	E2E   Distribution `json:"e2e"`
	Queue Distribution `json:"queue"`
	// WithFailures counts each request that arrived in the window and did not complete as
	// infinitely slow.
	WithFailures WithFailures `json:"with_failures"`
}

// WithFailures are latencies in milliseconds over all requests that arrived in the window. N counts
// the failures too; a percentile is nil where it is infinite.
type WithFailures struct {
	Failures int64        `json:"failures"`
	TTFT     Distribution `json:"ttft"`
	E2E      Distribution `json:"e2e"`
}

// Goodput is the throughput that meets the service-level objective. Its numbers are nil without one. It looks at the
// requests that arrive in the window, whenever they end, where [Throughput] counts the tokens that are produced in it.
// In a steady state there is no difference, and goodput is at most the successful throughput; under overload good
// requests may end after the window, so that goodput can exceed it.
type Goodput struct {
	// SLO is the objective of the run. Without it each request is judged by that of its class; requests of a class
	// without an objective are good if they complete.
	SLO *SLO `json:"slo"`
	// Met says whether the run as a whole keeps every limit at its statistic, and the shares asked for. Requests
	// that ended without completing count as infinitely slow, also among the inter-token gaps, to which each adds
	// one; a limit on a mean then never holds. It is nil when requests that were still in the system
	// at the end of the run could turn the verdict either way.
	Met *bool `json:"met"`
	// Limits judges each limit of the objective by itself.
	Limits []LimitResult `json:"limits"`
	// Attainment is the fraction of requests offered in the window that completed within the limits.
	Attainment *float64 `json:"attainment"`
	// RequestsPerS is good requests per second of the window: Attainment of the offered rate.
	RequestsPerS *float64 `json:"requests_per_s"`
	// OutputTokensPerS is the tokens of the good requests, per second of the window.
	OutputTokensPerS *float64 `json:"output_tokens_per_s"`
	// GatedOutputTokensPerS is the whole throughput if the objective is met and 0 if not.
	GatedOutputTokensPerS *float64 `json:"gated_output_tokens_per_s"`
	// WorkFraction is the part of the tokens computed in the whole run, those of prompts and of
	// answers, that good requests needed. What was computed again after a preemption counts as waste, and so does
	// all that was done for other requests. Every token takes the same arithmetic but for attention, which is left out.
	WorkFraction *float64 `json:"work_fraction"`
	// GPUBusyFraction is the same of time: what the GPUs spent on first computing the prompts and answers of good
	// requests, of the time that they were busy in the whole run; GPUWallFraction of all the time. Padding, copies and
	// waits for the host belong to no request.
	GPUBusyFraction *float64 `json:"gpu_busy_fraction"`
	GPUWallFraction *float64 `json:"gpu_wall_fraction"`
	// ProductOutputTokensPerS is Attainment of the whole throughput, which many take for goodput. It is
	// OutputTokensPerS only where good answers are as long as others and the system is steady: a check, not another
	// goodput.
	ProductOutputTokensPerS *float64 `json:"product_output_tokens_per_s"`
	// AnyBadOf10 is the probability that at least one of ten independent requests is not good; see [AnyBad].
	AnyBadOf10 *float64 `json:"any_bad_of_10_requests"`
}

// Level describes a number that changes over time, weighted by time.
type Level struct {
	Mean *float64 `json:"mean"`
	P95  *float64 `json:"p95"`
	P99  *float64 `json:"p99"`
	Max  *float64 `json:"max"`
}

// Concurrency holds the numbers of requests by state in the window.
type Concurrency struct {
	InSystem   Level `json:"in_system"`
	Running    Level `json:"running"`
	Decoding   Level `json:"decoding"`
	QueueDepth Level `json:"queue_depth"`
}

// System has the use of the engine and its GPUs in the window. In a fleet, BusyFraction and GapByCause are averages
// over the replicas; a request waits at one replica for the resources of that replica.
type System struct {
	Iterations   int64    `json:"iterations"`
	BusyFraction *float64 `json:"busy_fraction"`
	MFU          *float64 `json:"mfu"`
	MBU          *float64 `json:"mbu"`
	KVUsage      KVUsage  `json:"kv_usage"`
	KVBlocks     *int64   `json:"kv_blocks"` // usable ones; nil for an unlimited pool
	Preemptions  int64    `json:"preemptions"`
	// PrefixHitRate is the fraction of prompt tokens found in the cache.
	PrefixHitRate *float64 `json:"prefix_hit_rate"`
	// ErrorRate is the fraction of logical requests offered in the window that ended without completing.
	ErrorRate *float64 `json:"error_rate"`
	// GapFraction is the part of the window in which requests waited though neither KV blocks nor
	// token budget nor seats held them back: policy, idle and boundary of GapByCause.
	GapFraction *float64 `json:"gap_fraction"`
	// GapFractionSeed is the part in which requests waited and fewer than the allowed number ran.
	GapFractionSeed *float64   `json:"gap_fraction_seed"`
	GapByCause      GapByCause `json:"gap_by_cause"`
	GPUSeconds      GPUSeconds `json:"gpu_seconds"`
	// Speculative is nil where no drafts were verified.
	Speculative *Speculative `json:"speculative"`
	// Offload is absent where KV is not offloaded.
	Offload *Offload `json:"offload,omitempty"`
	// Replicas is absent where their number does not change.
	Replicas *ReplicaCounts `json:"replicas,omitempty"`
	// PipelineStages are the stages of the replicas' pipelines, in order; absent without pipelines. BusyFraction is the
	// part of the window in which some batch was in flight; the stages have the part in which they worked.
	PipelineStages []PipelineStage `json:"pipeline_stages,omitempty"`
}

// Speculative has the results of speculative decoding in the window.
type Speculative struct {
	Drafted  int64 `json:"drafted"`
	Accepted int64 `json:"accepted"` // found right, also where the answer ended before
	// AcceptanceRate is Accepted over Drafted. TokensPerStep is the mean number of tokens that a decoding sequence
	// gained in an iteration.
	AcceptanceRate *float64 `json:"acceptance_rate"`
	TokensPerStep  *float64 `json:"tokens_per_step"`
}

// KVUsage is the referenced fraction of the usable KV blocks: averaged over the window (an idle GPU
// counts as empty), at most, and the standard deviation of the averages of time buckets. Of a fleet Mean and SD are of
// all blocks together, and Max is the highest of any replica. ReservedMean is the part of
// all blocks that is referenced but holds nothing, because sequences have reserved it ahead of need.
type KVUsage struct {
	Mean         *float64 `json:"mean"`
	Max          *float64 `json:"max"`
	SD           *float64 `json:"sd"`
	ReservedMean *float64 `json:"reserved_mean"`
}

// GapByCause splits the time in which requests waited by the cause that blocked the first of them, as fractions of the
// window.
type GapByCause struct {
	KV          *float64 `json:"kv"`
	TokenBudget *float64 `json:"token_budget"`
	Seats       *float64 `json:"seats"`
	Policy      *float64 `json:"policy"`
	Idle        *float64 `json:"idle"`     // nothing ran
	Boundary    *float64 `json:"boundary"` // for the iteration in progress to end
}

// GPUSeconds splits the window's GPU time, which its parts add up to. Each span has the time of copies and the time in
// which the GPU waits for the host; the rest of an iteration is divided by the tokens that it computes, padding
// included. Useful is the remainder.
//
// Cancelled is the whole time of attempts that timed out or were cancelled, including recomputed tokens and cache
// misses, which are in no other part then. An attempt counts when it ends, with its time before the start of the
// window; attempts that are in flight at the end of the window count as completed.
type GPUSeconds struct {
	Useful    *float64 `json:"useful"`
	Recompute *float64 `json:"recompute"`  // computed again after a preemption
	CacheMiss *float64 `json:"cache_miss"` // computed because the prefix cache had lost it
	Cancelled *float64 `json:"cancelled"`  // for attempts that did not complete
	Rejected  *float64 `json:"rejected_drafts"`
	Padding   *float64 `json:"padding"` // computed for no request
	Swap      *float64 `json:"swap"`    // copying KV to and from host memory
	Host      *float64 `json:"host"`    // waiting, within an iteration, for the host
	// Bubble is the time in which stages of a pipeline waited while some batch was in flight: for the stage before, for
	// a batch of their own, or for the host. It is nil without pipelines.
	Bubble *float64 `json:"pipeline_bubble,omitempty"`
	Idle   *float64 `json:"idle"` // between iterations
	// IdleByCause divides the idle time.
	IdleByCause IdleByCause `json:"idle_by_cause"`
}

// IdleByCause splits the idle time of GPUs: there were no requests, requests were at other replicas of the fleet, or
// they were on their way through the network and the front end. An iteration that ends after the last client has left
// reduces the first.
type IdleByCause struct {
	NoRequests *float64 `json:"no_requests"`
	Elsewhere  *float64 `json:"elsewhere,omitempty"` // of fleets of two replicas and more
	FrontEnd   *float64 `json:"front_end"`
	Starting   *float64 `json:"starting,omitempty"` // replicas that load, or that have failed and
	Down       *float64 `json:"down,omitempty"`     // will come back, where replicas come and go
}

// Energy is the energy of the window: of the GPUs, and of the servers around them.
type Energy struct {
	GPUJoules      *float64 `json:"gpu_joules"` // of all GPUs
	PerRequest     *float64 `json:"gpu_joules_per_request"`
	PerOutputToken *float64 `json:"gpu_joules_per_output_token"`
	PerToken       *float64 `json:"gpu_joules_per_token"` // of prompts and outputs
	GPUWatts       Watts    `json:"gpu_watts"`            // of one GPU; Max is of an iteration
	SystemWatts    Watts    `json:"system_watts"`         // of all servers; Max is a mean over a second or more
	// CarbonPerMillion is in grams of CO2 equivalent and USDPerMillion in US dollars, for a million output tokens; nil
	// if the intensity or the price of electricity is unknown.
	CarbonPerMillion *float64 `json:"co2e_g_per_million_output_tokens"`
	USDPerMillion    *float64 `json:"usd_per_million_output_tokens"`
}

// Watts is a mean and a highest power.
type Watts struct {
	Mean *float64 `json:"mean"`
	Max  *float64 `json:"max"`
}

// Cost is the price of the work, in US dollars.
type Cost struct {
	USDPerHour                *float64 `json:"usd_per_hour"`
	USDPerMillionOutputAtLoad *float64 `json:"usd_per_million_output_tokens_at_load"`
	USDPerMillionOutputGood   *float64 `json:"usd_per_million_output_tokens_good"`
	// USDPerMillionOutputAtCapacity is nil in the summary of one run, which does not know the capacity of
	// its system: only runs at several loads tell.
	USDPerMillionOutputAtCapacity *float64 `json:"usd_per_million_output_tokens_at_capacity"`
}

// Warning is a reason to read the numbers with care. Code is for programs, Text for people.
type Warning struct {
	Code string `json:"code"`
	Text string `json:"text"`
}
