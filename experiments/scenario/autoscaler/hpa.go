package autoscaler

import (
	"clifftop/experiments/scenario/yamldoc"
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
	// Period of the HPA's loop.
	SyncPeriod *yamldoc.Duration `json:"sync_period,omitempty" range:"(0,3600]"`
	// Deviation of metric/target from 1 that changes nothing.
	Tolerance *float64 `json:"tolerance,omitempty" range:"[0,1)"`
	// Replicas that may always be added in a scale_up_period.
	ScaleUpPods *int `json:"scale_up_pods,omitempty" range:"[1,4096]"`
	// Period of scale_up_pods.
	ScaleUpPeriod *yamldoc.Duration `json:"scale_up_period,omitempty" range:"(0,3600]"`
	// How long higher counts are kept.
	StabilizationWindow *yamldoc.Duration `json:"stabilization_window,omitempty" range:"[0,3600]"`
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
