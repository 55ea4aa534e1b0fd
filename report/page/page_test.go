package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"clifftop/report"
	"clifftop/report/curve"
	"clifftop/report/layout"
	"clifftop/report/page/assets"
	"clifftop/report/plot"
	"clifftop/report/stats"
	"clifftop/report/verdict"
)

func of[T any](v T) *T { return &v }

// written is the page as text.
func written(t *testing.T, p *Page, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// sample is a run with a little of everything.
func sample() *report.Summary {
	s := &report.Summary{Schema: report.SummarySchema, Clifftop: "1.2.3", Seed: 7,
		Scenario: map[string]any{"name": "sample"}}
	s.Throughput.OutputTokensPerS, s.Throughput.RequestsPerS = of(1234.), of(5.6)
	s.Latency.TTFT = report.Distribution{N: 2000, Mean: of(50.), P50: of(40.), P90: of(80.), P95: of(90.), P99: of(99.),
		Max: of(120.)}
	s.Latency.TPOT = s.Latency.TTFT
	s.Latency.ITL = s.Latency.TTFT
	shape := stats.Shape{N: 3, Bins: []stats.Bin{{Low: 39, High: 41, N: 2}, {Low: 99, High: 101, N: 1}}}
	s.Detail = &report.Detail{TTFT: shape, TPOT: shape, E2E: shape, ITL: shape,
		Gantt: &report.Gantt{Iterations: []report.Iteration{{Start: 1e9, End: 2e10, Decodes: 3}}}}
	for i := range 512 {
		s.Detail.Series = append(s.Detail.Series,
			report.SeriesPoint{StartS: float64(i), EndS: float64(i + 1), RunningMean: 3.3333333, QueueMean: 1,
				OutputTokens: int64(i), ComputedTokens: 10, PrefillTokens: 4, KVUsageMean: of(0.5), InWindow: i > 9})
	}
	s.System.GPUSeconds = report.GPUSeconds{Useful: of(3.), Idle: of(1.)}
	s.System.MFU, s.System.MBU, s.System.BusyFraction = of(0.1), of(0.5), of(0.9)
	return s
}

func runPage(s *report.Summary) (*Page, error) {
	return Run(s, report.DefaultProfile(), Machine{1e15, 3e12})
}

// Every part stands in the contents and in the page, every chart has its data, and nothing is asked of anybody.
func TestStructure(t *testing.T) {
	p, err := runPage(sample())
	p.Origin.Scenarios = []Scenario{{Value: sample().Scenario}}
	p.Origin.Command = "clifftop run --rate 5"
	text := written(t, p, err)
	for _, want := range []string{`<html lang="en">`, "<title>", "<main id=\"main\">", `<nav aria-label="Contents">`,
		"<h1>", "Content-Security-Policy",
		"clifftop run --rate 5", "name: sample", "seed 7", "clifftop 1.2.3", "1234 tokens/s", "<dt>throughput</dt>",
		`<th scope="row">TTFT</th>`, "SOFTWARE IS PROVIDED"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	var names []string
	for _, s := range p.Sections {
		names = append(names, s.Name)
	}
	const want = "Summary; Latency; Gaps between tokens; Run over time; Prompts; What becomes of GPU time; Roofline; " +
		"First iterations"
	if got := strings.Join(names, "; "); got != want {
		t.Errorf("the parts are %s", got)
	}
	for i, name := range names {
		if link := fmt.Sprintf(`<a href="#part-%d">%s</a>`, i+1, name); !strings.Contains(text, link) ||
			strings.Count(text, fmt.Sprintf(`id="part-%d"`, i+1)) != 1 {
			t.Errorf("%s: no link, or no part", name)
		}
	}
	_, data, _ := strings.Cut(text, `<script type="application/json" id="charts">`)
	data, _, _ = strings.Cut(data, "</script>")
	var charts []plot.Diagram
	if err := json.Unmarshal([]byte(strings.ReplaceAll(data, "null", "0")), &charts); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text, "data-chart="); n != len(charts) || n < 9 {
		t.Errorf("%d places for %d charts", n, len(charts))
	}
	for _, link := range regexp.MustCompile(`https?://[^\s"'<)]+`).FindAllString(text, -1) {
		if link != "https://github.com/leeoniya/uPlot" {
			t.Errorf("the page names %s", link)
		}
	}
	if regexp.MustCompile(`(?i)\s(src|href)="[^#]|style="|onclick=|\{\{`).MatchString(text) {
		t.Error("the page loads something, or the policy forbids a part of it")
	}
	const most = 1_500_000 / 3 // a sweep has three such runs
	if len(text) > most {
		t.Errorf("%d bytes, want %d at most", len(text), most)
	}
	again, err := runPage(sample())
	again.Origin = p.Origin
	if written(t, again, err) != text {
		t.Error("the same result gives another page")
	}
}

// The policy names the very scripts and styles that are in the page.
func TestPolicyFits(t *testing.T) {
	p, err := runPage(sample())
	text := written(t, p, err)
	for _, element := range []string{"style", "script"} {
		_, rest, _ := strings.Cut(text, "<"+element+">")
		code, _, _ := strings.Cut(rest, "</"+element+">")
		// The template writes attributes with + as an entity.
		if sum := strings.ReplaceAll(hashed(code), "+", "&#43;"); !strings.Contains(text,
			strings.ReplaceAll(sum, "'", "&#39;")) {
			t.Errorf("the policy does not allow the %s", element)
		}
	}
}

// Names from files cannot leave the place they are written to.
func TestNamesAreEscaped(t *testing.T) {
	const evil = "</script><script>alert(1)</script><!-- \u2028 \" ' & <b>"
	p := &Page{Kind: evil, Title: evil, Caption: evil, Partial: evil, Facts: []Fact{{evil, evil, evil}},
		Origin: Origin{evil, evil, evil, []Scenario{{evil, map[string]string{evil: evil}}}}}
	p.add(Section{Name: evil, Title: evil, Text: evil, Notes: []string{evil}, Tables: pairs([][2]string{{evil, evil}}),
		Charts: []plot.Diagram{{Title: evil, Notes: []string{evil}}}})
	words, err := tables(3, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "### %[1]s\n\n* **%[1]s**: %[1]s\n* %[1]s\n\n| %[1]s |\n|---|\n| %[1]s |\n\n%[1]s\n",
			evil)
		return err
	})
	p.add(Section{Name: "words", Tables: words})
	text := written(t, p, err)
	if n := strings.Count(text, "</script"); n != 2 {
		t.Errorf("%d scripts end, want 2", n)
	}
	for _, bad := range []string{"<script>alert", "<b>", "<!--", "\u2028 \" ' & \\u003c"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}

