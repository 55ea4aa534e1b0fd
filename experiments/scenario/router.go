package scenario

import (
	"encoding/json"
	"fmt"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/route"
)

// Router spreads the requests of a fleet over its replicas: the name of a rule, or a map of the rule and its options.
type Router struct {
	// Policy is the rule: one of clifftop catalog routers.
	Policy string `json:"policy"`
	// FrontEnds is the number of independent routers that take the requests in turn.
	FrontEnds int `json:"front_ends" range:"[1,1024]"`
	// Scrape is the period at which routers read the metrics of replicas; 0 is continuous, and null the default of
	// the rule.
	Scrape *yamldoc.Duration `json:"scrape,omitempty" range:"[0,3600]"`

	yamldoc.Choice[route.Options]
}

func defaultRouter() Router { return Router{Policy: "round-robin", FrontEnds: 1} }

// named reports whether nothing but the rule is given.
func (r *Router) named() bool { return r.FrontEnds == 1 && r.Scrape == nil && r.Named() }

// Variants implements [yamldoc.Variants].
func (r *Router) Variants() (string, map[string]yamldoc.VariantKeys) {
	keys := r.VariantKeys(BuiltIn().Routers, yamldoc.VariantKeys{})
	keys[""] = yamldoc.VariantKeys{Optional: []string{"policy"}}
	keys["*"] = yamldoc.VariantKeys{Optional: []string{"front_ends", "scrape"}}
	return "policy", keys
}

// Names implements [yamldoc.Extended].
func (*Router) Names() []string { return nil }

// Decode implements [yamldoc.SelfDecoder].
func (r *Router) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	const example = "a rule such as round-robin, or a map such as {policy: round-robin, front_ends: 2}"
	*r = defaultRouter()
	rules := rulesOf(d).Routers
	named := n
	switch n.Kind {
	case yamldoc.Text:
		r.Policy = n.Text
	case yamldoc.Map:
		if named = n.Lookup("policy"); named == nil {
			d.Fault(n.At, key, fmt.Sprintf("policy is missing (want %s)", example), "")
			return
		}
		r.Rules(rules)
		d.Fields(n, key, r)
	default:
		d.Wrong(n, key, example)
		return
	}
	if _, ok := rules.Find(named.Text); named.Kind == yamldoc.Text && !ok {
		d.Unknown(named, key, rules.Names(), "clifftop catalog routers lists all of them")
	}
}

// MarshalJSON writes the rule's name, or the map.
func (r Router) MarshalJSON() ([]byte, error) {
	if r.named() {
		return json.Marshal(r.Policy)
	}
	type keys Router
	return r.Marshal(keys(r))
}
