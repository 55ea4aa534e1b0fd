package gate

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"clifftop/report"
)

// commands are laws about commands and formats that say the same.
var commands = []relation{
	{"a point of a sweep is a run", func(t *rapid.T) {
		s := plain(t).with("deployment.replicas", nil)
		list := []int{drawer{t}.whole(1, 20), 40}
		curve := result(t, "sweep", s.file(t, "scenario"), "--quiet", "--format", "json", "--out", "", "--over",
			fmt.Sprintf("engine.max_num_seqs=%d,%d", list[0], list[1]))
		for i, p := range listOf(curve, "points") {
			same(t, p["summary"].(map[string]any), summary(t, s.with("engine.max_num_seqs", list[i])), judged...)
		}
	}},
	{"what is compared with itself does not differ", func(t *rapid.T) {
		s := plain(t)
		name := s.file(t, "scenario")
		v := result(t, "compare", name, name, "--quiet", "--format", "json", "--out", "", "--replications", "2")
		for _, m := range listOf(v, "metrics") {
			numbersOf("", m["difference"], func(_ string, x float64) {
				if x != 0 {
					t.Fatalf("%v differs by %v", m["path"], x)
				}
			})
		}
	}},
	{"shards that are merged are one process", func(t *rapid.T) {
		s := plain(t)
		dir, err := os.MkdirTemp(folder, "shards-")
		if err != nil {
			t.Fatalf("%v", err)
		}
		defer os.RemoveAll(dir)
		args := []string{"compare", s.file(t, "scenario"), "--vary", "engine.max_num_seqs=3,30", "--replications", "2",
			"--quiet", "--format", "json"}
		whole := command(t, append(args, "--out", "")...) // exit status 1 says that the variant is worse
		for i := range 2 {
			if o := command(t, append(args, "--out", dir, "--shard", fmt.Sprintf("%d/2", i))...); o.status != 0 {
				t.Fatalf("shard %d: %s", i, o.stderr)
			}
		}
		merged := command(t, "merge", dir, "--quiet", "--format", "json", "--out", "")
		if whole.status != merged.status || whole.stdout != merged.stdout || whole.stdout == "" {
			t.Fatalf("exit status %d in one process, %d after the merge:\n%s\n%s", whole.status, merged.status,
				strings.Join(differences(decode(t, whole.stdout), decode(t, merged.stdout)), "\n"), merged.stderr)
		}
	}},
	{"jobs change nothing", func(t *rapid.T) {
		s := plain(t).with("run.replications", 3)
		same(t, summary(t, s, "--jobs", "1"), summary(t, s, "--jobs", "3"))
	}},
	{"replications are pooled", func(t *rapid.T) {
		s := plain(t)
		one, three := summary(t, s), summary(t, s, "--replications", "3")
		if a, b := at(t, one, "requests.offered"), at(t, three, "requests.offered"); b != 3*a {
			t.Fatalf("%v requests in one run and %v in three", a, b)
		}
		intervals, _ := three["ci95"].(map[string]any)
		for path, ci := range intervals {
			list, _ := ci.([]any)
			if len(list) != 2 || list[0].(float64) > list[1].(float64) {
				t.Fatalf("the interval of %s is %v", path, ci)
			}
		}
	}},
	{"CSV and JSON say the same", func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario")
		sum := doc(summary(t, s))
		o := command(t, "run", s.file(t, "scenario"), "--quiet", "--format", "csv")
		rows, err := csv.NewReader(strings.NewReader(o.stdout)).ReadAll()
		if err != nil || len(rows) != 2 {
			t.Fatalf("%v: %s", err, o.stdout)
		}
		values := map[string]string{}
		for i, name := range rows[0] {
			values[name] = rows[1][i]
		}
		for _, m := range report.Metrics() {
			v, ok := sum.get(m.Path).(float64)
			if m.CSV == "" || !ok {
				continue
			}
			if got, err := strconv.ParseFloat(values[m.CSV], 64); err != nil || math.Abs(got-v) > 1e-8*math.Abs(v) {
				t.Fatalf("%s is %q in CSV and %v in JSON", m.CSV, values[m.CSV], v)
			}
		}
	}},
	{"every format is printed", func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario")
		if s.get("run.replications") != nil || s.get("run.precision") != nil {
			t.Skip("not all formats take replications")
		}
		a := command(t, "run", s.file(t, "scenario"), "--quiet", "--format", "json")
		for _, format := range []string{"table", "markdown", "csv", "vllm-bench"} {
			o := command(t, "run", s.file(t, "scenario"), "--quiet", "--format", format)
			if o.status != a.status || o.status == 0 && (o.stdout == "" || strings.Contains(o.stdout, "NaN")) {
				t.Fatalf("--format %s: exit status %d\n%s%s", format, o.status, o.stdout, o.stderr)
			}
		}
	}},
	{"files say what is printed", func(t *rapid.T) {
		s := plain(t)
		dir, err := os.MkdirTemp(folder, "out-")
		if err != nil {
			t.Fatalf("%v", err)
		}
		defer os.RemoveAll(dir)
		kinds := []string{"requests", "timeseries", "iterations", "trace", "metrics", "bench"}
		sum := summary(t, s, "--out", dir, "--save", strings.Join(kinds, ","))
		data, err := os.ReadFile(filepath.Join(dir, "summary.json"))
		if err != nil {
			t.Fatalf("%v", err)
		}
		if d := differences(sum, decode(t, string(data))); len(d) > 0 {
			t.Fatalf("summary.json: %v", d)
		}
		data, err = os.ReadFile(filepath.Join(dir, "requests.csv"))
		if err != nil {
			t.Fatalf("%v", err)
		}
		if problems := agree(doc(sum), table(t, string(data))); len(problems) > 0 {
			t.Fatalf("%v", problems)
		}
	}},
	{"files that are asked for change no number", func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario").with("run.replications", nil, "run.precision", nil) // --save wants a single run
		dir, err := os.MkdirTemp(folder, "out-")
		if err != nil {
			t.Fatalf("%v", err)
		}
		defer os.RemoveAll(dir)
		kind := rapid.SampledFrom([]string{"requests", "timeseries", "replicas", "iterations", "trace", "metrics", "bench"})
		kinds := rapid.SliceOfNDistinct(kind, 0, 4, rapid.ID).Draw(t, "kinds")
		args := []string{"--out", dir}
		if len(kinds) > 0 {
			args = append(args, "--save", strings.Join(kinds, ","))
		}
		same(t, summary(t, s), summary(t, s, args...))
	}},
	{"a generated trace is the traffic", func(t *rapid.T) {
		replay(t, plain(t))
	}},
	{"a generated trace of shared prefixes is the traffic", func(t *rapid.T) {
		d := drawer{t}
		replay(t, plain(t).with("workload.prefix", law{"groups": d.whole(1, 6), "prompts_per_group": d.whole(1, 6),
			"shared_tokens": d.whole(0, 400)}))
	}},
	{"a generated trace of classes is the traffic", func(t *rapid.T) {
		replay(t, plain(t).with("workload.classes", []any{law{"name": "x", "weight": 1, "output": 20, "priority": 2},
			law{"name": "y", "weight": 2, "input": 900}}))
	}},
	{"a trace at its own speed is the trace", func(t *rapid.T) {
		s := plain(t).with("workload", law{"trace": law{"file": recorded()}}, "run.requests", nil)
		pair(t, s, s.with("workload.trace.speedup", 1, "workload.trace.scale", 1, "workload.trace.loop", 1,
			"workload.trace.limit", 1000))
	}},
	{"inspecting finds what was generated", func(t *rapid.T) {
		s := open(t)
		name := generated(t, s)
		found := result(t, "trace", "inspect", name, "--format", "json", "--quiet")
		if n := number(found["requests"]); n != 0 && n != requests {
			t.Fatalf("%v requests (want %d)", n, requests)
		}
	}},
	{"explain takes every scenario", func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario")
		o := command(t, "explain", s.file(t, "scenario"), "--format", "json", "--decode", "8", "--context", "900")
		if strings.Contains(o.stdout, "NaN") {
			t.Fatalf("%s", o.stdout)
		}
	}},
}

// open is a scenario of an open loop that [replay] can repeat.
func open(t *rapid.T) doc {
	return plain(t).with("workload.arrivals", []any{law{"process": "poisson", "rate": 6, "duration": "4s"},
		law{"process": "constant", "rate": 8}})
}

// generated writes the traffic of a scenario as a trace and returns its name.
func generated(t *rapid.T, s doc) string {
	t.Helper()
	name := filepath.Join(folder, "generated.csv")
	if o := command(t, "trace", "generate", s.file(t, "scenario"), "--to", name, "--quiet"); o.status != 0 {
		t.Fatalf("trace generate: %s", o.stderr)
	}
	return name
}

// replay asserts that the trace of a scenario's traffic has the same results.
func replay(t *rapid.T, s doc) {
	t.Helper()
	s = s.with("workload.arrivals", open(t).get("workload.arrivals"))
	b := s.with("workload", law{"trace": law{"file": generated(t, s)}}, "run.requests", nil)
	served(t, s, b)
}
