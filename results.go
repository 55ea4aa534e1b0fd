package clifftop

import (
	"clifftop/experiments"
	"clifftop/experiments/compare"
	"clifftop/experiments/planning"
	"clifftop/experiments/sweep"
	"clifftop/report"
	"clifftop/report/curve"
	"clifftop/report/plan"
	"clifftop/report/verdict"
)

// RunOptions are the options of [Run]. The zero value is the default.
type RunOptions = experiments.RunOptions

// RunResult is the result of [Run]: the Summary, and more on request (see [RunOptions]).
type RunResult = experiments.Result

// Summary holds the metrics of one operating point. Latencies are in milliseconds, throughput is in requests or tokens
// per second. A statistic over no sample is nil, never 0.
type Summary = report.Summary

// SweepOptions are the options of [Sweep]. The zero value is the default.
type SweepOptions = sweep.Options

// Curve is the result of [Sweep]: a [Summary] for each load, and the knee, the peak, a collapse and warning signs.
type Curve = curve.Curve

// Variant is a scenario with a name, for [Compare].
type Variant = compare.Variant

// CompareOptions are the options of [Compare]. The zero value is the default.
type CompareOptions = compare.Options

// Verdict is the result of [Compare].
type Verdict = verdict.Result

// PlanOptions are the options of [Plan]. The zero value is the default.
type PlanOptions = planning.Options

// PlanResult is the result of [Plan]: candidates ranked by cost.
type PlanResult = plan.Result
