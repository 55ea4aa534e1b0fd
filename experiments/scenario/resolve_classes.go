package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"clifftop/experiments/internal/optional"
	"clifftop/workload"
)

// body describes requests: a preset, and the keys that replace its keys.
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

// resolveBodies returns the preset's traffic with other bodies: one, or one for each class.
func resolveBodies(s *Scenario, w *Workload, preset workload.Preset) (spec workload.Spec, found findings) {
	spec = preset.Spec
	around, names := body{preset, w.Input, w.Output, w.Prefix, w.Sessions, w.LoRA}, w.adapterNames()
	if len(w.Classes) == 0 {
		found.judge(preset, w.Input, w.Output)
		if spec.Classes != nil && w.Input == nil && w.Output == nil && w.Prefix == nil && w.Sessions == nil {
			spec.Classes = slices.Clone(spec.Classes) // the preset's
			for i := range spec.Classes {
				spec.Classes[i].Adapters = w.LoRA.spec(names)
			}
			return spec, found
		}
		c := around.class()
		spec.Input, spec.Output, spec.Prefix, spec.Sessions, spec.Classes = c.Input, c.Output, c.Prefix, c.Sessions, nil
		spec.Adapters = w.LoRA.spec(names)
		return spec, found
	}
	spec.Classes, spec.ClassWeights = nil, w.ClassWeights
	for i := range w.Classes {
		k := &w.Classes[i]
		b, more := resolveBody(s, k, fmt.Sprintf("workload.classes.%d.preset", i), around)
		if !found.add(more) {
			return spec, found
		}
		c := b.class()
		c.Name, c.Weight, c.Priority = k.Name, k.Weight, int16(k.Priority)
		c.Adapters = b.lora.spec(names)
		spec.Classes = append(spec.Classes, c)
	}
	return spec, found
}

// resolveBody returns the body of a class: from its preset or else from the scenario, with the keys of the class.
// It returns the key of its preset, too.
func resolveBody(s *Scenario, k *Class, key string, around body) (b body, found findings) {
	b = around
	if k.Preset != nil {
		p, err := workload.FindPreset(*k.Preset)
		if err != nil {
			var f *workload.FieldError
			if errors.As(err, &f) {
				err = errors.New(f.Problem)
			}
			return b, s.refuse(key, "%v", err)
		}
		if len(p.Spec.Classes) > 0 {
			return b, s.refuse(key, "%s already contains several classes (want another preset)", p.Name)
		}
		found.judge(p, k.Input, k.Output)
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
	return b, found
}

// judge warns of a preset that no data stand behind.
func (f *findings) judge(p workload.Preset, input, output *Distribution) {
	if p.Judgement() && (input == nil || output == nil) {
		f.warn("judgement", "preset %s is an estimate: it is not based on a public trace", p.Name)
	}
}

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

// defaultWork describes the use of a language model in a company: judgement. With a fifth of them active in the
// busiest hour, which has a tenth of the day's requests, the requests per hour are those per day of the presets,
// halved.
func defaultWork() []HeadcountClass {
	return []HeadcountClass{
		{Preset: "ent-technical-lookup", Share: 0.6, RequestsPerHour: 3},
		{Preset: "ent-contract-analysis", Share: 0.1, RequestsPerHour: 4},
		{Preset: "ent-rnd-reasoning", Share: 0.1, RequestsPerHour: 13},
		{Preset: "ent-customer-support", Share: 0.2, RequestsPerHour: 1.5},
	}
}

// resolveHeadcount turns people into classes and a rate, which arrivals that are given replace, and shows the
// arithmetic.
func resolveHeadcount(s *Scenario) (w Workload, found findings) {
	w = s.Workload
	h := w.Headcount
	if h == nil {
		return w, found
	}
	work := h.Classes
	if work == nil {
		work = defaultWork()
	}
	active := float64(h.People) * h.Adoption * h.ActiveAtPeak
	shares, perPerson := 0.0, 0.0
	for _, c := range work {
		shares += c.Share
		perPerson += c.Share * c.RequestsPerHour
	}
	if !(perPerson > 0) {
		return w, s.refuse("workload.headcount",
			"no class sends requests (set share and requests_per_hour above 0 in at least one class)")
	}
	perPerson /= shares
	rate := active * perPerson / 3600
	var parts []string
	for _, c := range work {
		p, err := workload.FindPreset(c.Preset)
		if err != nil {
			return w, refuse(s.fieldFaults(err)...)
		}
		k := Class{Name: strings.TrimPrefix(p.Name, "ent-"), Weight: c.Share * c.RequestsPerHour,
			Preset: optional.Of(p.Name), SLO: c.SLO, Priority: c.Priority}
		if p.Sessions != nil {
			k.Sessions = &Sessions{}
		}
		w.Classes = append(w.Classes, k)
		parts = append(parts, fmt.Sprintf("%s %.4g of %.4g people at %.4g an hour", k.Name, active*c.Share/shares,
			active, c.RequestsPerHour))
	}
	text := fmt.Sprintf("%d people, of whom %.4g %% take part and %.4g %% of these are active at the peak, are %.4g: "+
		"%s; together %.4g requests/s",
		h.People, 100*h.Adoption, 100*h.ActiveAtPeak, active, strings.Join(parts, ", "), rate)
	if w.Arrivals == nil {
		w.Arrivals = &Arrivals{Stages: []Stage{{Process: "poisson", Rate: &rate}}}
	} else {
		text += ", which the arrivals given replace"
	}
	found.warn("headcount", "%s", text)
	w.Headcount = nil // it is classes and arrivals now
	return w, found
}
