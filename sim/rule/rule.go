// Package rule describes the rules that a scenario can name: routers, batching policies, queue orders and autoscalers.
//
// A rule stands in one file of its package and in the list of that package. Its options are the fields of a struct with
// these tags; other fields are not options:
//
//	json:"key"       the key in a scenario
//	range:"[0,1)"    the allowed numbers; of a duration in seconds
//	one:"a b"        the allowed names; a number or a truth value is the place of the name, from 0
//	required:"yes"   the key must be given
//	doc:"text"       what the option sets
//
// A number 0 that is not allowed is written as null: another rule decides. The fields of an embedded struct, and of one
// with the tag json:",inline", stand among the others.
// A type of names that several structs use has a method Names in place of the tag one.
package rule

import "slices"

// Rule is a rule under the name that scenarios give it.
type Rule[Options any] struct {
	// Name stands in scenarios.
	Name string
	// Does says in one line what the rule does, and Source names its origin.
	Does, Source string
	// Section is the key of a map that holds the options, which several rules may share. Without one they stand beside
	// the name.
	Section string
	// New returns a pointer to the options with their defaults.
	New func() Options
}

// List is the rules of one kind. The first rule of a name counts.
type List[Options any] []Rule[Options]

// Find returns the rule of a name.
func (l List[Options]) Find(name string) (r Rule[Options], ok bool) {
	i := slices.IndexFunc(l, func(r Rule[Options]) bool { return r.Name == name })
	if i < 0 {
		return r, false
	}
	return l[i], true
}

// Names returns the names of the rules.
func (l List[Options]) Names() []string {
	var names []string
	for _, r := range l {
		names = append(names, r.Name)
	}
	return names
}

// Sections returns the sections of the rules.
func (l List[Options]) Sections() []string {
	var sections []string
	for _, r := range l {
		sections = append(sections, r.Section)
	}
	return sections
}
