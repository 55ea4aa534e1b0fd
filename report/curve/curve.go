package curve

import "clifftop/report"

// Schema identifies the JSON form of a [Curve].
const Schema = "clifftop.curve/1"

// Curve is the result of a sweep: one summary for each load, and the findings from all of them. Make it with [New].
type Curve struct {
	Schema   string  `json:"schema"`
	Clifftop string  `json:"clifftop"` // version of the program
	Over     string  `json:"over"`     // what varies: "rate", "users" or a scenario key
	Partial  bool    `json:"partial"`  // the sweep was interrupted: loads are missing; set by the caller
	Points   []Point `json:"points"`   // in order of Value

	// Saturation has the rates at which the system saturates; nil if what varies is not a rate, or they are unknown.
	Saturation *report.Saturation `json:"saturation"`

	Knee     *Knee     `json:"knee"`
	Peak     *Peak     `json:"peak"`
	Collapse *Collapse `json:"collapse"`
	// UsefulCollapse is the same of the tokens that are of use: those within the objective or, without one, of requests
	// that complete. Timeouts and retries let it come while the output stays what it was.
	UsefulCollapse *Collapse     `json:"useful_collapse"`
	FirstLimit     *Limit        `json:"first_limit"`
	WarningSigns   []WarningSign `json:"signs"` // each where it first shows
	// USL and Bounds are nil where what varies is not a load, or too little is known.
	USL    *USL    `json:"usl"`
	Bounds *Bounds `json:"bounds"`
	// Capacity is the highest load that meets the objective; nil where none was looked for. It is set by
	// [Curve.SetCapacity].
	Capacity *Capacity `json:"capacity"`
	// Accuracy says how far the numbers can be trusted; nil where no machine is modelled. It is set by the caller.
	Accuracy *report.Accuracy `json:"accuracy"`
	// Predictive has the error bars; nil if nothing like the runs was measured. It is set by the caller.
	Predictive *report.Predictive `json:"predictive,omitempty"`
	// Thresholds are the thresholds that the findings depend on.
	Thresholds Thresholds       `json:"thresholds"`
	Warnings   []report.Warning `json:"warnings"` // reasons to read what the points show with care
	// Effort counts the requests that were simulated for the points, and those that the caller has added for searches.
	Effort report.Effort `json:"effort"`

	scan    scan
	plateau float64 // beyond the peak throughput is higher by this fraction at most
	// read gives the summary of a point that has none; nil where all are kept.
	read func(i int) (*report.Summary, error)
	of   int // points of the curve that this one shows, where it leaves some out
}

// Point is one load and its result.
type Point struct {
	Value float64 `json:"value"`
	// Summary is nil where results are read when they are needed; see [Curve.Summary].
	Summary *report.Summary `json:"summary"`
	// Short means that the window was too short for the system to fill: the point gives no findings.
	Short bool `json:"short"`
	// WarningSigns are the codes of all warning signs that show at this load.
	Signs []string `json:"signs"`
}

// Knee is the load beyond which more load buys latency rather than throughput: the point of maximum
// power, which is output throughput divided by mean end-to-end latency.
type Knee struct {
	Value            float64 `json:"value"`
	OutputTokensPerS float64 `json:"output_tokens_per_s"`
	E2EMeanMs        float64 `json:"e2e_mean_ms"`
	// MarginalValue is the last load up to which each further unit of load brings at least a
	// quarter of the throughput that a unit brings at the lowest load; nil when it always does.
	MarginalValue *float64 `json:"marginal_value"`
	Evidence      string   `json:"evidence"`
}

// Peak is the highest throughput seen. On a plateau it is the lowest load at which throughput is as good as
// the highest: within its confidence interval, or 3 %.
type Peak struct {
	Value            float64 `json:"value"`
	OutputTokensPerS float64 `json:"output_tokens_per_s"`
	// AtEdge says that throughput is highest at the highest load that can be judged, and clearly so: the true
	// peak may lie beyond.
	AtEdge bool `json:"at_edge"`
	// USDPerMillionOutput is the price of a million output tokens there, at capacity; nil where prices are unknown.
	USDPerMillionOutput *float64 `json:"usd_per_million_output_tokens"`
}

// Collapse is the first load beyond the peak at which throughput has fallen by more than chance explains, and
// from where it stays so to the end of the sweep.
type Collapse struct {
	Value            float64 `json:"value"`
	OutputTokensPerS float64 `json:"output_tokens_per_s"`
	FallFraction     float64 `json:"fall_fraction"` // of the peak's throughput, at the worst load
	Evidence         string  `json:"evidence"`
}

// Limit is the resource that stops throughput from rising with load.
type Limit struct {
	// Resource is kv, seats, token_budget, policy, compute, memory_bandwidth, gpu, users (a closed loop with too few of
	// them) or clients (that leave before the output is complete).
	Resource string  `json:"resource"`
	Value    float64 `json:"value"` // the lowest load at which it binds
	Evidence string  `json:"evidence"`
}

// WarningSign is a warning sign of saturation, and the load at which it first shows.
type WarningSign struct {
	Code     string  `json:"code"`
	Value    float64 `json:"value"`
	Evidence string  `json:"evidence"`
}
