package sim_test

import (
	"flag"
	"strconv"
	"testing"

	"clifftop/sim/engine"
	"clifftop/sim/simtest"
)

// TestTruth checks that the naive engine, the engine without spans and the engine with spans of full length give
// the same results, token for token, with every policy.
func TestTruth(t *testing.T) {
	for _, p := range simtest.Policies() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			simtest.Verify(t, p)
		})
	}
}

// TestPipelinesTruth is the same for engines with several stages, which have as many iterations in flight.
func TestPipelinesTruth(t *testing.T) {
	for _, p := range simtest.Policies() {
		if p.Name != "vllm" && p.Name != "vllm-variants" {
			continue // they do not go with a pipeline
		}
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			simtest.VerifyPipeline(t, p)
		})
	}
}

// TestPlainTruth is the same for engines without optional parts. Of many cases it demands that they take each way out of
// the plain cycle often.
func TestPlainTruth(t *testing.T) {
	t.Parallel()
	all, mixed := simtest.VerifyPlain(t)
	t.Logf("%d of %d compositions are plain, others %v; both kinds in %d cases; names forgotten %d times", all.Plain,
		all.Compositions, all.General, mixed, all.Forgotten)
	if checks, _ := strconv.Atoi(flag.Lookup("rapid.checks").Value.String()); checks < 3000 {
		return // too few to have each often
	}
	const often = 100
	for why, n := range all.General {
		if why != int(engine.IsPlain) && n < often {
			t.Errorf("%d compositions are not plain because of %v (want %d or more)", n, engine.Reason(why), often)
		}
	}
	if all.Plain < often || mixed < often || all.Forgotten < often {
		t.Errorf("%d plain compositions, %d cases with both kinds, names forgotten %d times (want %d or more)",
			all.Plain, mixed, all.Forgotten, often)
	}
}
