package scenario

import (
	"errors"
	"fmt"
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/workload"
)

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

// resolveBodies is the preset's traffic with the bodies that replace its: one, or those of the classes.
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

// resolveBody is the body of a class: that of its preset or else of the scenario, with what the class has of its own.
// The key is that of its preset.
func resolveBody(s *Scenario, k *Class, key string, around body) (b body, found findings) {
	b = around
	if k.Preset != nil {
		p, err := workload.FindPreset(*k.Preset)
		if err != nil {
			var f *workload.FieldError
			if errors.As(err, &f) {
				err = errors.New(f.Problem)
			}
			found.fault(s.Fault(key, "%v", err))
			return b, found
		}
		if len(p.Spec.Classes) > 0 {
			found.fault(s.Fault(key, "%s already contains several classes (want another preset)", p.Name))
			return b, found
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
