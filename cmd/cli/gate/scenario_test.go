package gate

import (
	"errors"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
)

// requests is the number of requests of a run, unless its length is given in another way.
const requests = 120

// scenarios are valid scenarios over all keys of the schema.
var scenarios = rapid.Custom(func(t *rapid.T) doc {
	d := drawer{t}
	s := doc(d.object("", schema()).(map[string]any))
	d.fleet(s)
	run := s["run"].(map[string]any)
	if run["duration"] == nil {
		run["requests"] = requests
	}
	d.amend("", map[string]any(s))
	d.cheap(s)
	s = valid(t, s.clone())
	d.cheap(s) // of what is left
	return valid(t, s)
})

// fleet gives one scenario in four pools. Half of those are for disaggregated prefill and decode.
func (d drawer) fleet(s doc) {
	if !d.chance(.25) {
		return
	}
	item := schema().Properties["pools"].Items
	pools := []any{d.object("pools[]", item), d.object("pools[]", item)}
	first, second := pools[0].(map[string]any), pools[1].(map[string]any)
	first["name"], second["name"] = "a", "b"
	if first["replicas"] == nil {
		first["replicas"] = d.whole(1, 3)
	}
	delete(first, "role")
	delete(second, "role")
	if d.chance(.5) {
		first["role"], second["role"] = "prefill", "decode"
		for _, p := range pools { // pools that exchange KV serve one model
			delete(p.(map[string]any), "model")
		}
		if d.chance(.8) {
			s["disaggregation"] = d.object("disaggregation", alternatives(schema().Properties["disaggregation"])[0])
		}
	} else if d.chance(.3) {
		first["role"] = "both"
	}
	s["pools"] = pools
	if o, ok := s["deployment"].(map[string]any); ok {
		delete(o, "replicas")
	}
}

// cheap gives an open loop of one stage a lifecycle. The command does not look for the saturation of a fleet that
// changes, which takes as long as 40,000 requests or more. TestRelations has scenarios without one.
func (d drawer) cheap(s doc) {
	if s["lifecycle"] != nil {
		return
	}
	switch arrivals := doc(s.clone()).get("workload.arrivals").(type) {
	case []any:
		if len(arrivals) > 1 {
			return
		}
	case map[string]any:
		if arrivals["process"] == "closed" || arrivals["process"] == "all-at-once" || arrivals["users"] != nil {
			return
		}
	}
	if s.clone().get("workload.trace") == nil {
		s["lifecycle"] = map[string]any{}
	}
}

// mostRepairs bounds the rounds in which a scenario is made valid.
const mostRepairs = 40

// valid removes from a scenario what it refuses. A scenario that stays invalid is not used.
func valid(t *rapid.T, s doc) doc {
	for range mostRepairs {
		faults := refused(t, s)
		if len(faults) == 0 {
			return s
		}
		removed := false
		for _, f := range faults {
			removed = repair(s, f) || removed
		}
		if !removed {
			t.Skipf("not repaired: %v\n%s", faults, s)
		}
	}
	t.Skipf("not repaired in %d rounds: %s", mostRepairs, s)
	return nil
}

// repair removes what a fault names.
func repair(s doc, f *yamldoc.Fault) bool {
	if f.Key != "run" && s.remove(f.Key) {
		return true
	}
	for _, key := range slices.Sorted(maps.Keys(s)) { // a fault of a default, or of the whole
		if key != "run" {
			delete(s, key)
			return true
		}
	}
	return false
}

// refused are the faults of a scenario.
func refused(t *rapid.T, s doc) yamldoc.Faults {
	parsed, err := scenario.Parse(folder+"/scenario.yaml", s.bytes())
	if err == nil {
		_, err = parsed.Resolve()
	}
	var all yamldoc.Faults
	var single *yamldoc.Fault
	switch {
	case err == nil:
		return nil
	case errors.As(err, &all):
		return all
	case errors.As(err, &single):
		return yamldoc.Faults{single}
	}
	t.Fatalf("an error without a place: %v\n%s", err, s)
	return nil
}