func TestPartialPagesSaySo(t *testing.T) {
	s := sample()
	p, err := runPage(s)
	if strings.Contains(written(t, p, err), "<strong>Partial.</strong>") {
		t.Error("a whole run is called partial")
	}
	s.Partial = true
	p, err = runPage(s)
	if !strings.Contains(written(t, p, err), "<strong>Partial.</strong> The run was interrupted") {
		t.Error("a run that was interrupted is not called partial")
	}
}

// A summary without details, such as one that was read from a file, has a page with less in it.
func TestWithoutDetail(t *testing.T) {
	s := sample()
	s.Detail = nil
	p, err := runPage(s)
	if text := written(t, p, err); len(p.Sections) != 3 || strings.Contains(text, "First iterations") {
		t.Errorf("%d parts", len(p.Sections))
	}
	empty, err := runPage(&report.Summary{})
	written(t, empty, err)
}

func TestSweepPage(t *testing.T) {
	var points []curve.Point
	for i, rate := range []float64{1, 5, 10} {
		s := sample()
		s.Throughput.OutputTokensPerS = of(100 * min(rate, 8))
		s.Latency.TTFT.P95 = of(float64(50 * (i + 1)))
		points = append(points, curve.Point{Value: rate, Summary: s})
	}
	c := curve.New("rate", points)
	c.Partial = true
	p, err := Sweep(c, Machine{1e15, 3e12})
	text := written(t, p, err)
	for _, want := range []string{"The sweep was interrupted", "Operating curve", "Distribution of latencies",
		"All loads", `<th scope="row">5</th>`, "Run over time"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

// Of results without details the distributions go through the percentiles that summaries have.
func TestPercentilesForDistributions(t *testing.T) {
	var runs [][]*report.Summary
	var points []curve.Point
	for i, rate := range []float64{1, 5, 10} {
		s := sample()
		s.Detail = nil
		s.Latency.TTFT.P50 = of(float64(40 * (i + 1)))
		points = append(points, curve.Point{Value: rate, Summary: s})
		runs = append(runs, []*report.Summary{s})
	}
	sweep, err := Sweep(curve.New("rate", points), Machine{})
	swept := written(t, sweep, err)
	compare, err := Compare(verdict.Compare([]string{"base", "one", "two"}, []uint64{7}, runs))
	compared := written(t, compare, err)
	for _, text := range []string{swept, compared} {
		for _, want := range []string{"Distribution of latencies", "p99.9 and the maximum",
			`"x":[40,80,90,99,120],"y":[0.5,0.9,0.95,0.99,1]`} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing", want)
			}
		}
		if strings.Contains(text, "Run over time") {
			t.Error("there is a course of the run without its details")
		}
	}
}

func TestMarkdown(t *testing.T) {
	const text = "# Title\n\n* **a**: b & c\n* **PASS**: it does\n\n### Part\n\n|  | x | y |\n|---|---:|---:|\n| one | 1 | FAIL |\n|   ± | 2 |\n\nA sentence.\n* only an item\n"
	const want = `<dl>
<div><dt>a</dt><dd>b &amp; c</dd></div>
<div><dt class="pass">PASS</dt><dd>it does</dd></div>
</dl>
<h3>Part</h3>
<div class="table" role="region" tabindex="0" aria-label="Part"><table>
<tr><td></td><th scope="col">x</th><th scope="col">y</th></tr>
<tr><th scope="row">one</th><td>1</td><td class="fail">FAIL</td></tr>
<tr><th scope="row">±</th><td>2</td><td></td></tr>
</table></div>
<p>A sentence.</p>
<ul>
<li>only an item</li>
</ul>
`
	if got := fromMarkdown(text, 3); string(got) != want {
		t.Errorf("got\n%s", got)
	}
}

// TestAssetsHaveNoHiddenCharacters: the page is written without such characters, and a script or a style sheet that had
// one would no longer fit its hash.
func TestAssetsHaveNoHiddenCharacters(t *testing.T) {
	for name, text := range map[string]string{"style": assets.Styles() + styles, "script": assets.Scripts() + script} {
		if layout.Lines(text) != text {
			t.Errorf("the %s has characters without a shape", name)
		}
	}
}
