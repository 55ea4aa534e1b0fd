package scenario

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"clifftop/experiments/scenario/order"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/sched"
)

// Order ranks the waiting requests: the name of a rule, or a map of the rule and its options. The zero Order is that
// of the engine: first come, first served, or by priority where scheduling_policy says so.
type Order struct {
	// Rule is the rule.
	Rule order.Name `json:"rule,omitempty"`

	options order.Options // of the rule; nil where none is given
}

// orderKeys is Order without its short form.
type orderKeys Order

// Variants implements [yamldoc.Variants].
func (o *orderKeys) Variants() (string, map[string]yamldoc.VariantKeys) {
	keys := order.Rules().Variants(yamldoc.VariantKeys{})
	keys[""] = yamldoc.VariantKeys{Optional: []string{"rule"}}
	return "rule", keys
}

// Extension implements [yamldoc.Extended].
func (o *orderKeys) Extension(name string) any { return order.Rules().Choose(name, &o.options) }

// Names and Given implement [yamldoc.Extended].
func (*orderKeys) Names() []string { return nil }
func (*orderKeys) Given(string)    {}

func (o *Order) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	switch n.Kind {
	case yamldoc.Text:
		keys := &yamldoc.Node{At: n.At, Kind: yamldoc.Map}
		keys.Put("rule", n.At, n)
		d.Value(keys, key, (*orderKeys)(o), "")
	case yamldoc.Map:
		if n.Get("rule") == nil {
			d.Fault(n.At, key, "rule is missing (want a rule, or a map such as {rule: sjf, error: 0.5})", "")
			return
		}
		d.Value(n, key, (*orderKeys)(o), "")
	default:
		d.Wrong(n, key, "a rule such as sjf, or a map such as {rule: sjf, error: 0.5}")
	}
}

// MarshalJSON writes null, the rule, or the map.
func (o Order) MarshalJSON() ([]byte, error) {
	switch {
	case o.Rule == "":
		return []byte("null"), nil
	case o.options == nil || reflect.ValueOf(o.options).Elem().IsZero():
		return json.Marshal(o.Rule)
	}
	return yamldoc.MarshalObject(orderKeys(o), o.options)
}

// order is the rank of waiting requests; nil is first come, first served.
func (u engineResolver) order() (sched.Order, error) {
	s := u.Scenario
	o, key := s.Engine.Order, "order"
	if o.Rule == "" {
		key = "scheduling_policy"
		o.Rule = order.Name(s.Engine.SchedulingPolicy)
	}
	rule, ok := order.Rules().Find(string(o.Rule))
	if !ok {
		return nil, fmt.Errorf("%q is not known", o.Rule)
	}
	if o.options == nil {
		o.options = rule.Options()
	}
	if i, ok := o.options.(order.Idle); ok {
		if why := i.Idle(u.orderTraffic()); why != "" {
			u.Warn(rule.Name, "%s is %s, but %s", key, rule.Name, why)
		}
	}
	rank := o.options.Order(s.Run.Seed)
	if v, ok := rank.(interface{ Validate() error }); ok {
		return rank, v.Validate()
	}
	return rank, nil
}

// orderTraffic returns the properties of the traffic that orders use.
func (u engineResolver) orderTraffic() order.Traffic {
	w := &u.Scenario.Workload
	return order.Traffic{
		Labelled: w.Trace != nil || len(w.Classes) > 0,
		Users: w.Arrivals != nil && slices.ContainsFunc(w.Arrivals.Stages, func(t Stage) bool {
			return t.Users != nil
		}),
	}
}
