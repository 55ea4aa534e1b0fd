package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report/collect"
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
			"input and sessions are given together (want sessions.first_prompt and later_user_tokens: whole prompts would "+
				"count the context twice)", "")
	}
	if prefix != nil {
		d.Fault(n.Get("prefix").At, yamldoc.Join(key, "prefix"),
			"prefix and sessions are given together (want sessions.system_prompt: turns repeat their conversation)", "")
	}
}

// body is what requests are made of: a preset, and the keys that replace its.
type body struct {
	preset        workload.Preset
	input, output *Distribution
	prefix        *Prefix
	sessions      *Sessions
	lora          *LoRA
}

// class is the body as the workload package takes it, without name, weight and priority.
func (b body) class() workload.ClassSpec {
	p := &b.preset
	c := workload.ClassSpec{Input: p.Spec.Input, Output: p.Spec.Output, Prefix: p.Spec.Prefix,
		Sessions: p.Spec.Sessions, Needs: p.Spec.Needs}
	if b.input != nil {
		c.Input, c.Sessions = b.input.lengths(), nil
		if p.Independent.Distribution != "" {
			c.Output = p.Independent // the law of outputs to the preset's own prompts does not apply
		}
	}
	if b.output != nil {
		c.Output = b.output.lengths()
	}
	if x := b.prefix; x != nil {
		c.Prefix = workload.PrefixSpec{
			By: x.By, Groups: limitInt32(optional.Value(x.Groups)),
			PromptsPerGroup: limitInt32(optional.Value(x.PromptsPerGroup)), SharedTokens: limitInt32(x.SharedTokens),
		}
	}
	if b.sessions != nil {
		c.Sessions = b.sessions.spec(p.Sessions)
	}
	return c
}

// bodies fills in what requests are made of: one body, or those of the classes.
func (u trafficResolver) bodies(spec *workload.Spec, preset workload.Preset) error {
	w := &u.Scenario.Workload
	around, names := body{preset, w.Input, w.Output, w.Prefix, w.Sessions, w.LoRA}, w.adapterNames()
	if len(w.Classes) == 0 {
		if spec.Classes != nil && w.Input == nil && w.Output == nil && w.Prefix == nil && w.Sessions == nil {
			spec.Classes = slices.Clone(spec.Classes) // the preset's
			for i := range spec.Classes {
				spec.Classes[i].Adapters = w.LoRA.spec(names)
			}
			return nil
		}
		c := around.class()
		spec.Input, spec.Output, spec.Prefix, spec.Sessions, spec.Classes = c.Input, c.Output, c.Prefix, c.Sessions, nil
		spec.Adapters = w.LoRA.spec(names)
		return nil
	}
	spec.Classes, spec.ClassWeights = nil, w.ClassWeights
	for i := range w.Classes {
		b, err := u.bodyOf(i, around)
		if err != nil {
			return err
		}
		k := &w.Classes[i]
		c := b.class()
		c.Name, c.Weight, c.Priority = k.Name, k.Weight, int16(k.Priority)
		c.Adapters = b.lora.spec(names)
		spec.Classes = append(spec.Classes, c)
	}
	return nil
}

// bodyOf is what the requests of class i are: those of its preset or else of the scenario, with what the class has of
// its own.
func (u trafficResolver) bodyOf(i int, around body) (body, error) {
	k, b := &u.Scenario.Workload.Classes[i], around
	if k.Preset != nil {
		p, err := workload.FindPreset(*k.Preset)
		if err != nil {
			var f *workload.FieldError
			if errors.As(err, &f) {
				err = errors.New(f.Problem)
			}
			return b, u.Scenario.Fault(fmt.Sprintf("workload.classes.%d.preset", i), "%v", err)
		}
		if len(p.Spec.Classes) > 0 {
			return b, u.Scenario.Fault(fmt.Sprintf("workload.classes.%d.preset", i),
				"%s already contains several classes (want another preset)", p.Name)
		}
		u.judged(p, k.Input, k.Output)
		b = body{preset: p, lora: around.lora}
	}
	for _, x := range []struct{ to, from **Distribution }{{&b.input, &k.Input}, {&b.output, &k.Output}} {
		if *x.from != nil {
			*x.to = *x.from
		}
	}
	switch {
	case k.Sessions != nil:
		b.sessions, b.input, b.prefix = k.Sessions, nil, nil
	case k.Input != nil:
		b.sessions = nil
	}
	if k.LoRA != nil {
		b.lora = k.LoRA
	}
	if k.Prefix != nil {
		b.prefix, b.sessions = k.Prefix, nil
	}
	return b, nil
}

