package yamldoc

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Variants is a map whose keys depend on the value of one of them.
type Variants interface {
	// Variants names the deciding key and the keys that go with each of its values; under "" those
	// of a map without it, under "*" those that go with all.
	Variants() (decider string, keys map[string]VariantKeys)
}

// VariantKeys are the keys that go with a value of the deciding key.
type VariantKeys struct{ Required, Optional []string }

// Extended is a struct with [Variants] some of whose keys are fields of another struct, one for each value of the
// deciding key: the options of a rule stand beside the rule.
type Extended interface {
	Variants
	// Extension returns a pointer to the struct for a value, into which its keys are decoded; nil where there is
	// none.
	Extension(value string) any
	// Names returns the values of the deciding key; none if another check reports unknown ones.
	Names() []string
	// Given is called with each key of that struct that has a value.
	Given(key string)
}

// extension is the further struct of a map, invalid where there is none, and all keys that some value of the deciding
// key goes with.
func extension(x Extended, n *Node, names []string) (more reflect.Value, all []string) {
	decider, variants := x.Variants()
	if w := n.Get(decider); w != nil && w.Kind == Text {
		if p := x.Extension(w.Text); p != nil {
			more = reflect.ValueOf(p).Elem()
		}
	}
	all = slices.Clone(names)
	for _, value := range slices.Sorted(maps.Keys(variants)) {
		for _, name := range slices.Concat(variants[value].Required, variants[value].Optional) {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return more, all
}

// variantFields finds the keys that go with the deciding key's value, and what to do about missing
// ones. An unknown value allows all keys: its own fault is enough.
func (d *Decoder) variantFields(n *Node, key string, u Variants, names []string) (allowed []string, missing func()) {
	decider, variants := u.Variants()
	value := ""
	if w := n.Get(decider); w != nil && w.Kind == Text {
		value = w.Text
	}
	keys, ok := variants[value]
	if !ok {
		return names, nil
	}
	always := variants["*"].Optional
	if value != "" {
		allowed = append(allowed, decider)
	}
	allowed = slices.Concat(allowed, keys.Required, keys.Optional, always)
	why := ""
	if value != "" {
		why = fmt.Sprintf("%s %s needs it", decider, value)
	}
	return allowed, func() { d.Require(n, key, why, keys.Required...) }
}

// Require reports the keys that a map does not have, or has as null, with a remark if that is not empty.
func (d *Decoder) Require(n *Node, key, remark string, names ...string) {
	if remark != "" {
		remark = " (" + remark + ")"
	}
	for _, name := range names {
		if n.Lookup(name) == nil {
			d.Fault(n.At, key, name+" is missing"+remark, "")
		}
	}
}
