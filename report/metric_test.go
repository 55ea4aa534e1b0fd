package report

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

// numbers calls visit with the JSON path of each number of a type; an item of a list is "*".
func numbers(path string, t reflect.Type, visit func(path string)) {
	switch t.Kind() {
	case reflect.Pointer:
		numbers(path, t.Elem(), visit)
	case reflect.Slice:
		numbers(JoinPath(path, "*"), t.Elem(), visit)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && name != "-" && name != "" {
				numbers(JoinPath(path, name), f.Type, visit)
			}
		}
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		visit(path)
	}
}

// TestMetricsAreComplete wants an entry for every measured number of a summary, and no entry for anything else.
func TestMetricsAreComplete(t *testing.T) {
	notMeasured := []string{"seed", "effort.", "accuracy.", "predictive.", "replications.", "goodput.limits."}
	found := map[string]bool{}
	numbers("", reflect.TypeFor[Summary](), func(path string) {
		if strings.HasPrefix(path, "classes.") {
			path = wholeRun(path)
		}
		if slices.ContainsFunc(notMeasured, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
			return
		}
		m := metricsByPath()[path]
		if m == nil {
			m = metricsByPath()[wholeRun(path)]
		}
		if m == nil || m.Title == "" || m.Of == nil && !strings.Contains(m.Path, "*") {
			t.Errorf("the catalogue lacks %q: add it to metric_list.go", path)
			return
		}
		found[m.Path] = true
	})
	seen := map[string]bool{}
	for _, m := range Metrics() {
		if seen[m.Path] {
			t.Errorf("%s is there twice", m.Path)
		}
		seen[m.Path] = true
		if computed := !strings.Contains(m.Path, "."); !computed && !found[m.Path] {
			t.Errorf("%s is no number of a summary", m.Path)
		}
	}
	for _, tile := range Tiles() {
		for _, number := range regexp.MustCompile(`{([^ }]+)`).FindAllStringSubmatch(tile.Text+tile.Remark, -1) {
			MetricAt(number[1]) // panics if there is none
		}
	}
	for _, column := range CurveColumns() {
		MetricAt(column.Path)
	}
	for _, path := range csvPaths() {
		if MetricAt(path).CSV == "" {
			t.Errorf("%s is a column without a name", path)
		}
	}
}

// code formats a name as Markdown code.
func code(name string) string {
	if name == "" {
		return ""
	}
	return "`" + name + "`"
}

const metricsPage = "../docs/metrics.md"

// TestMetricsPage wants docs/metrics.md as the catalogue gives it; -update writes it.
func TestMetricsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Metrics

This page lists every number of a summary (` + "`summary.json`" + `) by its path. It is generated from the catalogue in
` + "`report/metric_list.go`" + `; run ` + "`go test ./report -run TestMetricsPage -update`" + ` after a change.

* **Better** says which direction is an improvement; it is empty for a fact about the run.
* **Replications** says how the numbers of several runs become one.
* **CSV** is the column in ` + "`curve.csv`" + `.
* **vLLM** is the metric that measures the same in the Prometheus output of vLLM and of Clifftop.
* A number of a replica, a traffic phase or a class has the same name below ` +
		"`replicas.*`, `stages.*` or `classes.*`" + `.

| Path | Meaning | Unit | Better | Replications | CSV | vLLM |
|---|---|---|---|---|---|---|
`)
	for _, m := range Metrics() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", m.Path, m.Title, m.Unit, m.Better, m.Pool,
			code(m.CSV), code(m.Prometheus))
	}
	if *update {
		if err := os.WriteFile(metricsPage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(metricsPage)
	if err != nil || string(got) != b.String() {
		t.Errorf("%s is not what the catalogue gives (%v): run go test ./report -run TestMetricsPage -update",
			metricsPage, err)
	}
}
