package main

import (
	"context"
	"math"
	"sync"
	"testing"

	"clifftop/internal/testenv"
)

// shared is the study that all tests use, because the search for the saturation of the replicas takes long.
var shared = sync.OnceValues(func() (*study, error) { return newStudy(context.Background()) })

// TestOneOfFour asserts the claims of the study about the loss of one replica of four, for every seed.
func TestOneOfFour(t *testing.T) {
	testenv.NeedsLong(t, "fleets of four with a failure, 4 s")
	ctx := context.Background()
	x, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	list := []system{
		named(crashPatient), named(crashLeaving), named(crashBudgeted), named(crashBlind), named(drained),
		named(slowAware), named(slowBlind), named(cutOff),
	}
	const patient, leaving, budgeted, blind, drain, aware, slow, cut = 0, 1, 2, 3, 4, 5, 6, 7
	tested := seeds[:testenv.Choose(1, 2)]
	runs, err := x.run(ctx, list, []float64{low, high}, tested, set("run.duration", "20m"))
	if err != nil {
		t.Fatal(err)
	}
	for k, seed := range tested {
		of := func(i int) *course { return runs[i][0][k] }
		loaded := func(i int) *course { return runs[i][1][k] }
		during := func(c *course) float64 { return c.goodIn(lost, lost+outage) }
		for _, c := range []struct {
			says  string
			holds bool
		}{
			{"below (n − 1)/n three replicas suffice once the router notices the loss", of(patient).recovered() < 60 &&
				of(leaving).recovered() < 60 && of(blind).recovered() < 60 && of(cut).recovered() < 60},
			{"above that load, a queue remains until the fourth replica is back", loaded(patient).recovered() > outage &&
				!math.IsInf(loaded(patient).recovered(), 1)},
			{"clients that wait lose requests", of(patient).unserved() > 0 && of(cut).unserved() > 0},
			{"clients that retry lose none", of(leaving).unserved() == 0},
			{"but above (n − 1)/n fleets with retries never recover", math.IsInf(loaded(leaving).recovered(), 1) &&
				loaded(leaving).goodIn(900, 1100) < .05},
			{"with a retry budget they recover", loaded(budgeted).recovered() < 2*outage},
			{"draining a replica has no effect on requests", of(drain).unserved() == 0 && of(drain).recovered() == 0},
			{"a router that uses load avoids a slow replica", during(of(aware)) > .98},
			{"with another router a slow replica is worse than a failed one", during(of(slow)) < during(of(blind))-.1},
			{"a failed replica has the fewest outstanding requests and attracts traffic",
				of(patient).unserved() > 1.5*of(blind).unserved()},
		} {
			if !c.holds {
				t.Errorf("seed %d: %s: false", seed, c.says)
			}
		}
		if t.Failed() {
			for i, s := range list {
				for j, l := range []float64{low, high} {
					c := runs[i][j][k]
					t.Logf("%s at %.1f: %.3f good in the outage, recovered after %.0f s, %.4f unserved", s.name, l,
						during(c), c.recovered(), c.unserved())
				}
			}
		}
	}
}

// TestOneOfN: n replicas tolerate the loss of one up to a load of about (n − 1)/n.
func TestOneOfN(t *testing.T) {
	ctx := context.Background()
	x, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	around := func(n int) []float64 {
		at := float64(n-1) / float64(n)
		return []float64{at * .88, at * 1.1}
	}
	good, err := x.withoutOne(ctx, sizes, around, seeds[:1])
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range sizes {
		if below, above := good[i][0][0], good[i][1][0]; below < fine || above >= fine {
			t.Errorf("of %d one is lost: %.3f of the requests are good 12 %% below (n − 1)/n, %.3f 10 %% above", n,
				below, above)
		}
	}
}

// TestCaches: conversations lose their cached prefixes twice: when the replica fails and when it returns.
func TestCaches(t *testing.T) {
	ctx := context.Background()
	x, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	tested := seeds[:testenv.Choose(1, 2)]
	talks, err := x.converse(ctx, tested)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range routers {
		for k := range tested {
			c := talks[i][k]
			at := func(n int) float64 { return c.missed(spans[n].from, spans[n].to) }
			before, without, again, end := at(0), at(1), at(2), at(3)
			kept := name != "least-requests"
			if kept && (without < 1.3*before || again < 1.1*before || again > without) || !kept &&
				(without > 1.2*before || again > 1.2*before) {
				t.Errorf("%s, seed %d: no cache has %.3f of the tokens before, %.3f without the replica, %.3f when it is back, %.3f at the end", name, seeds[k], before, without, again, end)
			}
		}
	}
}
