package scenario

import "clifftop/experiments/scenario/yamldoc"

// Origin remembers where a scenario came from.
type origin struct {
	root   *yamldoc.Node // what was given, flags included
	file   string
	lines  []byte
	sets   []Setting                // that were applied to them, in order
	places map[string]yamldoc.Place // of dotted keys
	shared *shared                  // with all scenarios that were made of this one

	renamed []yamldoc.Renaming // old names that were found

	pool  string                   // the key of the pool that the scenario is of; empty for the whole
	fleet map[string]yamldoc.Place // Places of the whole, beside pool
}
