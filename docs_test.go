package clifftop

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// pages returns the text of every Markdown file of the module by its path, without the licences of other projects.
func pages(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" ||
			d.Name() == "testdata" || d.Name() == "notices"):
			return filepath.SkipDir
		case path.Ext(name) != ".md":
			return nil
		}
		text, err := os.ReadFile(name)
		texts[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(texts) < 50 {
		t.Fatalf("only %d pages seen", len(texts))
	}
	return texts
}

const maxReadmeLines = 120

var (
	// foreign are words about how the project is made, marks of unfinished work, and places that only its makers have.
	// A letter in brackets keeps the pattern from being such a word itself.
	foreign = regexp.MustCompile(`(?i)\.\./[s]hared|/[w]ork/|\b([s]ubagents?|this [s]ession|helpers? session|T[O]DO|` +
		`F[I]XME)\b|\bissues? #?\d{1,2}\b`)
	fenced = regexp.MustCompile("(?ms)^```.*?^```$")
	code   = regexp.MustCompile("`[^`\n]*`")
	linked = regexp.MustCompile(`\]\(([^()\s]+)\)`)
)

// TestDocs fails when the README is long, or when a page talks about its making or has a long line outside of tables,
// pictures and code.
func TestDocs(t *testing.T) {
	for name, text := range pages(t) {
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if name == "README.md" && len(lines) > maxReadmeLines {
			t.Errorf("%s has %d lines (want at most %d)", name, len(lines), maxReadmeLines)
		}
		plain := fenced.ReplaceAllString(text, "")
		for i, line := range lines {
			if found := foreign.FindString(line); found != "" {
				t.Errorf("%s:%d: %q does not belong into documentation", name, i+1, found)
			}
			short := utf8.RuneCountInString(line) <= maxColumns || strings.ContainsAny(line[:1], "|!<")
			if !short && strings.Contains(plain, line) && strings.Contains(line, " ") {
				t.Errorf("%s:%d: %d columns (want at most %d)", name, i+1, utf8.RuneCountInString(line), maxColumns)
			}
		}
	}
}

// TestLinks fails when a page links to a file, a folder or a heading that does not exist.
func TestLinks(t *testing.T) {
	texts := pages(t)
	for name, text := range texts {
		text = code.ReplaceAllString(fenced.ReplaceAllString(text, ""), "")
		for _, m := range linked.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			file, heading, _ := strings.Cut(m[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s does not exist", name, m[1])
			} else if heading != "" && !slices.Contains(anchors(texts[target]), heading) {
				t.Errorf("%s: %s has no heading %s", name, target, heading)
			}
		}
	}
}

// anchors returns the names under which a page links to its headings.
func anchors(text string) []string {
	var names []string
	for line := range strings.Lines(fenced.ReplaceAllString(text, "")) {
		heading := strings.TrimLeft(line, "#")
		if len(heading) == len(line) {
			continue
		}
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(heading)))
	}
	return names
}

// TestTour parses the scenario of the tour.
func TestTour(t *testing.T) {
	_, text, _ := strings.Cut(pages(t)["docs/tour.md"], "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	if _, err := Parse("tour.md", []byte(text)); err != nil || text == "" {
		t.Errorf("the scenario %q: %v", text, err)
	}
}

// TestCliff runs the README's example of the cliff and compares the two numbers that it quotes.
func TestCliff(t *testing.T) {
	s, err := Load("experiments/studies/cliffs/literal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	curve, err := Sweep(t.Context(), s, SweepOptions{Over: "users", Values: []string{"100", "200"}})
	if err != nil {
		t.Fatal(err)
	}
	rate := func(i int) string {
		n := int(math.Round(*curve.Points[i].Summary.Throughput.OutputTokensPerS))
		return strings.TrimPrefix(fmt.Sprintf("%d,%03d", n/1000, n%1000), "0,")
	}
	want := fmt.Sprintf("%s per second with a hundred users and %s with two hundred", rate(0), rate(1))
	if text := strings.Join(strings.Fields(pages(t)["README.md"]), " "); !strings.Contains(text, want) {
		t.Errorf("README.md does not say %q", want)
	}
}

// accuracies are the rows of the README's table, by their first words, and the rows of the validation page that each
// sums up. The page's rows begin with a collection, such as "A: ".
var accuracies = []struct{ readme, pages string }{
	{"vLLM on H100, H200 and A100 below saturation", `A: vLLM, Hopper and A100, open loop`},
	{"vLLM on H100 and H200,", `[AB]: vLLM, Hopper and A100, closed loop`},
	{"vLLM on B200 and B300,", `[AB]: vLLM, Blackwell`},
	{"SGLang and TensorRT-LLM,", `[ABC]: (?:SGLang|TensorRT-LLM)`},
	{"DeepSeek-R1 on MI300X", `C: AMD`},
	{"linear attention", `[AB]: linear attention`},
	{"multi-token prediction,", `[ADE]: multi-token prediction`},
	{"disaggregated prefill/decode,", `[FG]: prefill and decode apart`},
}

// TestAccuracy compares the README's table of errors with the validation page.
func TestAccuracy(t *testing.T) {
	texts := pages(t)
	page := texts["experiments/validation/README.md"]
	for _, want := range accuracies {
		runs, errors := 0, [3][]float64{}
		for _, m := range regexp.MustCompile(`(?m)^\| `+want.pages+` \| (\d+) \|.*$`).FindAllStringSubmatch(page, -1) {
			n, _ := strconv.Atoi(m[1])
			runs += n
			for i, cell := range strings.Split(m[0], "|")[5:8] {
				value, err := strconv.ParseFloat(strings.Fields(cell)[0], 64)
				if err != nil {
					t.Fatal(err)
				}
				errors[i] = append(errors[i], value)
			}
		}
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(want.readme) + `.*$`).FindString(texts["README.md"])
		if runs == 0 || row == "" {
			t.Errorf("%s: %d runs on the validation page, row %q of the README", want.readme, runs, row)
			continue
		}
		cells := strings.Split(row, "|")
		if m := regexp.MustCompile(`\b(\d+) (?:[a-z-]+ )?runs`).FindStringSubmatch(cells[1]); m != nil && m[1] != fmt.Sprint(runs) {
			t.Errorf("%s: %s runs, %d on the validation page", want.readme, m[1], runs)
		}
		for i, values := range errors {
			if got := strings.TrimSpace(cells[2+i]); !slices.Contains(quotes(values), got) {
				t.Errorf("%s: %q (want one of %q)", want.readme, got, quotes(values))
			}
		}
	}
}

// quotes returns the ways to write some errors in per cent: one with a digit or rounded, two in their order, or all as
// a range.
func quotes(errors []float64) []string {
	round := func(x float64) string { return strconv.FormatFloat(math.Round(x), 'f', 0, 64) }
	if len(errors) == 1 {
		return []string{strconv.FormatFloat(errors[0], 'f', 1, 64) + " %", round(errors[0]) + " %"}
	}
	return []string{round(errors[0]) + " and " + round(errors[1]) + " %",
		round(slices.Min(errors)) + " to " + round(slices.Max(errors)) + " %"}
}
