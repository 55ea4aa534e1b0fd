package scenario

import (
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/autoscale"
	"clifftop/sim/route"
	"clifftop/sim/rule"
	"clifftop/sim/sched"
)

// Rules are the rules that scenarios can name. [BuiltIn] has those of Clifftop; a program may put its own before them.
type Rules struct {
	Policies    rule.List[sched.Options]
	Orders      rule.List[sched.OrderOptions]
	Routers     rule.List[route.Options]
	Autoscalers rule.List[autoscale.Options]
}

// BuiltIn returns the rules of Clifftop.
func BuiltIn() *Rules {
	return &Rules{
		Policies: sched.Policies(), Orders: sched.Orders(), Routers: route.Rules(), Autoscalers: autoscale.Rules(),
	}
}

func (r *Rules) decoder(file string, lines []byte) *yamldoc.Decoder {
	d := yamldoc.NewDecoder(file, lines)
	d.Context = r
	return d
}

// rulesOf returns the rules that the document can name.
func rulesOf(d *yamldoc.Decoder) *Rules {
	if r, ok := d.Context.(*Rules); ok {
		return r
	}
	return BuiltIn()
}
