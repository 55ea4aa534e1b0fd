package launch

import (
	"slices"
	"testing"

	"clifftop/experiments/launch/flags"
)

// Every rule that a table names exists, and every rule is named by a table.
func TestTablesAndRulesFit(t *testing.T) {
	tables, err := flags.All()
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, table := range tables {
		for _, f := range slices.Concat(table.Flags, table.File, table.Env) {
			if f.Rule == "" {
				continue
			}
			named[f.Rule] = true
			if rules[f.Rule] == nil {
				t.Errorf("%s %s: there is no rule %q", table.Engine, f.Name, f.Rule)
			}
		}
	}
	for name := range rules {
		if !named[name] {
			t.Errorf("no flag has the rule %q", name)
		}
	}
}
