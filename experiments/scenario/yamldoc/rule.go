package yamldoc

import (
	"fmt"
	"reflect"
	"slices"
)

// Rule is a rule that a scenario can name, such as a router. It has options of its own, which are keys beside its
// name.
type Rule[Options any] struct {
	// Name stands in scenarios.
	Name string
	// Does says in one line what the rule does, and Source names its origin.
	Does, Source string
	// Options returns a pointer to a struct whose fields are the options, none of which is given.
	Options func() Options
}

// Rules lists the rules of one kind.
type Rules[Options any] []Rule[Options]

// Find returns the rule of a name.
func (rules Rules[Options]) Find(name string) (rule Rule[Options], ok bool) {
	i := slices.IndexFunc(rules, func(r Rule[Options]) bool { return r.Name == name })
	if i < 0 {
		return rule, false
	}
	return rules[i], true
}

// Choose sets options to those of the rule of a name and returns them, for [Extended]. It returns nil if there is no
// such rule.
func (rules Rules[Options]) Choose(name string, options *Options) any {
	rule, ok := rules.Find(name)
	if !ok {
		return nil
	}
	*options = rule.Options()
	return *options
}

// Names returns the names of the rules.
func (rules Rules[Options]) Names() []string {
	var names []string
	for _, r := range rules {
		names = append(names, r.Name)
	}
	return names
}

// Variants returns the keys of a map that names a rule, for [Variants]: the keys of the rule and the common ones.
func (rules Rules[Options]) Variants(common VariantKeys) map[string]VariantKeys {
	keys := map[string]VariantKeys{}
	for _, r := range rules {
		own := KeysWith(r.Options())
		keys[r.Name] = VariantKeys{
			Required: slices.Concat(common.Required, own.Required),
			Optional: slices.Concat(common.Optional, own.Optional),
		}
	}
	return keys
}

// CopyOf returns a pointer to a copy of the struct that the pointer points to.
func CopyOf[T any](pointer T) T {
	copied := reflect.New(reflect.TypeOf(pointer).Elem())
	copied.Elem().Set(reflect.ValueOf(pointer).Elem())
	return copied.Interface().(T)
}

// NamesOfAll returns the names of values.
func NamesOfAll[T fmt.Stringer](values []T) (names []string) {
	for _, v := range values {
		names = append(names, v.String())
	}
	return names
}

// ValueNamed returns the value of a name; the first one if there is none.
func ValueNamed[T fmt.Stringer](values []T, name string) T {
	for _, v := range values {
		if v.String() == name {
			return v
		}
	}
	return values[0]
}
