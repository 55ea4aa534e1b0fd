package plan

import (
	"fmt"

	"clifftop/report"
	"clifftop/report/layout"
)

// Schema identifies the JSON form of a [Result].
const Schema = "clifftop.plan/1"

// Result answers which GPUs, how many, and at what price, for a traffic and an SLO. Costs are in US dollars.
type Result struct {
	Schema   string `json:"schema"`
	Clifftop string `json:"clifftop"` // version of the program
	Scenario any    `json:"scenario"` // as resolved, of the first candidate; set by the caller
	Seed     uint64 `json:"seed"`
	Partial  bool   `json:"partial"` // the search was interrupted

	Model   string      `json:"model"`
	Traffic Traffic     `json:"traffic"`
	SLO     *report.SLO `json:"slo"`
	// Classes are the classes of the traffic, each of which keeps an SLO of its own.
	Classes []Class `json:"classes,omitempty"`
	// SLOAssumed says that the scenario asked for none.
	SLOAssumed bool   `json:"slo_assumed"`
	Counts     Counts `json:"counts"`

	// Candidates are those that meet the SLO, by cost: those without a price come last.
	Candidates []Candidate `json:"candidates"`
	// Refused are the other candidates, by reason.
	Refused []Refusal `json:"refused"`
	// Why compares the first candidate with others, in sentences.
	Why []string `json:"why"`
	// Flips say what would change the answer.
	Flips []string `json:"what_would_change_the_answer"`
	// Assumptions of the plan, as texts.
	Assumptions []string `json:"assumptions"`

	Autoscaling *Autoscaling   `json:"autoscaling"` // nil for a traffic without hours
	OnPrem      *OnPremCost    `json:"on_prem"`
	API         *APIComparison `json:"api"`

	// CostBySLO is the cheapest way to meet the SLO with all limits on latency multiplied by Factor, and CostByLoad the
	// cost of the best candidates at a load.
	CostBySLO  []CostPoint      `json:"cost_by_slo"`
	CostByLoad []LoadLine       `json:"cost_by_load"`
	Warnings   []report.Warning `json:"warnings"`
	// Effort counts the requests that were simulated, of all candidates. A candidate near the limits is run again, four
	// times as long: its first run is repeated.
	Effort report.Effort `json:"effort"`
}

// Verification is the result of hours of a whole fleet behind a router. The hours are independent of each other, and
// the same traffic for all fleets.
type Verification struct {
	HourCount
	// Share is the share of hours that should meet the SLO.
	Share float64 `json:"share"`
	// Fewer is the result of the fleet with one replica less; nil for a single replica.
	Fewer *HourCount `json:"one_fewer"`
	// HorizonS is the length of an hour, LeadS that of the same traffic before it, both in seconds.
	HorizonS float64 `json:"horizon_s"`
	LeadS    float64 `json:"lead_s"`
	Router   string  `json:"router"`
}

// HourCount counts the hours that meet the SLO.
type HourCount struct {
	Met int `json:"met"`
	Of  int `json:"of"`
	// ShareLow and ShareHigh bound the share of all hours that meet the SLO, one-sided at 95 % each (Clopper and
	// Pearson).
	ShareLow  float64 `json:"share_low"`
	ShareHigh float64 `json:"share_high"`
}

// Class is a class of the traffic, and its SLO.
type Class struct {
	Name string      `json:"name"`
	SLO  *report.SLO `json:"slo"`
}

// Traffic is the traffic of a plan.
type Traffic struct {
	MeanRequestsPerS float64 `json:"mean_requests_per_s"`
	// PeakRequestsPerS is the mean rate of the busiest hour, and PlannedRequestsPerS that with growth.
	PeakRequestsPerS    float64   `json:"peak_requests_per_s"`
	Growth              float64   `json:"growth"`
	PlannedRequestsPerS float64   `json:"planned_requests_per_s"`
	HourlyRequestsPerS  []float64 `json:"hourly_requests_per_s"` // nil for a constant rate
	Process             string    `json:"process"`               // of arrivals in the busiest hour
	MeanInputTokens     float64   `json:"mean_input_tokens"`
	MeanOutputTokens    float64   `json:"mean_output_tokens"`
	// Split says how the traffic is divided among the replicas.
	Split string `json:"split"`
}

// Counts are numbers of candidates by fate.
type Counts struct {
	Candidates int `json:"candidates"`
	DoNotFit   int `json:"do_not_fit"`
	NotBuilt   int `json:"not_possible"`        // the model cannot be spread that way
	ByBound    int `json:"discarded_by_bounds"` // before anything was simulated
	Simulated  int `json:"simulated"`
	Met        int `json:"met_slo"`
	Runs       int `json:"runs"` // simulations in all
}

