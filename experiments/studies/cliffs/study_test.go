package main

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/studies/paper"
	"clifftop/internal/testenv"
	"clifftop/model"
	"clifftop/report/curve"
)

// find returns the cliff of a name.
func find(t *testing.T, name string) *cliff {
	t.Helper()
	list, err := all()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(c *cliff) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("no cliff is called %s", name)
	}
	return list[i]
}

// pair runs a cliff and its first control at the published loads, on the seeds that it was not chosen on.
func pair(t *testing.T, c *cliff) (base, control *runs) {
	t.Helper()
	list, err := c.run(context.Background(), []variant{baseline, c.controls[0]}, users, seeds)
	if err != nil {
		t.Fatal(err)
	}
	return list[0], list[1]
}

// fallsAndDoesNot asserts that throughput falls in the base and not in the control, and that a sweep reports it.
func fallsAndDoesNot(t *testing.T, base, control *runs) {
	t.Helper()
	if d := base.change(before, after); !base.falls(before, after) {
		t.Errorf("from %d to %d users throughput changes by %.0f (%.0f to %.0f), want a fall", before, after, d.mean,
			d.low, d.high)
	}
	if d := control.change(before, after); control.falls(before, after) {
		t.Errorf("with %s it falls too, by %.0f (%.0f to %.0f)", control.name, -d.mean, -d.high, -d.low)
	}
	b, w := base.curve(), control.curve()
	if w.Collapse != nil || w.UsefulCollapse != nil {
		t.Errorf("control: the sweep reports collapse %+v, useful collapse %+v", w.Collapse, w.UsefulCollapse)
	}
	if base.cliff.published == nil {
		return // the fall is not in the output rate
	}
	if b.Collapse == nil || b.Collapse.Value != after {
		t.Errorf("base: the sweep reports collapse %+v", b.Collapse)
	}
	if b.FirstLimit == nil || b.FirstLimit.Resource != "kv" {
		t.Errorf("base: the sweep reports first limit %+v", b.FirstLimit)
	}
	if b.Peak == nil || b.Peak.Value != before || b.Peak.AtEdge {
		t.Errorf("base: the sweep reports peak %+v", b.Peak)
	}
}

// spent returns the share of GPU time in the column with this title, at the higher load.
func spent(t *testing.T, r *runs, title string) float64 {
	t.Helper()
	for _, c := range columns() {
		if c.title == title {
			return r.mean(after, c.of)
		}
	}
	t.Fatalf("no column is called %s", title)
	return 0
}

// hasSign reports whether a sweep has a warning sign.
func hasSign(c *curve.Curve, code string) bool {
	return slices.ContainsFunc(c.WarningSigns, func(s curve.WarningSign) bool { return s.Code == code })
}

// TestLiteral: throughput at four loads is within 15 % of the published numbers, and it falls with the prefix hit rate.
func TestLiteral(t *testing.T) {
	c := find(t, "literal")
	base, control := pair(t, c)
	for i, u := range users {
		x := estimate(base.throughput(u)).mean
		if off := x/c.published[i] - 1; math.Abs(off) > .15 {
			t.Errorf("%d users: %.0f tokens/s, %+.1f %% from the published %.0f", u, x, 100*off, c.published[i])
		}
	}
	fallsAndDoesNot(t, base, control)
	if d := control.change(before, after); d.low <= 0 {
		t.Errorf("with %s throughput changes by %.0f (%.0f to %.0f), want a rise", control.name, d.mean, d.low, d.high)
	}
	hits := func(r *runs, users int) float64 { return r.mean(users, columns()[0].of) }
	if full := 5600. / 6400; math.Abs(hits(base, 10)-full) > .001 || hits(base, 200) > .001 ||
		math.Abs(hits(control, 200)-full) > .01 {
		t.Errorf("of prompt tokens are found at 10 users %.3f, at 200 %.3f, and %.3f with %s; a document is %.3f of a prompt",
			hits(base, 10), hits(base, 200), hits(control, 200), control.name, full)
	}
	if b := base.curve(); !hasSign(b, "prefix_thrash") || !hasSign(b, "busy_but_flat") ||
		hasSign(control.curve(), "prefix_thrash") {
		t.Errorf("signs of the base %+v, of the control %+v", b.WarningSigns, control.curve().WarningSigns)
	}
	if rule, seen := predicted(base, control, after); rule > seen || seen > .5 {
		t.Errorf("the base has %.2f of the control's throughput, the rule predicts at least %.2f", seen, rule)
	}
	if lost, more := spent(t, base, "GPU time: lost cache"), spent(t, control, "GPU time: lost cache"); lost < .6 ||
		more > .1 {
		t.Errorf("%.3f of the GPU's time goes into what the cache has lost, %.3f with %s", lost, more, control.name)
	}
	if blocks, more := *base.at(10)[0].System.KVBlocks,
		*control.at(10)[0].System.KVBlocks; math.Abs(float64(more)/float64(blocks)-4) > .001 {
		t.Errorf("the control's pool has %d blocks, the base's %d", more, blocks)
	}
}

// TestLiteralKnee: prefix hits last as long as the documents of all users fit into the cache, and end soon after, for
// every size of the pool.
func TestLiteralKnee(t *testing.T) {
	c := find(t, "literal")
	const document, prompt, answer = 5600., 6400., 180.
	for _, v := range []variant{baseline, set("FP8", "deployment.kv_cache_dtype=fp8"),
		set("half", "engine.num_gpu_blocks_override=14170")} {
		one, err := c.run(context.Background(), []variant{v}, []int{1}, []uint64{2})
		if err != nil {
			t.Fatal(err)
		}
		first := one[0].at(1)[0]
		fits := float64(*first.System.KVBlocks) * 16 / (prompt + answer)
		below, beyond := int(.6*fits), int(1.2*fits)
		r, err := c.run(context.Background(), []variant{v}, []int{below, beyond}, []uint64{2})
		if err != nil {
			t.Fatal(err)
		}
		for u, want := range map[int][2]float64{below: {.99, 1}, beyond: {0, .9}} {
			if hit := *r[0].at(u)[0].System.PrefixHitRate / (document / prompt); hit < want[0] || hit > want[1]+1e-9 {
				t.Errorf("%s: %.0f users fit; at %d %.3f of the documents' tokens are found, want %v", v.name, fits, u,
					hit, want)
			}
		}
		if v.name != baseline.name {
			continue
		}
		// At low load users do not slow each other down: X = N·tokens/(Z+R₀).
		alone := first.Latency.E2E.Mean
		few, err := c.run(context.Background(), []variant{v}, []int{10}, seeds)
		if err != nil {
			t.Fatal(err)
		}
		law := 10 * (prompt + answer) / (11 + *alone/1e3)
		if x := estimate(few[0].throughput(10)); law < x.low*.98 || law > x.high*1.02 {
			t.Errorf("ten users have %.0f tokens/s (%.0f to %.0f), alone with a GPU each they would have %.0f", x.mean,
				x.low, x.high, law)
		}
	}
}

// TestLiteralFloor: without a hit every token of a prompt goes through the token budget, and throughput is that of one
// full iteration after the other.
func TestLiteralFloor(t *testing.T) {
	c := find(t, "literal")
	const budget, prompt, answer = 2048, 6400, 180
	v := set("small budget", "engine.max_num_batched_tokens=2048")
	r, err := c.run(context.Background(), []variant{v}, []int{200}, []uint64{2})
	if err != nil {
		t.Fatal(err)
	}
	s := r[0].at(200)[0]
	at, err := c.scenario.With(v.settings...)
	if err != nil {
		t.Fatal(err)
	}
	setup, err := at.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	decodes := int(math.Round(*s.Concurrency.Decoding.Mean))
	chunk := int32(budget - decodes)
	e, _, err := experiments.Explain(setup, model.Batch{
		Decodes: decodes, Context: int64(decodes) * (prompt + answer/2),
		Chunks: []model.Chunk{{New: chunk, Cached: prompt / 2}}, Emit: decodes,
	})
	if err != nil {
		t.Fatal(err)
	}
	// A request computes its prompt tokens and its output tokens less one.
	law := budget / e.Seconds * (prompt + answer) / (prompt + answer - 1)
	if x := r[0].throughput(200)[0]; math.Abs(x/law-1) > .03 {
		t.Errorf("200 users have %.0f tokens/s, full iterations of %.1f ms make %.0f", x, 1e3*e.Seconds, law)
	}
}

// TestPreempt: prompts that start without enough KV blocks are preempted and restart. They take GPU time from requests
// that could finish.
func TestPreempt(t *testing.T) {
	c := find(t, "preempt")
	base, control := pair(t, c)
	fallsAndDoesNot(t, base, control)
	if d := control.change(before, after); d.low <= 0 {
		t.Errorf("with %s throughput changes by %.0f (%.0f to %.0f), want a rise", control.name, d.mean, d.low, d.high)
	}
	if again, reserved := base.mean(after, recomputed), control.mean(after, recomputed); again < .3 || reserved != 0 {
		t.Errorf("%.3f of the tokens are computed again, with %s %.3f", again, control.name, reserved)
	}
	if lost := spent(t, base, "GPU time: recomputed"); lost < .2 || spent(t, control, "GPU time: recomputed") != 0 {
		t.Errorf("%.3f of the GPU's time goes into what is computed again", lost)
	}
	if again := base.mean(50, recomputed); again > .01 {
		t.Errorf("%.3f of the tokens are computed again at 50 users", again)
	}
	if rule, seen := predicted(base, control, after); rule > seen || seen > .85 {
		t.Errorf("the base has %.2f of the control's throughput, the rule predicts at least %.2f", seen, rule)
	}
	if b := base.curve(); !hasSign(b, "recompute") || hasSign(control.curve(), "recompute") {
		t.Errorf("signs of the base %+v, of the control %+v", b.WarningSigns, control.curve().WarningSigns)
	}
}

// TestRetries: the throughput of the server does not fall, but no client is left to receive the outputs.
func TestRetries(t *testing.T) {
	c := find(t, "retries")
	base, control := pair(t, c)
	fallsAndDoesNot(t, base, control)
	useful := means(base)
	var output []float64
	for _, u := range users {
		output = append(output, base.mean(u, c.also.of))
	}
	if useful[3] > .02*useful[2] || output[3] < .98*output[2] || useful[0] < .98*output[0] {
		t.Errorf("clients receive %.0f tokens/s of %.0f", useful, output)
	}
	if lost, more := spent(t, base, "GPU time: cancelled"), spent(t, control, "GPU time: cancelled"); lost < .9 ||
		more > .05 {
		t.Errorf("%.3f of the GPU's time is lost, %.3f with %s", lost, more, control.name)
	}
	if x := means(control); x[3] < .8*x[2] {
		t.Errorf("with %s clients receive %.0f tokens/s", control.name, x)
	}
	b := base.curve()
	if k := b.UsefulCollapse; b.Collapse != nil || k == nil || k.Value != after || k.FallFraction < .98 ||
		!hasSign(b, "clients_leave") {
		t.Errorf("base: the sweep reports collapse %+v, useful collapse %+v, warning signs %+v",
			b.Collapse, k, b.WarningSigns)
	}
}

// TestFleet: the KV cache cannot hold all outputs at the same time.
func TestFleet(t *testing.T) {
	c := find(t, "fleet")
	base, control := pair(t, c)
	fallsAndDoesNot(t, base, control)
	if again, more := base.mean(after, recomputed), control.mean(after, recomputed); again < .3 || more > .01 {
		t.Errorf("%.3f of the tokens are computed again, with %s %.3f", again, control.name, more)
	}
	if rule, seen := predicted(base, control, after); rule > seen || seen > .85 {
		t.Errorf("the base has %.2f of the control's throughput, the rule predicts at least %.2f", seen, rule)
	}
	if f := c.factor(means(base)); math.Abs(f-1) > .05 {
		t.Errorf("%g servers have %.3g times what was published", c.copies, 1/f)
	}
}

// means returns the throughputs at the published loads.
func means(r *runs) []float64 {
	var x []float64
	for _, u := range users {
		x = append(x, estimate(r.throughput(u)).mean)
	}
	return x
}

// TestWhole runs the whole study and checks its output: other controls, other constants, tables and pictures.
func TestWhole(t *testing.T) {
	testenv.NeedsLong(t, "nine changes of constants and the other controls of every cliff are left out, a minute of CPU")
	list, err := all()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		f, err := c.find(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		want := 10
		if c.name == "preempt" {
			want = 9 // slower arithmetic moves the peak below 100 users: some runs have lost throughput there already
		}
		if n := f.fall(); n < want || len(f.varied) != 10 {
			t.Errorf("%s: throughput falls with %d of %d sets of constants, want %d", c.name, n, len(f.varied), want)
		}
		if c.name == "literal" {
			if i := slices.IndexFunc(f.controls, func(r *runs) bool {
				return r.name == "no prefix cache"
			}); math.Abs(means(f.controls[i])[3]/means(f.base)[3]-1) > .02 {
				t.Errorf("without a cache 200 users have %.0f tokens/s, with one that thrashes %.0f",
					means(f.controls[i])[3], means(f.base)[3])
			}
		}
		p, err := paper.New(t.TempDir(), "cliffs", paper.Meaning)
		if err != nil {
			t.Fatal(err)
		}
		f.write(&p.Text)
		if text := p.Text.String(); strings.Contains(text, "NaN") || strings.Count(text, "\n| base |") != 2 {
			t.Errorf("%s:\n%s", c.name, text)
		}
		if err := p.Draw(c.name, f.picture()); err != nil {
			t.Error(err)
		}
	}
}

// TestSearch: a search tries every point of its grid, and each chosen traffic is a point of its grid.
func TestSearch(t *testing.T) {
	list, err := all()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.search.size() == 1 {
			continue
		}
		seen, chosen := map[string]bool{}, 0
		want, err := c.scenario.With()
		if err != nil {
			t.Fatal(err)
		}
		for n := range c.search.size() {
			settings := c.search.settings(c.search.values(n))
			seen[strings.Join(settings, " ")] = true
			at, err := c.scenario.With(set("", settings...).settings...)
			if err != nil {
				t.Fatal(err)
			}
			if same(at, want) {
				chosen++
			}
		}
		if len(seen) != c.search.size() || chosen != 1 {
			t.Errorf("%s: %d of %d traffics differ, %d of them are the scenario's", c.name, len(seen), c.search.size(),
				chosen)
		}
	}
	c := &cliff{published: []float64{1, 2, 4}, shape: true}
	if rms, worst := c.distance([]float64{10, 20, 40}); rms > 1e-12 || math.Abs(worst) > 1e-12 {
		t.Errorf("the same shape is %g away, %g at worst", rms, worst)
	}
	c.shape = false
	if rms, worst := c.distance([]float64{1.1, 2, 4}); math.Abs(rms-math.Log(1.1)/math.Sqrt(3)) > 1e-12 ||
		math.Abs(worst-.1) > 1e-12 {
		t.Errorf("10 %% more at one of three is %g away, %g at worst", rms, worst)
	}
}

// same reports whether two scenarios have the same traffic.
func same(a, b *scenario.Scenario) bool {
	text := func(s *scenario.Scenario) string {
		var b strings.Builder
		for _, v := range []any{s.Workload.Arrivals, s.Workload.Input, s.Workload.Output, s.Workload.Prefix} {
			data, err := json.Marshal(v)
			if err != nil {
				return err.Error()
			}
			b.Write(data)
		}
		return b.String()
	}
	return text(a) == text(b)
}
