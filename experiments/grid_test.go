package experiments_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/compare"
	"clifftop/experiments/grid"
	"clifftop/experiments/merge"
	"clifftop/experiments/scenario"
	"clifftop/experiments/sweep"
	"clifftop/internal/testenv"
	"clifftop/sim/engine"
)

// small is a scenario whose runs are short.
func small(t *testing.T, more string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("small.yaml", []byte("name: small\nrun: {requests: 300}\n"+more))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const objective = "slo: {ttft_p95: 800ms, e2e_mean: 9s, attainment: 0.9}\n"

func sweepOver(values ...string) sweep.Options {
	return sweep.Options{Over: "rate", Values: values}
}

// whole is what one process writes of a sweep.
func whole(t *testing.T, s *scenario.Scenario, o sweep.Options) (curve, csv []byte) {
	t.Helper()
	c, err := sweep.Run(context.Background(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	found, err := o.Capacity(context.Background(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.SetCapacity(found)
	var b, rows bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := errors.Join(e.Encode(c), c.WriteCSV(&rows)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), rows.Bytes()
}

// shards makes a sweep by n tasks, one after the other in any order.
func shards(t *testing.T, s *scenario.Scenario, o sweep.Options, n int, dirs ...string) {
	t.Helper()
	for _, k := range rand.Perm(n) {
		g, err := o.Grid(context.Background(), s, "caption", nil)
		if err != nil {
			t.Fatal(err)
		}
		store, err := grid.Open(dirs[k%len(dirs)])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Run(context.Background(),
			experiments.Part{Store: store, Shard: grid.Shard{Index: k, Count: n}}); err != nil {
			t.Fatal(err)
		}
	}
}

func merged(t *testing.T, partial bool, dirs ...string) (curve, csv []byte) {
	t.Helper()
	runs, err := grid.Join(dirs)
	if err != nil {
		t.Fatal(err)
	}
	m, err := merge.Results(context.Background(), runs, partial)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.Curve.Points {
		if p.Summary != nil {
			t.Errorf("the merged curve keeps the result at %g in memory", p.Value)
		}
	}
	var b, rows bytes.Buffer
	if err := errors.Join(m.Curve.WriteJSON(&b), m.Curve.WriteCSV(&rows)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), rows.Bytes()
}

// TestShardsMergeToTheSameBytes divides a sweep among 1, 4 and 20 tasks, in one directory and in several.
func TestShardsMergeToTheSameBytes(t *testing.T) {
	s, o := small(t, ""), sweepOver("2", "14", "4", "6", "8", "10", "12", "16", "20", "24", "30", "0.5")
	wantCurve, wantCSV := whole(t, s, o)
	for _, n := range testenv.Choose([]int{4}, []int{1, 4, 20}) {
		for _, stores := range []int{1, 3} {
			var dirs []string
			for range min(n, stores) {
				dirs = append(dirs, t.TempDir())
			}
			shards(t, s, o, n, dirs...)
			rand.Shuffle(len(dirs), func(i, j int) { dirs[i], dirs[j] = dirs[j], dirs[i] })
			curve, csv := merged(t, false, dirs...)
			if !bytes.Equal(curve, wantCurve) {
				t.Errorf("%d shards in %d directories give another curve", n, len(dirs))
			}
			if !bytes.Equal(csv, wantCSV) {
				t.Errorf("%d shards in %d directories give another table", n, len(dirs))
			}
		}
	}
}

// TestShardsFindTheCapacity leaves the search under an objective to the task that ends last.
func TestShardsFindTheCapacity(t *testing.T) {
	testenv.NeedsLong(t, "searches by shards")
	s, o, dir := small(t, objective), sweepOver("2", "10", "24"), t.TempDir()
	wantCurve, wantCSV := whole(t, s, o)
	shards(t, s, o, 3, dir)
	curve, csv := merged(t, false, dir)
	if !bytes.Equal(curve, wantCurve) || !bytes.Equal(csv, wantCSV) {
		t.Error("3 shards give another curve or table")
	}
	dirs := []string{t.TempDir(), t.TempDir()}
	shards(t, s, o, 2, dirs...)
	_, err := merge.Results(context.Background(), mustJoin(t, dirs...), false)
	var missing *merge.MissingError
	if !errors.As(err, &missing) || err.Error() != "all 3 runs are there, but those of the search for the capacity are missing" {
		t.Errorf("of tasks that see nothing of each other: %v", err)
	}
	if m, err := merge.Results(context.Background(), mustJoin(t, dirs...), true); err != nil ||
		m.Curve.Capacity != nil {
		t.Errorf("a partial merge: %v", err)
	}
}

// TestReplicatedShards does the same with replications, and with a precision, at which each load stops by itself.
func TestReplicatedShards(t *testing.T) {
	testenv.NeedsLong(t, "replicated sweeps by shards")
	for _, more := range []string{"  replications: 3\n", "  precision: 5%\n"} {
		s, err := scenario.Parse("small.yaml", []byte("run:\n  requests: 200\n"+more))
		if err != nil {
			t.Fatal(err)
		}
		o, dir := sweepOver("3", "12", "24"), t.TempDir()
		want, _ := whole(t, s, o)
		shards(t, s, o, 2, dir)
		if got, _ := merged(t, false, dir); !bytes.Equal(got, want) {
			t.Errorf("with%s shards give another curve", more)
		}
	}
}

// TestLostShardIsResumed loses some results, and half of one: what was lost is named, and made again, and nothing
// else is.
func TestLostShardIsResumed(t *testing.T) {
	s, o, dir := small(t, ""), sweepOver("2", "5", "9", "14", "20", "28"), t.TempDir()
	want, _ := whole(t, s, o)
	shards(t, s, o, 2, dir)
	g, err := o.Grid(context.Background(), s, "caption", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{1, 4} {
		if err := os.Remove(filepath.Join(dir, listed(t, g).Runs[i].Key+".json")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "."+listed(t, g).Runs[4].Key+"-1"), []byte(`{"schema":`),
		0o666); err != nil {
		t.Fatal(err)
	}
	runs, err := grid.Join([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	var missing *merge.MissingError
	if _, err := merge.Results(context.Background(), runs, false); !errors.As(err, &missing) ||
		err.Error() != "2 of 6 runs are missing: rate=5, rate=20" {
		t.Errorf("the error is %v", err)
	}
	if m, err := merge.Results(context.Background(), runs, true); err != nil || !m.Curve.Partial ||
		len(m.Curve.Points) != 4 {
		t.Errorf("a partial merge: %v", err)
	}
	tally, err := g.Run(context.Background(), experiments.Part{Store: grid.Read(dir), Resume: true})
	if want := (experiments.Tally{Made: 2, There: 4, Total: 6}); err != nil || tally != want {
		t.Errorf("resuming: %+v, %v, want %+v", tally, err, want)
	}
	if got, _ := merged(t, false, dir); !bytes.Equal(got, want) {
		t.Error("a resumed sweep gives another curve")
	}
}

// TestShardsThatDoNotBelongTogether refuses results of other scenarios, seeds, values and versions.
func TestShardsThatDoNotBelongTogether(t *testing.T) {
	o, dir := sweepOver("2", "5"), t.TempDir()
	shards(t, small(t, ""), o, 1, dir)
	for _, c := range []struct {
		s    *scenario.Scenario
		o    sweep.Options
		want string
	}{
		{small(t, "engine: {max_num_seqs: 8}"), o, "rate=2 was run from another scenario"},
		{small(t, ""), sweepOver("2", "6"), "run 1 is rate=5, not rate=6"},
		{small(t, ""), sweepOver("2", "5", "6"), "of 2 runs, not 3"},
	} {
		g, err := c.o.Grid(context.Background(), c.s, "caption", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Run(context.Background(), experiments.Part{Store: grid.Read(dir)}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("one directory: %v, want %q", err, c.want)
		}
		other := t.TempDir()
		shards(t, c.s, c.o, 1, other)
		if _, err := grid.Join([]string{dir, other}); err == nil ||
			!strings.Contains(err.Error(), "do not belong together") {
			t.Errorf("two directories: %v", err)
		}
	}
	g, err := sweepOver("2", "5", "2.0").Grid(context.Background(), small(t, ""), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Run(context.Background(), experiments.Part{Store: grid.Read(t.TempDir())}); err == nil ||
		!strings.Contains(err.Error(), "are the same run") {
		t.Errorf("a value twice: %v", err)
	}
}

// TestForgedResult leaves a result alone that does not come from the same run.
func TestForgedResult(t *testing.T) {
	s, o, dir := small(t, ""), sweepOver("2"), t.TempDir()
	g, err := o.Grid(context.Background(), s, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	store, err := grid.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Put(listed(t, g).Runs[0].Key, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Run(context.Background(), experiments.Part{Store: store}); err == nil ||
		!strings.Contains(err.Error(), "left as it is") {
		t.Errorf("the error is %v", err)
	}
	if _, err := merge.Results(context.Background(), mustJoin(t, dir), false); err == nil ||
		!strings.Contains(err.Error(), "rate=2) is not the result of a run") {
		t.Errorf("the error is %v", err)
	}
}

func mustJoin(t *testing.T, dirs ...string) *grid.Joined {
	t.Helper()
	runs, err := grid.Join(dirs)
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// TestShardsOfAComparison divides a comparison, and looks at half of it.
func TestShardsOfAComparison(t *testing.T) {
	variants, err := compare.Vary(small(t, objective), "engine.max_num_seqs=8,16,64")
	if err != nil {
		t.Fatal(err)
	}
	o := compare.Options{Replications: 4}
	v, err := compare.Run(context.Background(), variants, o)
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	g, err := o.Grid(context.Background(), variants)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	store, err := grid.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for k := range 4 {
		if k == 3 { // the runs of the last seed are missing
			m, err := merge.Results(context.Background(), mustJoin(t, dir), true)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(m.Verdict.Seeds); n == 0 || n == 4 {
				t.Errorf("half a comparison is judged by %d seeds", n)
			}
		}
		if _, err := g.Run(context.Background(),
			experiments.Part{Store: store, Shard: grid.Shard{Index: k, Count: 4}}); err != nil {
			t.Fatal(err)
		}
	}
	m, err := merge.Results(context.Background(), mustJoin(t, dir), false)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := json.Marshal(m.Verdict); !bytes.Equal(got, want) {
		t.Errorf("shards give another verdict:\n%s\nwant\n%s", got, want)
	}
	o.Precision, o.Replications = .02, 0
	if _, err := o.Grid(context.Background(), variants); err == nil ||
		!strings.Contains(err.Error(), "the number of runs must be known") {
		t.Errorf("a precision: %v", err)
	}
}

func listed(t *testing.T, g *experiments.Grid) *grid.Manifest {
	t.Helper()
	m, err := g.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestListedOnce has the first task look at all runs, and later ones at their own and at what the first one saw.
func TestListedOnce(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	over := func(values ...string) sweep.Options {
		return sweep.Options{Over: "engine.max_num_seqs", Values: values}
	}
	task := func(s *scenario.Scenario, o sweep.Options, p experiments.Part) error {
		g, err := o.Grid(ctx, s, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		p.Store = grid.Read(dir)
		_, err = g.Run(ctx, p)
		return err
	}
	second := experiments.Part{Shard: grid.Shard{Index: 1, Count: 2}}
	if err := task(small(t, ""), over("0", "8"), second); err == nil ||
		!strings.Contains(err.Error(), "0 is not allowed") {
		t.Errorf("a fault in another task's run: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d files are left of it", len(left))
	}
	for range 2 {
		if err := task(small(t, ""), over("16", "8"), experiments.Part{Resume: true}); err != nil {
			t.Fatal(err)
		}
	}
	changed := small(t, "engine: {block_size: 32}\n")
	for _, p := range []experiments.Part{second, {Resume: true},
		{Shard: grid.Shard{Index: 7, Count: 9}, Resume: true}} {
		if err := task(changed, over("16", "8"), p); err == nil ||
			!strings.Contains(err.Error(), "holds results of something else") {
			t.Errorf("another scenario, shard %s: %v", p.Shard, err)
		}
	}
}

// Results are named by the program as well as by the scenario. A program without a clean revision, such as that of go run
// with a policy of one's own, is named by its content.
func TestCacheKeysNameTheProgram(t *testing.T) {
	u, err := parse(t, "workload: {arrivals: {rate: 1}}\n").Resolve()
	if err != nil {
		t.Fatal(err)
	}
	key, err := experiments.CacheKey(u)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := experiments.CacheKey(u); err != nil || again != key {
		t.Errorf("%s and %s, %v", key, again, err)
	}
	u = u.Configured(func(c *engine.Config) { c.MaxNumSeqs-- })
	if _, err := experiments.CacheKey(u); err == nil || !strings.Contains(err.Error(), "how a program configured") {
		t.Errorf("a setup that a program changed: %v", err)
	}
	head, err := experiments.NewManifest("test", nil)
	if err != nil || !regexp.MustCompile(`^[0-9.]+(\+[0-9a-f]+)?:[0-9a-f]{16}$`).MatchString(head.Build) {
		t.Errorf("a test is the program %q, %v", head.Build, err)
	}
}
