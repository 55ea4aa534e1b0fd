package yamldoc

import (
	"slices"

	"clifftop/sim/rule"
)

// Choice is the options of a rule, for a map that names the rule and has the options as further keys. The struct of the
// map embeds it, and implements [Variants] with [Choice.VariantKeys].
type Choice[Options any] struct {
	rules   rule.List[Options]
	name    string   // of the rule; empty where none is chosen
	options Options  // a pointer
	given   []string // keys of the options that have a value
}

// Rules sets the rules to choose from.
func (c *Choice[Options]) Rules(l rule.List[Options]) { c.rules = l }

// VariantKeys returns the keys of a map with each rule: the options and the common ones. The rules are the usual ones
// unless they were set.
func (c *Choice[Options]) VariantKeys(usual rule.List[Options], common VariantKeys) map[string]VariantKeys {
	if c.rules == nil {
		c.rules = usual
	}
	keys := map[string]VariantKeys{}
	for _, r := range c.rules {
		own := KeysWith(r.New())
		keys[r.Name] = VariantKeys{
			Required: slices.Concat(common.Required, own.Required),
			Optional: slices.Concat(common.Optional, own.Optional),
		}
	}
	return keys
}

// RuleNames returns the names of the rules.
func (c *Choice[Options]) RuleNames() []string { return c.rules.Names() }

// Keys returns the keys of the options of all rules.
func (c *Choice[Options]) Keys() (keys []string) {
	for _, r := range c.rules {
		keys = append(keys, KeysOf(r.New())...)
	}
	return keys
}

// Extension implements [Extended]: it chooses a rule.
func (c *Choice[Options]) Extension(name string) any {
	r, ok := c.rules.Find(name)
	if !ok {
		return nil
	}
	c.name, c.options = name, r.New()
	return c.options
}

// Given implements [Extended].
func (c *Choice[Options]) Given(key string) { c.given = append(c.given, key) }

// Named reports whether no option is given.
func (c *Choice[Options]) Named() bool { return len(c.given) == 0 }

// Options returns the options of a rule by its name: those that are given, or the defaults. ok is false if there is no
// such rule.
func (c *Choice[Options]) Options(rules rule.List[Options], name string) (options Options, ok bool) {
	if c.name == name && name != "" {
		return c.options, true
	}
	r, ok := rules.Find(name)
	if ok {
		options = r.New()
	}
	return options, ok
}

// Resolve gives all options of the rule their values.
func (c *Choice[Options]) Resolve(options Options) { c.options, c.given = options, KeysOf(options) }

// Marshal writes a JSON object of the keys of a struct and of the options that are given.
func (c *Choice[Options]) Marshal(keys any) ([]byte, error) {
	if c.Named() {
		return marshalObject(keys)
	}
	own, err := marshalKeys(c.options, c.given)
	if err != nil {
		return nil, err
	}
	return marshalObject(keys, own)
}
