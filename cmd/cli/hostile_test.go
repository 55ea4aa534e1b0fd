package cli

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"clifftop/internal/testenv"
	"clifftop/report/layout"
)

// hostileNames are names as files of third parties may have them.
var hostileNames = []string{
	"\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "a\rb", "a\nb", "\u202egnp.exe", "\u009b31m",
	"=1+2", "+cmd|' /C calc'!A0", "@sum", "-2+3+cmd",
	"a|b", "`tick`", "[l](javascript:alert(1))", "![i](x)", "**bold**",
	"<script>alert(1)</script>", "]]><svg onload=alert(1)>", "</title><script>alert(1)</script>", `"q" & 'r'`,
}

// TestHostileNames gives names that mean something to terminals, spreadsheets, Markdown, HTML or XML to classes,
// scenarios and files, runs the commands, and reads all that they write.
func TestHostileNames(t *testing.T) {
	names := testenv.Choose([]string{strings.Join(hostileNames[:4], " ") + strings.Join(hostileNames[10:], " ")},
		hostileNames)
	for i, name := range names {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			h := hostile{t, t.TempDir()}
			scenario := h.write("scenario.json", asJSON(map[string]any{
				"name": name,
				"workload": map[string]any{
					"arrivals": map[string]any{"process": "poisson", "rate": 5},
					"classes": []any{
						map[string]any{"name": name, "weight": 1, "input": 100, "output": 20},
						map[string]any{"name": "plain", "weight": 1, "input": 50, "output": 20},
					},
				},
				"run": map[string]any{"requests": 300},
			}))
			h.prints("run", scenario)
			h.prints("run", scenario, "--format", "markdown")
			h.writes("run", scenario, "--save", "requests,timeseries,metrics,trace,iterations")
			out := filepath.Join(h.dir, "swept")
			h.prints("sweep", scenario, "--over", "rate=2,4,6", "--out", out)
			h.prints("sweep", scenario, "--over", "rate=2,4,6", "--out", out, "--format", "markdown")
			h.writes("sweep", scenario, "--over", "rate=2,4,6")
			variants := `name="plain",` + asJSON(name)
			h.prints("compare", scenario, "--vary", variants, "--replications", "3")
			h.prints("compare", scenario, "--vary", variants, "--replications", "3", "--format", "markdown")
			h.writes("compare", scenario, "--vary", variants, "--replications", "3")
			h.prints("explain", scenario)

			trace := h.write("trace.jsonl", fmt.Sprintf(
				"{\"timestamp\": 0, \"input_length\": 100, \"output_length\": 20, \"type\": %[1]s}\n"+
					"{\"timestamp\": 500, \"input_length\": 120, \"output_length\": 10, \"type\": %[1]s}\n", asJSON(name)))
			h.prints("trace", "inspect", trace)
			h.prints("run", "--trace", trace)
			rows := "arrival_s,input_tokens,output_tokens,class\n"
			for k := range 40 {
				rows += fmt.Sprintf("%d,100,20,%s\n", k, quoteCSV(name))
			}
			trace = h.write("trace.csv", rows)
			h.prints("trace", "inspect", trace)
			h.prints("trace", "inspect", trace, "--format", "markdown")
			h.prints("run", "--trace", trace)
			if !strings.Contains(name, "\n") { // such a row is refused
				h.writes("run", "--trace", trace, "--save", "requests,metrics")
			}
			// Names of files, keys and values in messages.
			h.prints("run", filepath.Join(h.dir, name))
			h.prints("run", "--set", "engine.policy="+asJSON(name))
			h.prints("run", "--set", name+"=1")
			h.prints("run", "--set", "gpu="+asJSON(name))
			h.prints("run", "--"+name)
			h.prints(name)
			h.prints("compare", scenario, "--vary", "engine.policy=vllm,"+asJSON(name))
			h.prints("validate", "--reference", h.write("runs.csv", "run,model\n"+quoteCSV(name)+","+quoteCSV(name)+"\n"))
		})
	}
}

// hostile runs commands with a name from outside and reads what they write.
type hostile struct {
	t   *testing.T
	dir string
}

