package gate

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/internal/testenv"
)

// whole is the number of cases from which on the keys that no valid scenario had are listed.
const whole = 5000

// fewest is the number of cases of a test in the short tier.
const fewest = 8

// checks is the number of cases of a test: what -rapid.checks asks for, and less in the short tier.
func checks() int {
	n, err := strconv.Atoi(flag.Lookup("rapid.checks").Value.String())
	if err != nil {
		panic(err)
	}
	if !testenv.Long() && n == testenv.ShortChecks {
		return fewest
	}
	return n
}

// stuck are the reasons for which the simulation of a valid scenario may fail. Each is a documented end of a run.
var stuck = regexp.MustCompile(`no replica will accept them any more`)

// TestScenarios runs valid scenarios and asserts what must hold of any result. See the comment of the package.
func TestScenarios(t *testing.T) {
	seen := map[string]bool{}
	ends := map[int]int{}
	setChecks(t, checks())
	rapid.Check(t, func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario")
		keys("", map[string]any(s), func(path string) { seen[path] = true })
		status, problems := examine(t, s)
		ends[status]++
		if len(problems) > 0 {
			t.Fatalf("%s\n%s", strings.Join(problems, "\n"), s)
		}
	})
	t.Logf("runs by exit status: %v", ends)
	all, missed := properties("", schema()), 0
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if !seen[path] {
			missed++
			if checks() >= whole {
				t.Logf("no valid scenario has %s", path)
			}
		}
	}
	t.Logf("%d of %d keys of the schema were part of a valid scenario", len(all)-missed, len(all))
}

// properties are the paths of the keys of a schema.
func properties(path string, s *jsonschema.Schema) map[string]bool {
	all := map[string]bool{}
	if strings.HasSuffix(path, ".parts[]") {
		return all // laws in a law
	}
	if s.Ref != "" {
		if strings.HasSuffix(s.Ref, "/duration") {
			return all
		}
		s = definition(s.Ref)
	}
	for key, below := range s.Properties {
		all[join(path, key)] = true
		maps.Copy(all, properties(join(path, key), below))
	}
	if s.Items != nil {
		maps.Copy(all, properties(path+"[]", s.Items))
	}
	for _, a := range s.AnyOf {
		maps.Copy(all, properties(path, a))
	}
	return all
}

// decode reads a result.
func decode(t fataler, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("the result is no JSON: %v\n%.400s", err, text)
	}
	return v
}

// examine runs a scenario and lists what is wrong with the result.
func examine(t fataler, s doc) (status int, problems []string) {
	o := command(t, "run", s.file(t, "scenario"), "--check", "--quiet", "--format", "json")
	switch {
	case o.status == 1 && stuck.MatchString(o.stderr):
		return o.status, nil
	case o.status != 0:
		return o.status, []string{fmt.Sprintf("exit status %d: %s", o.status, o.stderr)}
	}
	sum := decode(t, o.stdout)
	problems = inspect(sum)
	if s.get("run.replications") == nil && s.get("run.precision") == nil {
		problems = append(problems, library(t, s, sum)...)
	}
	return o.status, problems
}

// library runs a scenario with the library. The result must be that of the command, and agree with its rows.
func library(t fataler, s doc, sum map[string]any) (problems []string) {
	parsed, err := scenario.Parse(folder+"/scenario.yaml", s.bytes())
	if err != nil {
		return []string{err.Error()}
	}
	var rows bytes.Buffer
	res, err := experiments.Run(context.Background(), parsed, experiments.RunOptions{Requests: &rows})
	if err != nil {
		return []string{err.Error()}
	}
	data, err := json.Marshal(res.Summary)
	if err != nil {
		return []string{err.Error()}
	}
	if d := differences(sum, decode(t, string(data)), judged...); len(d) > 0 {
		problems = append(problems, "the command and the library differ: "+strings.Join(d, "; "))
	}
	return append(problems, agree(doc(sum), table(t, rows.String()))...)
}

// judged are the parts of a result that the search for saturation adds.
var judged = []string{"saturation", "window.stationary", "window.growth_requests_per_s", "accuracy", "traffic",
	"window.state", "window.needs_s", "window.mean_over", "warnings", "effort"}

// table reads a CSV file: a map per row, from the names of columns.
func table(t fataler, text string) []map[string]string {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(all) == 0 {
		t.Fatalf("the rows are no CSV: %v\n%.400s", err, text)
	}
	var rows []map[string]string
	for _, fields := range all[1:] {
		row := map[string]string{}
		for i, name := range all[0] {
			row[name] = fields[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// differences lists where two values differ, without the parts below some paths. It stops after a few.
func differences(a, b any, without ...string) (found []string) {
	const most = 5
	var walk func(path string, a, b any)
	walk = func(path string, a, b any) {
		for _, w := range without {
			if path == w || strings.HasSuffix(path, "."+w) {
				return
			}
		}
		if len(found) >= most {
			return
		}
		x, xIsMap := a.(map[string]any)
		y, yIsMap := b.(map[string]any)
		v, vIsList := a.([]any)
		w, wIsList := b.([]any)
		switch {
		case xIsMap && yIsMap:
			all := maps.Clone(x)
			maps.Copy(all, y)
			for _, key := range slices.Sorted(maps.Keys(all)) {
				walk(join(path, key), x[key], y[key])
			}
		case vIsList && wIsList && len(v) == len(w):
			for i := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), v[i], w[i])
			}
		case xIsMap || yIsMap || vIsList || wIsList || a != b:
			found = append(found, fmt.Sprintf("%s is %v and %v", path, brief(a), brief(b)))
		}
	}
	walk("", a, b)
	return found
}

func brief(v any) string {
	text := fmt.Sprint(v)
	return text[:min(len(text), 100)]
}

// errNone is returned where a cell is empty.
var errNone = errors.New("no value")

// cell reads a number of a row.
func cell(row map[string]string, column string) (float64, error) {
	text, ok := row[column]
	switch {
	case !ok:
		return 0, fmt.Errorf("there is no column %s", column)
	case text == "":
		return 0, errNone
	}
	return strconv.ParseFloat(text, 64)
}

// setChecks sets the number of cases of a property for a test.
func setChecks(t *testing.T, n int) {
	f := flag.Lookup("rapid.checks")
	before := f.Value.String()
	if err := f.Value.Set(strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(before) })
}
