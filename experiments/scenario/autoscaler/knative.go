package autoscaler

import (
	"clifftop/experiments/scenario/unit"
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
	// TargetUtilization is the part of the target that knative aims at.
	TargetUtilization *float64 `json:"target_utilization,omitempty" range:"(0,1]"`
	// PanicWindow is the part of the window by which knative panics, and PanicThreshold how many times the ready
	// replicas make it do so.
	PanicWindow    *float64 `json:"panic_window,omitempty" range:"(0,1]"`
	PanicThreshold *float64 `json:"panic_threshold,omitempty" range:"(1,1000]"`
	// MaxScaleUpRate and MaxScaleDownRate bound by how many times the number changes at once.
	MaxScaleUpRate   *float64 `json:"max_scale_up_rate,omitempty" range:"(1,1000000]"`
	MaxScaleDownRate *float64 `json:"max_scale_down_rate,omitempty" range:"(1,1000000]"`
	// ScaleToZeroGracePeriod is how long no replica must be needed before knative removes the last one.
	ScaleToZeroGracePeriod *unit.Duration `json:"scale_to_zero_grace_period,omitempty" range:"[0,86400]"`
	// TickInterval is the period of knative's loop.
	TickInterval *unit.Duration `json:"tick_interval,omitempty" range:"(0,3600]"`
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