func (h hostile) write(name, text string) string {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// run runs a command, which may end with an error but prints no control characters.
func (h hostile) run(args ...string) (stdout string) {
	h.t.Helper()
	var out, messages bytes.Buffer
	Run(context.Background(), args, &out, &messages)
	h.shown(fmt.Sprint(args, ": standard output"), out.String())
	h.shown(fmt.Sprint(args, ": standard error"), messages.String())
	return out.String()
}

func (h hostile) prints(args ...string) {
	h.t.Helper()
	if text := h.run(args...); strings.Contains(strings.Join(args, " "), "markdown") {
		h.markdown(fmt.Sprint(args), text)
	}
}

// shown wants a text that a terminal shows as it is.
func (h hostile) shown(what, text string) {
	h.t.Helper()
	if !utf8.ValidString(text) {
		h.t.Errorf("%q is not UTF-8", what)
	}
	for line := range strings.Lines(text) {
		for _, r := range strings.TrimSuffix(line, "\n") {
			if r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
				h.t.Errorf("%q has %U: %q", what, r, line)
				break
			}
		}
	}
}

// active matches what Markdown or HTML would do something with.
var active = regexp.MustCompile(`(^|[^\\])(<script|<svg|\[l\]|!\[i|\*\*bold|` + "`tick" + `)`)

func (h hostile) markdown(what, text string) {
	h.t.Helper()
	cells := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if active.MatchString(line) {
			h.t.Errorf("%q: %q is not escaped", what, line)
		}
		if !strings.HasPrefix(line, "|") {
			cells = 0
			continue
		}
		if strings.HasPrefix(line, "|---") {
			continue
		}
		n := len(layout.MarkdownCells(line))
		if cells != 0 && n > cells {
			h.t.Errorf("%q: %q has %d cells in a table of %d", what, line, n, cells)
		}
		if cells == 0 {
			cells = n
		}
	}
}

// writes runs a command and reads the files that it writes.
func (h hostile) writes(args ...string) {
	h.t.Helper()
	out, err := os.MkdirTemp(h.dir, "out")
	if err != nil {
		h.t.Fatal(err)
	}
	h.run(append(args, "--out", out)...)
	files, err := os.ReadDir(out)
	if err != nil || len(files) < 3 {
		h.t.Fatalf("%q wrote %d files, %v", args, len(files), err)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(out, f.Name()))
		if err != nil {
			h.t.Fatal(err)
		}
		what := fmt.Sprintf("%q: %s", args, f.Name())
		switch text := string(data); filepath.Ext(f.Name()) {
		case ".csv":
			h.cells(what, text)
		case ".svg":
			h.picture(what, text)
		case ".html":
			h.shown(what, text)
			if strings.Contains(text, "<script>alert") || strings.Contains(text, "<svg onload") {
				h.t.Errorf("%s has a name as an element", what)
			}
		case ".md":
			h.shown(what, text)
			h.markdown(what, text)
		case ".json":
			if !json.Valid(data) {
				h.t.Errorf("%s is not JSON", what)
			}
			h.shown(what, text)
		case ".prom", ".txt":
			h.exposition(what, text)
		}
	}
}

func (h hostile) cells(what, text string) {
	h.t.Helper()
	h.shown(what, text)
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		h.t.Errorf("%s: %v", what, err)
	}
	for _, row := range rows {
		for _, cell := range row {
			if _, err := strconv.ParseFloat(cell, 64); err != nil && cell != "" && strings.Contains("=+-@", cell[:1]) {
				h.t.Errorf("%s: %q is a formula", what, cell)
			}
		}
	}
}

func (h hostile) picture(what, text string) {
	h.t.Helper()
	h.shown(what, text)
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			h.t.Errorf("%s: %v", what, err)
			return
		}
		if e, ok := token.(xml.StartElement); ok && (e.Name.Local == "script" || attribute(e, "onload")) {
			h.t.Errorf("%s has the element %s %v", what, e.Name.Local, e.Attr)
		}
	}
}

func attribute(e xml.StartElement, name string) bool {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return true
		}
	}
	return false
}

// sample is a line of the text format of Prometheus.
var sample = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*` +
	`(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\["\\n])*",?)*\})? \S+( \S+)?$`)

func (h hostile) exposition(what, text string) {
	h.t.Helper()
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '#' && !sample.MatchString(line) {
			h.t.Errorf("%s: %q is no sample", what, line)
		}
	}
}

func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func quoteCSV(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }
