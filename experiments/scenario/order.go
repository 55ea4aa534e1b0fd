package scenario

import (
	"encoding/json"
	"fmt"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/unit"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/sched"
)

// Order ranks the waiting requests: the name of a rule, or a map of the rule and its options. The zero Order is that
// of the engine: first come, first served, or by priority where scheduling_policy says so.
type Order struct {
	// Rule is fcfs, priority, sjf (shortest job first), srpt (shortest remaining processing time), ljf (longest
	// job first), edf (earliest deadline first), least-slack or vtc (virtual token counters of users).
	Rule string `json:"rule,omitempty" one:"fcfs priority sjf srpt ljf edf least-slack vtc"`
	// Size is what makes a job long: the tokens of its answer, of its prompt, or of both, where a token
	// of the answer counts answer_weight times.
	Size *string `json:"size,omitempty" one:"answer prompt both"`
	// AnswerWeight is the weight of a token of the answer against one of the prompt, for size both.
	AnswerWeight *int `json:"answer_weight,omitempty" range:"[1,1000000]"`
	// Error makes the length of an answer a prediction: the true one times a lognormal factor with this
	// standard deviation of its logarithm. 0 is an oracle.
	Error *float64 `json:"error,omitempty" range:"[0,10]"`
	// Within is the deadline of a request after its arrival.
	Within *unit.Duration `json:"within,omitempty" range:"[0,)"`
	// TokenTime is the time that a token of the size takes, for least-slack.
	TokenTime *unit.Duration `json:"token_time,omitempty" range:"[0,1]"`
	// Clients is the unit whose service vtc counts: users of a closed loop, classes or sessions.
	Clients *string `json:"clients,omitempty" one:"user class session"`
	// Ageing prevents starvation: each such time of waiting counts as one token, or one priority, less.
	Ageing *unit.Duration `json:"ageing,omitempty" range:"(0,3600]"`
}

// orderRules are the rules, with the options of each.
func orderRules() map[string]yamldoc.VariantKeys {
	return map[string]yamldoc.VariantKeys{
		"":         {Optional: []string{"rule"}},
		"fcfs":     {},
		"priority": {Optional: []string{"ageing"}},
		"sjf":      {Optional: []string{"size", "answer_weight", "error", "ageing"}},
		"srpt":     {Optional: []string{"size", "answer_weight", "error", "ageing"}},
		"ljf":      {Optional: []string{"size", "answer_weight", "error", "ageing"}},
		"edf":      {Required: []string{"within"}},
		"least-slack": {Required: []string{"within", "token_time"},
			Optional: []string{"size", "answer_weight", "error"}},
		"vtc": {Optional: []string{"clients"}},
	}
}

func (o *Order) Variants() (string, map[string]yamldoc.VariantKeys) { return "rule", orderRules() }

// orderOptions is Order without its short form.
type orderOptions Order

func (o *orderOptions) Variants() (string, map[string]yamldoc.VariantKeys) {
	return "rule", orderRules()
}

func (o *Order) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	switch n.Kind {
	case yamldoc.Text:
		options := &yamldoc.Node{At: n.At, Kind: yamldoc.Map}
		options.Put("rule", n.At, n)
		d.Value(options, key, (*orderOptions)(o), "")
	case yamldoc.Map:
		if n.Get("rule") == nil {
			d.Fault(n.At, key, "rule is missing (want a rule, or a map such as {rule: sjf, error: 0.5})", "")
			return
		}
		d.Value(n, key, (*orderOptions)(o), "")
	default:
		d.Wrong(n, key, "a rule such as sjf, or a map such as {rule: sjf, error: 0.5}")
	}
}

// MarshalJSON writes null, the rule, or the map.
func (o Order) MarshalJSON() ([]byte, error) {
	if o.Rule == "" {
		return []byte("null"), nil
	}
	if o == (Order{Rule: o.Rule}) {
		return json.Marshal(o.Rule)
	}
	return json.Marshal(orderOptions(o))
}

// order is the rank of waiting requests; nil is first come, first served.
func (u engineResolver) order() (sched.Order, error) {
	s := u.Scenario
	o := s.Engine.Order
	if o.Rule == "" && s.Engine.SchedulingPolicy == "priority" {
		o.Rule = "priority"
	}
	var rank sched.Order
	size := o.size(s.Run.Seed)
	due := sched.EDF{Otherwise: optional.Value(o.Within).Clock()}
	switch o.Rule {
	case "", "fcfs":
		return nil, nil
	case "priority":
		rank = sched.ByPriority{}
	case "sjf":
		rank = sched.SJF{Size: size}
	case "srpt":
		rank = sched.SRPT{Size: size}
	case "ljf":
		rank = sched.LJF{Size: size}
	case "edf":
		rank = due
	case "least-slack":
		rank = sched.LeastSlack{EDF: due, Size: size, PerUnit: optional.Value(o.TokenTime).Clock()}
	case "vtc":
		rank = sched.VTC{Clients: o.clients()}
	default:
		return nil, fmt.Errorf("%q is not known", o.Rule)
	}
	if o.Ageing != nil {
		rank = sched.Aged{Order: rank, Per: o.Ageing.Clock()}
	}
	if v, ok := rank.(interface{ Validate() error }); ok {
		return rank, v.Validate()
	}
	return rank, nil
}

// clients says whom service is counted for.
func (o *Order) clients() sched.Client {
	switch optional.Value(o.Clients) {
	case "class":
		return sched.ByClass
	case "session":
		return sched.BySession
	}
	return sched.ByUser
}

// size is the measure of a job.
func (o *Order) size(seed uint64) sched.Size {
	z := sched.Size{PerAnswer: 1, Error: optional.Value(o.Error), Seed: seed}
	switch optional.Value(o.Size) {
	case "prompt":
		z.PerPrompt, z.PerAnswer = 1, 0
	case "both":
		z.PerPrompt, z.PerAnswer = 1, int64(max(1, optional.Value(o.AnswerWeight)))
	}
	return z
}