// Candidate is a way to serve the traffic.
type Candidate struct {
	Name             string            `json:"name"` // such as "2 × (4 × h100-sxm fp8, TP 4)"
	GPU              string            `json:"gpu"`
	Dtype            string            `json:"dtype"`
	Native           bool              `json:"native_dtype"` // the published format of the weights
	KVCacheDtype     string            `json:"kv_cache_dtype"`
	TensorParallel   int               `json:"tensor_parallel_size"`
	PipelineParallel int               `json:"pipeline_parallel_size"`
	ExpertParallel   int               `json:"expert_parallel_size"`
	Engine           map[string]string `json:"engine,omitempty"` // knobs that differ between candidates
	Settings         []string          `json:"settings"`         // the candidate as --set KEY=VALUE

	GPUsPerReplica int `json:"gpus_per_replica"`
	Replicas       int `json:"replicas"`
	GPUs           int `json:"gpus"` // of all replicas
	// KVTokens is the room of a replica's KV pool; 0 where it is unlimited.
	KVTokens int64 `json:"kv_tokens"`

	// Error is the validated error of the step model that the plan allows for, as a fraction; Validated says whether
	// any measured run stands behind it, and Scope which.
	Error     float64 `json:"error"`
	Validated bool    `json:"validated"`
	Scope     string  `json:"error_scope"`
	// Predictive has the error bars of a replica; nil if nothing like it was measured.
	Predictive *report.Predictive `json:"predictive,omitempty"`
	// Apart means that the candidate stands outside the ranking: no measured run stands behind it, but behind others.
	Apart bool `json:"apart,omitempty"`

	USDPerGPUHour *float64 `json:"usd_per_gpu_hour"` // nil: the price is unknown
	PriceSource   string   `json:"price_source"`
	USDPerHour    *float64 `json:"usd_per_hour"`
	USDPerMonth   *float64 `json:"usd_per_month"` // of 730 hours
	// USDPerMonthRange is the cost with as few replicas, and as many, as the error and the width of the search allow.
	USDPerMonthRange *[2]float64 `json:"usd_per_month_range"`
	PerMillion       TokenCost   `json:"usd_per_million_output_tokens"`
	Capacity         *Capacity   `json:"capacity"` // of one replica

	// Verified says in how many simulated hours the fleet met the SLO; nil if no hours of it were simulated, so that
	// the number of replicas rests on short runs.
	Verified *Verification `json:"verified"`

	AtPlan Point `json:"at_plan"`
	// LimitedBy is the first limit that breaks with one replica less, or a little more load; empty if it was not
	// searched.
	LimitedBy string `json:"limited_by,omitempty"`

	Pareto      bool   `json:"pareto"`
	DominatedBy string `json:"dominated_by,omitempty"`
	// Group is the number, from 1, of a group of candidates whose costs do not differ significantly.
	Group int `json:"group"`

	Nodes    *Nodes         `json:"nodes"` // nil where no machine is modelled
	Energy   Energy         `json:"energy_estimate"`
	Headroom []HeadroomStep `json:"headroom,omitempty"`
	Spare    *SparePlan     `json:"spare,omitempty"`
}

// Capacity is the load that one replica carries within the SLO: it passes at the one and fails at the other.
type Capacity struct {
	PassesRequestsPerS float64  `json:"passes_requests_per_s"`
	FailsRequestsPerS  *float64 `json:"fails_requests_per_s"` // nil where none was found
	// Resolved says that the ends were brought near each other; elsewhere the search ended when the number of
	// replicas was settled.
	Resolved bool `json:"resolved"`
}

// Point has the results of a replica at the planned load, with the margin for the model's error.
type Point struct {
	RequestsPerS     float64              `json:"requests_per_s"` // of one replica, with the allowance for the error
	Limits           []report.LimitResult `json:"limits"`
	SLOUse           float64              `json:"slo_use"` // the statistic nearest its limit, as a fraction of it
	Attainment       *float64             `json:"attainment"`
	OutputTokensPerS *float64             `json:"output_tokens_per_s"` // of one replica
	BusyFraction     *float64             `json:"busy_fraction"`
	KVUsageMax       *float64             `json:"kv_usage_max"`
	InSystem         report.Level         `json:"in_system"` // requests at once in one replica
}

// TokenCost is the cost of a million output tokens. Idle hours are paid.
type TokenCost struct {
	AtCapacity *float64 `json:"at_capacity"` // with replicas as loaded as the SLO allows
	AtPlan     *float64 `json:"at_plan"`     // in the planned peak hour
	AtLoad     *float64 `json:"at_load"`     // at the mean load of today
	Good       *float64 `json:"good"`        // in the planned peak hour, counting only requests within the SLO
}

