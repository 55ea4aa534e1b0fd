package autoscaler

import (
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/autoscale"
)

var kedaRule = Rule{
	Name:    "keda",
	Does:    "hpa on the sum of the metric; it can scale to zero",
	Source:  "KEDA, Scaling Deployments",
	Options: func() Options { return new(keda) },
}

type keda struct {
	hpa
	// Period of reading the metric.
	PollingInterval *yamldoc.Duration `json:"polling_interval,omitempty" range:"(0,3600]"`
	// Idle time before the last replica goes.
	CooldownPeriod *yamldoc.Duration `json:"cooldown_period,omitempty" range:"[0,86400]"`
	// Metric above which the first replica starts.
	ActivationThreshold *float64 `json:"activation_threshold,omitempty" range:"[0,1000000000]"`
}

func (o *keda) Policy(target float64) autoscale.Policy {
	p := autoscale.NewKEDA(target)
	o.set(&p.HPA)
	settle(&o.PollingInterval, &p.Poll)
	settle(&o.CooldownPeriod, &p.Cooldown)
	choose(&o.ActivationThreshold, &p.Activation)
	return p
}
