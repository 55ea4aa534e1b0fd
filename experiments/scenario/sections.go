package scenario

import (
	"reflect"
	"slices"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/rule"
	"clifftop/sim/sched"
)

// PolicyOptions are the options of batching policies, as far as they are given: a section of the engine for each policy
// that has any, or for several policies. The zero value has the defaults.
type PolicyOptions struct {
	policies rule.List[sched.Options]
	sections map[string]sched.Options // by key
}

// Bind implements [yamldoc.Inline].
func (o *PolicyOptions) Bind(d *yamldoc.Decoder) { o.policies = rulesOf(d).Policies }

// rules returns the rules that have sections, one for each section.
func (o *PolicyOptions) rules() (list rule.List[sched.Options]) {
	if o.policies == nil {
		o.policies = sched.Policies()
	}
	for _, r := range o.policies {
		if r.Section != "" && !slices.Contains(list.Sections(), r.Section) {
			list = append(list, r)
		}
	}
	return list
}

// Keys implements [yamldoc.Inline].
func (o *PolicyOptions) Keys() []string { return o.rules().Sections() }

// Part implements [yamldoc.Inline].
func (o *PolicyOptions) Part(key string) any {
	if o.sections[key] == nil {
		if o.sections == nil {
			o.sections = map[string]sched.Options{}
		}
		rules := o.rules()
		o.sections[key] = rules[slices.Index(rules.Sections(), key)].New()
	}
	return o.sections[key]
}

// Of returns the options of a policy.
func (o *PolicyOptions) Of(r *sched.Rule) sched.Options {
	options := r.New()
	if given := o.sections[r.Section]; given != nil {
		yamldoc.CopyKeys(options, given)
	}
	return options
}

// Unused lists the keys of the sections that differ from their defaults but do not belong to a policy.
func (o *PolicyOptions) Unused(policy *sched.Rule) (keys []string) {
	for _, r := range o.rules() {
		given := o.sections[r.Section]
		if given != nil && r.Section != policy.Section && !reflect.DeepEqual(given, r.New()) {
			keys = append(keys, r.Section)
		}
	}
	return keys
}