// Energy is the power and the energy in the planned peak hour, as simulated at the load with the allowance for the
// error.
type Energy struct {
	Kilowatts               *float64 `json:"kilowatts"`        // of the GPUs
	ServerKilowatts         *float64 `json:"server_kilowatts"` // of the servers around them
	WattHoursPerMillionToks *float64 `json:"wh_per_million_output_tokens"`
	// CarbonPerMillion is in grams of CO2 equivalent and USDPerMillion is the price of electricity, for a million
	// output tokens; nil if the scenario does not say them.
	CarbonPerMillion *float64 `json:"co2e_g_per_million_output_tokens"`
	USDPerMillion    *float64 `json:"electricity_usd_per_million_output_tokens"`
}

// Nodes are the machines that hold a plan's GPUs, where they are bought or rented whole.
type Nodes struct {
	Count       int `json:"count"`
	GPUsPerNode int `json:"gpus_per_node"`
	IdleGPUs    int `json:"idle_gpus"` // that no replica uses
}

// WholeNodes returns the nodes for replicas of the given GPUs. A replica lies in one node if it fits, and in whole
// nodes if it does not.
func WholeNodes(replicas, gpusPerReplica, gpusPerNode int) Nodes {
	n := Nodes{GPUsPerNode: gpusPerNode}
	if each := gpusPerNode / gpusPerReplica; each > 0 {
		n.Count = (replicas + each - 1) / each
	} else {
		n.Count = replicas * ((gpusPerReplica + gpusPerNode - 1) / gpusPerNode)
	}
	n.IdleGPUs = n.Count*gpusPerNode - replicas*gpusPerReplica
	return n
}

// text says what stays idle.
func (n *Nodes) text(c *Candidate) string {
	text := fmt.Sprintf("%d of %d GPUs", n.Count, n.GPUsPerNode)
	if n.IdleGPUs == 0 {
		return text + ", all of them in use"
	}
	text += fmt.Sprintf(": %d GPUs, of which %d stay idle", n.Count*n.GPUsPerNode, n.IdleGPUs)
	if c.USDPerGPUHour != nil {
		whole := *c.USDPerGPUHour * float64(n.Count*n.GPUsPerNode)
		text += fmt.Sprintf("; whole nodes cost %s/h", layout.Dollars(whole))
	}
	return text
}

// HeadroomStep is the plan under more than it was made for.
type HeadroomStep struct {
	What   string  `json:"what"` // such as "load × 1.2"
	Factor float64 `json:"factor"`
	Holds  *bool   `json:"holds"` // nil if unknown
	Breaks string  `json:"breaks,omitempty"`
}

// SparePlan is how many replicas the plan needs so that the SLO holds when some fail.
type SparePlan struct {
	Failures int `json:"failures"`
	Replicas int `json:"replicas"`
	// ColdReplicas is the same where no prompt is found in a prefix cache; 0 where that does not suffice or was not
	// looked for.
	ColdReplicas int      `json:"cold_replicas"`
	USDPerMonth  *float64 `json:"usd_per_month"`
	ColdUSD      *float64 `json:"cold_usd_per_month"`
	// Degraded says how the plan without spares does when as many fail.
	Degraded string `json:"degraded"`
}

// Refusal says why a candidate is out.
type Refusal struct {
	Name string `json:"name"`
	// Reason is does_not_fit, not_possible, slo_floor, too_many_gpus, too_dear or slo.
	Reason string `json:"reason"`
	Text   string `json:"text"`
	// MissingBytes is the memory that lacks on each GPU, for one that does not fit.
	MissingBytes *float64 `json:"missing_bytes_per_gpu,omitempty"`
	// Excess is the least ratio by which a limit of the SLO is missed, for slo_floor and slo.
	Excess *float64 `json:"excess,omitempty"`
}

// The reasons of refusals.
const (
	DoesNotFit  = "does_not_fit"
	NotPossible = "not_possible"
	SLOFloor    = "slo_floor"
	TooManyGPUs = "too_many_gpus"
	TooDear     = "too_dear"
	MissesSLO   = "slo"
)

// CostPoint is the cost of the cheapest plan that keeps the SLO with its limits on latency multiplied by Factor.
type CostPoint struct {
	Factor      float64 `json:"factor"`
	USDPerMonth float64 `json:"usd_per_month"`
	Name        string  `json:"name"`
}

// LoadLine is the cost of a candidate by load.
type LoadLine struct {
	Name   string      `json:"name"`
	Points []LoadPoint `json:"points"`
}

// LoadPoint is the cost at a load, in requests per second of the planned peak hour.
type LoadPoint struct {
	RequestsPerS float64 `json:"requests_per_s"`
	Replicas     int     `json:"replicas"`
	USDPerMonth  float64 `json:"usd_per_month"`
}
