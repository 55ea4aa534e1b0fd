package gate

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// relation is a law about the results of several commands.
type relation struct {
	name  string
	check func(t *rapid.T)
}

// relations are all laws.
func relations() []relation {
	return slices.Concat(neutral, units, fleets, clients, limits, commands, directions)
}

// TestRelations asserts laws about the results of several commands. The cases that -rapid.checks asks for are divided
// among them. With fewer cases than relations, some relations are left out.
func TestRelations(t *testing.T) {
	all := relations()
	total := checks()
	each, every := max(1, total/len(all)), max(1, len(all)/total)
	names := map[string]bool{}
	setChecks(t, each)
	for i, r := range all {
		if names[r.name] {
			t.Errorf("two relations are named %q", r.name)
		}
		names[r.name] = true
		if i%every == 0 {
			t.Run(r.name, func(t *testing.T) { rapid.Check(t, r.check) })
		}
	}
	t.Logf("%d relations with %d cases each", len(all), each)
}

// traffic is a light open loop of a synthetic process, with fixed or random lengths. Its rate is a few requests per
// second.
func traffic(d drawer) map[string]any {
	w := map[string]any{
		"arrivals": map[string]any{"process": "poisson", "rate": d.between(1, 12)},
		"output":   one(d, any(d.whole(5, 150)), any(map[string]any{"distribution": "uniform", "min": 2, "max": 200})),
		"input":    one(d, any(d.whole(5, 900)), any(map[string]any{"distribution": "gamma", "mean": 400, "cv": 1.2})),
	}
	return w
}

// plain draws a scenario of one replica without a lifecycle, whose traffic ends after a number of requests. Its arrivals
// have two stages, so that no saturation is looked for.
func plain(t *rapid.T) doc {
	return rapid.Custom(func(t *rapid.T) doc {
		d := drawer{t}
		s := doc{"workload": traffic(d), "run": law{"requests": requests, "seed": d.whole(0, 1e6), "warmup": "none"}}
		w := s["workload"].(map[string]any)
		if d.chance(.5) {
			w["arrivals"] = map[string]any{"process": "closed", "users": d.whole(1, 30), "think_time": d.duration(.01, 2)}
		} else {
			a := w["arrivals"].(map[string]any)
			w["arrivals"] = []any{map[string]any{"process": a["process"], "rate": a["rate"], "duration": "4s"},
				map[string]any{"process": "constant", "rate": a["rate"]}}
		}
		if d.chance(.4) {
			s["engine"] = map[string]any{"policy": one(d, policyNames()...)}
		}
		if d.chance(.4) {
			s["gpu"] = one(d, "h100-sxm", "h200-sxm", "b200-sxm")
		}
		return valid(t, s.clone())
	}).Draw(t, "scenario")
}

// summary runs a scenario and reads the result. Flags may follow.
func summary(t *rapid.T, s doc, flags ...string) map[string]any {
	t.Helper()
	return result(t, append([]string{"run", s.file(t, "scenario"), "--quiet", "--format", "json"}, flags...)...)
}

// result runs a command that must succeed and reads its JSON. A run that cannot end is no case.
func result(t *rapid.T, args ...string) map[string]any {
	t.Helper()
	o := command(t, args...)
	if o.status == 1 && stuck.MatchString(o.stderr) {
		t.Skip(o.stderr)
	}
	if o.status != 0 {
		t.Fatalf("exit status %d: %sclifftop %s", o.status, o.stderr, shown(args))
	}
	return decode(t, o.stdout)
}

// always are the parts of a summary that speak of the scenario.
var always = []string{"scenario", "engine_defaults", "clifftop", "warnings"}

// same asserts that two results are equal apart from some paths.
func same(t *rapid.T, a, b map[string]any, without ...string) {
	t.Helper()
	if d := differences(a, b, append(slices.Clone(always), without...)...); len(d) > 0 {
		t.Fatalf("the results differ:\n%s", strings.Join(d, "\n"))
	}
}

// pair asserts that two scenarios have the same result apart from some paths.
func pair(t *rapid.T, a, b doc, without ...string) {
	t.Helper()
	same(t, summary(t, a), summary(t, b), without...)
}

// served asserts that two scenarios serve the same requests equally.
func served(t *rapid.T, a, b doc) {
	t.Helper()
	equal(t, summary(t, a), summary(t, b))
}

// equal asserts that two results have the same requests, tokens and latencies.
func equal(t *rapid.T, a, b map[string]any) {
	t.Helper()
	for _, key := range []string{"requests", "tokens", "latency_ms"} {
		if d := differences(a[key], b[key]); len(d) > 0 {
			t.Fatalf("%s differ:\n%s", key, strings.Join(d, "\n"))
		}
	}
}

// at is a number of a summary; not a number if it is null.
func at(t *rapid.T, sum map[string]any, path string) float64 {
	t.Helper()
	v, ok := doc(sum).get(path).(float64)
	if !ok {
		t.Fatalf("%s is %v (want a number)", path, doc(sum).get(path))
	}
	return v
}
