package scenario

import (
	"encoding/json"
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/workload"
)

// Class is one of several kinds of traffic. Keys that it leaves out are those of its preset, or without one, of the
// traffic around it.
type Class struct {
	// Name is that of the class in results.
	Name string `json:"name"`
	// Weight is the share of the class, relative to the others: of the requests, or as class_weights says. In a closed
	// loop it is the share of the users.
	Weight float64 `json:"weight" range:"[0,1000000000000]"`
	// Preset names the base of the class; its arrivals are not used.
	Preset *string `json:"preset,omitempty"`
	// Input is the law of prompt lengths, in tokens.
	Input *Distribution `json:"input,omitempty"`
	// Output is the law of output lengths, in tokens.
	Output *Distribution `json:"output,omitempty"`
	// Prefix makes prompts share their first tokens.
	Prefix *Prefix `json:"prefix,omitempty"`
	// Sessions makes requests turns of conversations.
	Sessions *Sessions `json:"sessions,omitempty"`
	// LoRA says which adapters requests use.
	LoRA *LoRA `json:"lora,omitempty"`
	// Clients are those of the class; without them they are the scenario's.
	Clients *Clients `json:"clients,omitempty"`
	// SLO is the objective of the class; without one it is held to that of the scenario.
	SLO SLO `json:"slo"`
	// Priority is that of the requests under a priority policy; lower goes first.
	Priority int `json:"priority" range:"[-32768,32767]"`
}

func (c *Class) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	d.Require(n, key, "", "name", "weight")
	for limit := range c.SLO.Limits {
		if m := n.Get("slo"); limit[:min(4, len(limit))] == "itl_" && m.Kind == yamldoc.Map {
			d.Fault(m.Get(limit).At, yamldoc.Join(key, "slo."+limit),
				"inter-token gaps are not measured per class (want a limit on tpot)", "")
		}
	}
	checkSessions(d, n, key, c.Sessions, c.Input, c.Prefix)
}

// checkSessions refuses what does not go with conversations.
func checkSessions(d *yamldoc.Decoder, n *yamldoc.Node, key string, s *Sessions, input *Distribution, prefix *Prefix) {
	if s == nil {
		return
	}
	if input != nil {
		d.Fault(n.Get("input").At, yamldoc.Join(key, "input"),
			"input and sessions are given together (want sessions.first_prompt and later_user_tokens: whole "+
				"prompts would count the context twice)", "")
	}
	if prefix != nil {
		d.Fault(n.Get("prefix").At, yamldoc.Join(key, "prefix"),
			"prefix and sessions are given together (want sessions.system_prompt: turns repeat their conversation)", "")
	}
}

// LoRA says which adapters requests use: one by its name, or several that are numbered from 1. The turns of a
// conversation use the same one.
type LoRA struct {
	// Name is that of the one adapter.
	Name string `json:"-"`
	// Adapters is the number of adapters. Classes that do not name theirs share them.
	Adapters int `json:"adapters" range:"[1,1048576]"`
	// Zipf gives the k-th adapter the weight k to the power of -zipf; null makes all equally frequent.
	Zipf *float64 `json:"zipf,omitempty" range:"[0,100]"`
	// Share is the part of the requests, or of the conversations, that use an adapter; null is all. The others use the
	// base model.
	Share *float64 `json:"share,omitempty" range:"(0,1]"`
}

// MarshalJSON writes the name, or the keys.
func (l LoRA) MarshalJSON() ([]byte, error) {
	if l.Name != "" {
		return json.Marshal(l.Name)
	}
	type plain LoRA
	return json.Marshal(plain(l))
}

func (l *LoRA) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	switch {
	case n.Kind == yamldoc.Text && n.Text != "":
		*l = LoRA{Name: n.Text}
	case n.Kind == yamldoc.Map:
		type plain LoRA
		var x plain
		d.Value(n, key, &x, "")
		d.Require(n, key, "want the number of adapters", "adapters")
		*l = LoRA(x)
	default:
		d.Wrong(n, key, "the name of an adapter, or a map such as {adapters: 8, zipf: 1}")
	}
}

// spec is the law as the workload package takes it; nil is the base model. Named adapters have the numbers after
// those that a scenario can count.
func (l *LoRA) spec(names []string) workload.AdapterSpec {
	switch {
	case l == nil:
		return workload.AdapterSpec{}
	case l.Name != "":
		at := slices.Index(names, l.Name)
		return workload.AdapterSpec{First: workload.MaxAdapters + int32(at) + 1, Count: 1, Share: 1}
	}
	a := workload.AdapterSpec{First: 1, Count: int32(l.Adapters), Zipf: optional.Value(l.Zipf), Share: 1}
	optional.Set(&a.Share, l.Share)
	return a
}
