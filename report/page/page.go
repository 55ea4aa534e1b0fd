package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/goccy/go-yaml"

	"clifftop/report/layout"
	"clifftop/report/page/assets"
	"clifftop/report/plot"
)

// Page is a result as a web page.
type Page struct {
	// Kind is the command, such as "sweep"; Title is the message, and Caption names the simulated system.
	Kind, Title, Caption string
	// Partial says that the result is incomplete, and how; empty for a whole one.
	Partial  string
	Facts    []Fact
	Sections []Section
	Origin   Origin
}

// Fact is an important number.
type Fact struct{ Name, Value, Note string }

// Section is a part of the page.
type Section struct {
	// Name stands in the list of contents, Title above the section; it may be empty where a single chart has its own.
	Name, Title, Text string
	Tables            template.HTML
	Charts            []plot.Diagram
	Notes             []string
}

// Origin is the origin of a result: scenario, seeds, version and command.
type Origin struct {
	// Version of the program, and the Command that repeats the result.
	Version, Command string
	Seeds            string // in words
	Scenarios        []Scenario
}

// Scenario is a scenario as it was resolved.
type Scenario struct {
	Name  string // may be empty where there is one alone
	Value any    // has a JSON form
}

//go:embed page.html
var layoutText string

//go:embed page.css
var styles string

//go:embed page.js
var script string

// view is the data of the template.
type view struct {
	*Page
	Policy        string
	Style, Script template.HTML
	Data          template.HTML
	Parts         []part
	Texts         []text
	Licence       string
}

// part is a section with the numbers of its charts.
type part struct {
	Section
	ID     string
	Charts []int
	Wide   bool // its charts stand side by side
}

type text struct{ Name, YAML string }

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	style, code := assets.Styles()+styles, assets.Scripts()+script
	v := view{
		Page:   p,
		Style:  template.HTML("<style>" + style + "</style>"),
		Script: template.HTML("<script>" + code + "</script>"),
		Policy: fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; base-uri 'none'; form-action 'none'",
			hashed(style), hashed(code)),
		Licence: assets.Licence(),
	}
	var charts []plot.Diagram
	for i, s := range p.Sections {
		x := part{Section: s, ID: fmt.Sprintf("part-%d", i+1), Wide: len(s.Charts) > 1 && !s.Charts[0].Zoom}
		for _, c := range s.Charts {
			x.Charts = append(x.Charts, len(charts))
			charts = append(charts, c)
		}
		v.Parts = append(v.Parts, x)
	}
	data, err := json.Marshal(charts) // writes <, > and & as escapes, so that it cannot end the element
	if err != nil {
		return fmt.Errorf("writing report.html: %w", err)
	}
	v.Data = template.HTML(`<script type="application/json" id="charts">` + string(data) + "</script>")
	for _, s := range p.Origin.Scenarios {
		t, err := s.text()
		if err != nil {
			return fmt.Errorf("writing report.html: the scenario: %w", err)
		}
		v.Texts = append(v.Texts, t)
	}
	page, err := template.New("page").Parse(layoutText)
	if err != nil {
		return fmt.Errorf("writing report.html: %w", err)
	}
	if err := page.Execute(layout.PlainWriter(w), v); err != nil {
		return fmt.Errorf("writing report.html: %w", err)
	}
	return nil
}

// hashed names a script or a style sheet in a content security policy.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (s *Scenario) text() (text, error) {
	data, err := json.Marshal(s.Value)
	if err != nil {
		return text{}, err
	}
	data, err = yaml.JSONToYAML(data)
	return text{s.Name, string(data)}, err
}

// add appends a section unless it is empty.
func (p *Page) add(s Section) {
	if s.Tables != "" || s.Text != "" || len(s.Charts) > 0 {
		p.Sections = append(p.Sections, s)
	}
}

// figure appends a figure as a section.
func (p *Page) figure(name string, f *plot.Figure) {
	if f == nil {
		return
	}
	s := Section{Name: name, Charts: f.Diagrams()}
	if len(s.Charts) > 1 {
		s.Title, s.Text, s.Notes = f.Title, f.Text(), f.Notes()
	}
	p.add(s)
}

// upper writes the first letter as a capital.
func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
