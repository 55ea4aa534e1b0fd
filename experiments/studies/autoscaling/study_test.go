package main

import (
	"context"
	"testing"

	"clifftop/internal/testenv"
	"clifftop/report"
)

// TestMorning runs the hours from 5 to 11, in which the load grows to 30 times what it was, and asserts the
// claims of the study about these hours for every seed.
func TestMorning(t *testing.T) {
	testenv.NeedsLong(t, "a morning of a fleet, 9 s")
	ctx := context.Background()
	x, err := newStudy(ctx)
	if err != nil {
		t.Fatal(err)
	}
	list := []fleet{named(forMean), named(forPeak), named(kedaWaiting), named(kedaConcurrent), named(knative)}
	for _, cold := range []string{colds[0], colds[2]} {
		f := named(kedaConcurrent)
		f.cold = cold
		list = append(list, f)
	}
	const fixed, peak, waiting, concurrent, serverless, quick, slow = 0, 1, 2, 3, 4, 5, 6
	tested := seeds[:testenv.Choose(1, 2)]
	runs, err := x.run(ctx, list, days[0], tested, set("workload.arrivals.begin", "5h"), set("run.duration", "6h"))
	if err != nil {
		t.Fatal(err)
	}
	for k, seed := range tested {
		of := func(i int, number func(*report.Summary) float64) float64 { return number(runs[i][k].Summary) }
		good := func(i int) float64 { return of(i, attainment) }
		p99 := func(i int) float64 { return of(i, ttftP99) }
		for _, c := range []struct {
			says  string
			holds bool
		}{
			{"a fleet sized for the mean load is overloaded", good(fixed) < .3},
			{"a fleet sized for the peak meets the objective", good(peak) > .98},
			{"requests in the system indicate how many replicas are needed", good(concurrent) > .95},
			{"scaling by them saves more than a quarter of the GPU hours", of(concurrent, paid) < .75*of(peak, paid)},
			{"the queue length does not", good(waiting) < .85},
			{"scaling by queue length costs more", of(waiting, paid) > 1.2*of(concurrent, paid)},
			{"stopping idle replicas at once costs less, but latency rises",
				of(serverless, paid) < of(concurrent, paid) && good(serverless) < good(concurrent)},
			{"the sooner replicas start, the better", good(quick) > good(concurrent) &&
				good(concurrent) > good(slow)+.01},
			{"the tails have the same order", p99(peak) < p99(concurrent) && p99(concurrent) < p99(waiting) &&
				p99(waiting) < p99(fixed)},
		} {
			if !c.holds {
				t.Errorf("seed %d: %s: false", seed, c.says)
			}
		}
		if t.Failed() {
			for i, f := range list {
				t.Logf("%s %s: %.4f good, %.1f GPU hours, TTFT p99 %.1f s", f.name, f.cold, good(i), of(i, paid),
					p99(i))
			}
		}
	}
}

// TestDays runs whole days.
func TestDays(t *testing.T) {
	testenv.NeedsLong(t, "whole days are left out, half a minute of CPU")
	ctx := context.Background()
	x, err := newStudy(ctx)
	if err != nil {
		t.Fatal(err)
	}
	saved := map[string]float64{}
	for _, day := range days {
		runs, err := x.run(ctx, []fleet{named(forPeak), named(kedaConcurrent)}, day, seeds[:2])
		if err != nil {
			t.Fatal(err)
		}
		if good := mean(runs[1], attainment); good < .95 {
			t.Errorf("%s: %.3f of the requests are good", day, good)
		}
		saved[day] = 1 - mean(runs[1], paid)/mean(runs[0], paid)
	}
	if office, flat := saved[days[0]], saved[days[1]]; office < .3 || flat > office/2 {
		t.Errorf("following the load saves %.2f of the GPU hours in office hours and %.2f on a flat day", office, flat)
	}
}
