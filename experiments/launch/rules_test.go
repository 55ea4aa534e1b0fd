package launch

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
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
			if rules()[f.Rule] == nil {
				t.Errorf("%s %s: there is no rule %q", table.Engine, f.Name, f.Rule)
			}
		}
	}
	for name := range rules() {
		if !named[name] {
			t.Errorf("no flag has the rule %q", name)
		}
	}
}

// property is a part of the schema of scenarios.
type property struct {
	Ref        string               `json:"$ref"`
	Properties map[string]*property `json:"properties"`
	AnyOf      []*property          `json:"anyOf"`
	OneOf      []*property          `json:"oneOf"`
}

// has reports whether a key with dots is in the schema.
func (p *property) has(key string) bool {
	name, rest, more := strings.Cut(key, ".")
	if below := p.Properties[name]; below != nil && (!more || below.has(rest)) {
		return true
	}
	return slices.ContainsFunc(slices.Concat(p.AnyOf, p.OneOf), func(q *property) bool { return q.has(key) })
}

// Every key that a flag sets is a key of scenarios.
func TestKeysOfTablesAreKeysOfScenarios(t *testing.T) {
	data, err := os.ReadFile("../scenario.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	schema := &property{}
	if err := json.Unmarshal(data, schema); err != nil {
		t.Fatal(err)
	}
	if schema.has("engine.nothing") || !schema.has("engine.max_num_seqs") {
		t.Fatal("the schema is not read")
	}
	tables, err := flags.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		for _, f := range slices.Concat(table.Flags, table.File, table.Env) {
			if f.Sets != "" && !schema.has(f.Sets) {
				t.Errorf("%s %s: a scenario has no key %s", table.Engine, f.Name, f.Sets)
			}
		}
	}
}
