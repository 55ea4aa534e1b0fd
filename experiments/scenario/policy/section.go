package policy

import (
	"reflect"
	"slices"
)

// Section is the options of the policies of one engine, which stand below engine in a scenario.
type Section struct {
	// Key is the key of the section.
	Key string
	// Doc describes the section, for the JSON Schema.
	Doc string
	// New returns a pointer to a struct whose fields are the options, with their defaults.
	New func() any
}

// Options are the sections of all policies, with the values that a scenario gives. The zero value has the defaults.
type Options struct {
	parts map[string]any // by key; the defaults of those that are not there
}

// Sections lists the sections of all policies.
func Sections() (all []*Section) {
	for _, p := range All() {
		if p.Section != nil && !slices.Contains(all, p.Section) {
			all = append(all, p.Section)
		}
	}
	return all
}

// Keys implements [clifftop/experiments/scenario/yamldoc.Inline].
func (*Options) Keys() (keys []string) {
	for _, s := range Sections() {
		keys = append(keys, s.Key)
	}
	return keys
}

// Part implements [clifftop/experiments/scenario/yamldoc.Inline].
func (o *Options) Part(key string) any {
	if o.parts[key] == nil {
		if o.parts == nil {
			o.parts = map[string]any{}
		}
		for _, s := range Sections() {
			if s.Key == key {
				o.parts[key] = s.New()
			}
		}
	}
	return o.parts[key]
}

// Of returns the options of a policy; nil if it has none.
func (o *Options) Of(p *Policy) any {
	switch {
	case p.Section == nil:
		return nil
	case o.parts[p.Section.Key] == nil:
		return p.Section.New()
	}
	return o.parts[p.Section.Key]
}

// Unused lists the keys of the sections that differ from their defaults but do not belong to a policy.
func (o *Options) Unused(p *Policy) (keys []string) {
	for _, s := range Sections() {
		if given := o.parts[s.Key]; given != nil && s != p.Section && !reflect.DeepEqual(given, s.New()) {
			keys = append(keys, s.Key)
		}
	}
	return keys
}
