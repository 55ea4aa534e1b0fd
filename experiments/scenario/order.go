package scenario

import (
	"encoding/json"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/sched"
)

// Order ranks the waiting requests: the name of a rule, or a map of the rule and its options. The zero Order is that
// of the engine: first come, first served, or by priority where scheduling_policy says so.
type Order struct {
	// Rule is the rule.
	Rule string `json:"rule,omitempty"`

	yamldoc.Choice[sched.OrderOptions]
}

// Variants implements [yamldoc.Variants].
func (o *Order) Variants() (string, map[string]yamldoc.VariantKeys) {
	keys := o.VariantKeys(BuiltIn().Orders, yamldoc.VariantKeys{})
	keys[""] = yamldoc.VariantKeys{Optional: []string{"rule"}}
	return "rule", keys
}

// Names implements [yamldoc.Extended].
func (o *Order) Names() []string { return o.RuleNames() }

func (o *Order) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	o.Rules(rulesOf(d).Orders)
	switch n.Kind {
	case yamldoc.Text:
		keys := &yamldoc.Node{At: n.At, Kind: yamldoc.Map}
		keys.Put("rule", n.At, n)
		d.Fields(keys, key, o)
	case yamldoc.Map:
		if n.Get("rule") == nil {
			d.Fault(n.At, key, "rule is missing (want a rule, or a map such as {rule: sjf, error: 0.5})", "")
			return
		}
		d.Fields(n, key, o)
	default:
		d.Wrong(n, key, "a rule such as sjf, or a map such as {rule: sjf, error: 0.5}")
	}
}

// MarshalJSON writes null, the rule, or the map.
func (o Order) MarshalJSON() ([]byte, error) {
	switch {
	case o.Rule == "":
		return []byte("null"), nil
	case o.Named():
		return json.Marshal(o.Rule)
	}
	type keys Order
	return o.Marshal(keys(o))
}
