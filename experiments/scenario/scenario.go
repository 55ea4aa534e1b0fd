package scenario

import (
	"clifftop/workload"
)

// Scenario is an experiment: what is served, on what, by which engine, under which traffic, and what
// is asked of it. [Parse] and [Load] read one from YAML; [Default] is the one that an empty file
// gives. Keys are the json tags.
type Scenario struct {
	// Name is the title of the results.
	Name string `json:"name" empty:"allowed"`
	// Model is a name or alias from the catalog, or the path of a Hugging Face config.json or of its folder.
	Model string `json:"model"`
	// AllowUnknown accepts a config.json with an unknown model_type or unknown kinds of layers. They count as full
	// attention, and every result has a warning that names them.
	AllowUnknown bool `json:"allow_unknown,omitempty"`
	// GPU is a name or alias from the catalog, or the path of a GPU record.
	GPU string `json:"gpu"`
	// Deployment places the model on its GPUs.
	Deployment Deployment `json:"deployment"`
	// Engine holds the parameters of the serving engine, under vLLM's names.
	Engine Engine `json:"engine"`
	// Overheads are the delays between client and engine, and the CPU time of the host.
	Overheads Overheads `json:"overheads"`
	// StepTime is the model of the duration of one iteration.
	StepTime StepTime `json:"step_time"`
	// Workload is the traffic.
	Workload Workload `json:"workload"`
	// Clients sets timeouts, retries and the reading speed of clients.
	Clients Clients `json:"clients"`
	// SLO holds the latency limits that a request must meet.
	SLO SLO `json:"slo"`
	// Cost holds prices.
	Cost Cost `json:"cost"`
	// Energy says what GPUs need around them, and what electricity costs and emits.
	Energy Energy `json:"energy"`
	// Run sets the length of the simulation and what is measured.
	Run RunSpec `json:"run"`
	// Pools are groups of equal replicas in a mixed fleet; without it all replicas are those of the deployment.
	Pools []Pool `json:"pools,omitempty"`
	// Disaggregation sets how prefill pools and decode pools work together.
	Disaggregation *Disaggregation `json:"disaggregation,omitempty"`
	// Offload is storage for KV beyond GPU memory; without it there is none.
	Offload *Offload `json:"offload,omitempty"`
	// Lifecycle sets how replicas start, fail, stop and scale; without it all replicas are always ready.
	Lifecycle *Lifecycle `json:"lifecycle,omitempty"`
	// Accuracy is a file of own measured runs, written by clifftop validate --write. They update the error bars.
	Accuracy string `json:"accuracy,omitempty" empty:"allowed"`
	// Plan sets what clifftop plan chooses from; null is all defaults.
	Plan *Planning `json:"plan,omitempty"`

	origin *origin        // where the keys stand; nil for a scenario made in Go
	role   string         // of the pool that the scenario is of; empty for the whole
	shares map[string]int // parts of replicas, one of which is simulated, by role
}

// Default is the scenario that an empty file gives.
func Default() *Scenario {
	return &Scenario{
		Model: "llama-3.1-8b",
		GPU:   "h100-sxm",
		Deployment: Deployment{
			TensorParallelSize: 1, PipelineParallelSize: 1, DataParallelSize: 1, ExpertParallelSize: 1,
			All2AllBackend: "auto",
			Dtype:          "auto", MoEDtype: "auto", KVCacheDtype: "auto",
			Replicas: 1, Router: defaultRouter(),
		},
		Engine:   defaultEngine(),
		StepTime: StepTime{Kind: "kernels", Roofline: defaultRoofline()},
		Workload: Workload{Sampling: "greedy", ClassWeights: workload.OfRequests},
		Clients:  defaultClients(),
		Energy:   Energy{ServerPower: 1.45, PUE: 1},
		Run:      RunSpec{Warmup: Warmup{Auto: true}, Seed: 1, Replications: 1},
	}
}

// apart reports whether a replica computes only prompts, or only outputs.
func (s *Scenario) apart() bool { return s.role == "prefill" || s.role == "decode" }

// Replicated reports whether the scenario asks for more than one run of each kind.
func (s *Scenario) Replicated() bool { return s.Run.Replications > 1 || s.Run.Precision != nil }

// Endless reports whether nothing in the scenario says when the run ends.
func (s *Scenario) Endless() bool {
	a := s.Workload.Arrivals
	return s.Run.Requests == nil && s.Run.Duration == nil && s.Workload.Trace == nil && (a == nil || !a.Listed)
}

// Planning is the scenario's plan, or the default one.
func (s *Scenario) Planning() (p Planning) {
	if s.Plan != nil {
		return *s.Plan
	}
	p.SetDefaults()
	return p
}
