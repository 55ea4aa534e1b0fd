package autoscaler

import (
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/autoscale"
	"clifftop/sim/clock"
)

var knativeRule = Rule{
	Name:    "knative",
	Does:    "⌈concurrency / (target · utilization)⌉ with a panic window; it can scale to zero",
	Source:  "Knative Serving, Autoscaling",
	Options: func() Options { return new(knative) },
}

type knative struct {
	window
	// Part of the target that is aimed at.
	TargetUtilization *float64 `json:"target_utilization,omitempty" range:"(0,1]"`
	// Part of the window that shows a reason for panic.
	PanicWindow *float64 `json:"panic_window,omitempty" range:"(0,1]"`
	// Needed over ready replicas that start panic.
	PanicThreshold *float64 `json:"panic_threshold,omitempty" range:"(1,1000]"`
	// Most growth in one step, as a factor.
	MaxScaleUpRate *float64 `json:"max_scale_up_rate,omitempty" range:"(1,1000000]"`
	// Most reduction in one step, as a factor.
	MaxScaleDownRate *float64 `json:"max_scale_down_rate,omitempty" range:"(1,1000000]"`
	// Idle time before the last one goes.
	ScaleToZeroGracePeriod *yamldoc.Duration `json:"scale_to_zero_grace_period,omitempty" range:"[0,86400]"`
	// Period of the loop.
	TickInterval *yamldoc.Duration `json:"tick_interval,omitempty" range:"(0,3600]"`
}

func (*knative) Defaults() Defaults {
	return Defaults{Metric: autoscale.Concurrency, OnlyMetric: true, Scrape: clock.Second}
}

func (o *knative) Policy(target float64) autoscale.Policy {
	p := autoscale.NewKnative(target)
	settle(&o.Window, &p.Window)
	settle(&o.TickInterval, &p.Tick)
	settle(&o.ScaleToZeroGracePeriod, &p.Grace)
	choose(&o.TargetUtilization, &p.Utilisation)
	choose(&o.PanicWindow, &p.PanicPart)
	choose(&o.PanicThreshold, &p.PanicThreshold)
	choose(&o.MaxScaleUpRate, &p.ScaleUp)
	choose(&o.MaxScaleDownRate, &p.ScaleDown)
	return p
}
