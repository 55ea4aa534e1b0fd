package autoscaler

import (
	"clifftop/experiments/scenario/unit"
	"clifftop/sim/autoscale"
	"clifftop/sim/clock"
)

var hpaRule = Rule{
	Name:    "hpa",
	Does:    "⌈replicas · metric / target⌉",
	Source:  "Kubernetes, Horizontal Pod Autoscaling",
	Options: func() Options { return new(hpa) },
}

type hpa struct {
	window
	// SyncPeriod is the period of the loop of the HPA, which keda uses too.
	SyncPeriod *unit.Duration `json:"sync_period,omitempty" range:"(0,3600]"`
	// Tolerance is how far from 1 the ratio of metric and target may be.
	Tolerance *float64 `json:"tolerance,omitempty" range:"[0,1)"`
	// ScaleUpPods may always be added in a scale_up_period, and as many as there are.
	ScaleUpPods   *int           `json:"scale_up_pods,omitempty" range:"[1,4096]"`
	ScaleUpPeriod *unit.Duration `json:"scale_up_period,omitempty" range:"(0,3600]"`
	// StabilizationWindow is how long a higher recommendation delays the removal of replicas.
	StabilizationWindow *unit.Duration `json:"stabilization_window,omitempty" range:"[0,3600]"`
}

func (*hpa) Defaults() Defaults {
	return Defaults{Metric: autoscale.Waiting, Scrape: 15 * clock.Second}
}

func (o *hpa) Policy(target float64) autoscale.Policy {
	p := autoscale.NewHPA(target)
	o.set(p)
	return p
}

// set sets the options.
func (o *hpa) set(p *autoscale.HPA) {
	p.Window = o.Longest()
	settle(&o.SyncPeriod, &p.Loop)
	settle(&o.ScaleUpPeriod, &p.Period)
	settle(&o.StabilizationWindow, &p.Stabilisation)
	choose(&o.Tolerance, &p.Tolerance)
	choose(&o.ScaleUpPods, &p.AddAtOnce)
}