// judged warns of a preset that no data stand behind.
func (u trafficResolver) judged(p workload.Preset, input, output *Distribution) {
	if p.Judgement() && (input == nil || output == nil) {
		u.Warn("judgement", "preset %s is an estimate: it is not based on a public trace", p.Name)
	}
}

// ClassName is the name of a class of requests, as a scenario or a trace calls it; empty without one.
func (u *Setup) ClassName(class uint16) string {
	if r := u.Traffic.Recording; r != nil && int(class) < len(r.classes) {
		return r.classes[class]
	}
	if list := u.Traffic.Spec.Classes; int(class) < len(list) {
		return list[class].Name
	}
	if class == 0 {
		return ""
	}
	return strconv.Itoa(int(class)) // of a source that is not the scenario's
}

// classes are the kinds of requests to report apart.
func (u reportResolver) classes() ([]collect.ClassSpan, error) {
	s := u.Scenario
	var spans []collect.ClassSpan
	if r := u.Traffic.Recording; r != nil {
		for i, name := range r.classes {
			if name == "" && i == 0 {
				name = "none"
			}
			spans = append(spans, collect.ClassSpan{Name: name})
		}
		return spans, nil
	}
	for i, c := range u.Traffic.Spec.Classes {
		span := collect.ClassSpan{Name: c.Name}
		if i < len(s.Workload.Classes) {
			slo, err := s.Workload.Classes[i].SLO.Objective()
			if err != nil {
				return nil, s.Fault(fmt.Sprintf("workload.classes.%d.slo", i), "%v", err)
			}
			span.SLO = slo
		}
		spans = append(spans, span)
	}
	return spans, nil
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

// adapterNames lists the adapters that the traffic names.
func (w *Workload) adapterNames() (names []string) {
	add := func(l *LoRA) {
		if l != nil && l.Name != "" && !slices.Contains(names, l.Name) {
			names = append(names, l.Name)
		}
	}
	add(w.LoRA)
	for i := range w.Classes {
		add(w.Classes[i].LoRA)
	}
	return names
}

// UsesAdapters reports whether requests may use LoRA adapters.
func (t *Traffic) UsesAdapters() bool {
	if r := t.Recording; r != nil {
		return r.adapters
	}
	return t.Spec.Adapters.Count > 0 || slices.ContainsFunc(t.Spec.Classes, func(c workload.ClassSpec) bool {
		return c.Adapters.Count > 0
	})
}

// adapters limits the adapters of an iteration: without max_loras to one where the traffic has adapters, as vLLM does.
func (u fleetResolver) adapters() error {
	limited := func(policy string) bool { return policy == "vllm" || policy == "preemptive" }
	for i := range u.Pools {
		p := u.Pools[i].Setup
		e := &p.Scenario.Engine
		switch {
		case e.MaxLoRAs != nil && !limited(e.Policy):
			u.Warn("unused", "engine.max_loras has no effect on policy %s", e.Policy)
		case e.MaxLoRAs == nil && e.Policy == "vllm" && u.Traffic.UsesAdapters():
			e.MaxLoRAs = optional.Of(1)
			u.Warn("max_loras", "max_loras is 1, vLLM's default: the requests of an iteration use one adapter")
		}
	}
	return nil
}
