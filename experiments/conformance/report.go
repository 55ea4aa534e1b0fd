package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"clifftop/experiments"
	"clifftop/report/layout"
)

// Schema identifies the JSON form of a [Report].
const Schema = "clifftop.schedules/1"

// Report says how many cases of each profile agree with the records.
type Report struct {
	Schema   string `json:"schema"`
	Clifftop string `json:"clifftop"` // version of the program
	Partial  bool   `json:"partial"`  // it was interrupted: cases are missing

	Records     []*Record     `json:"records"`
	Profiles    []Profile     `json:"profiles"`
	Differences []*Difference `json:"differences"`
	// NotExpressible are the cases that were not replayed, in the order of the records.
	NotExpressible []Refusal `json:"not_expressible"`
}

// Profile is the result for a set of cases with the same features.
type Profile struct {
	Format string `json:"format"`
	Name   string `json:"profile"`
	// Agree is the number of cases whose iterations are all equal to the recorded ones, of Total cases.
	Agree int `json:"agree"`
	Total int `json:"total"`
	// NotExpressible is the number of cases, of Total, that no engine configuration expresses.
	NotExpressible int `json:"not_expressible"`
	// Iterations is the number of recorded iterations.
	Iterations int `json:"iterations"`
}

// Refusal is a case that was not replayed.
type Refusal struct {
	Format  string `json:"format"`
	Profile string `json:"profile"`
	Case    string `json:"case"`
	Reason  string `json:"reason"`
}

// newReport sums up the cases that were replayed.
func newReport(records []*Record, cases []*Case, results []result) *Report {
	r := &Report{Schema: Schema, Clifftop: experiments.Version, Records: records, Profiles: []Profile{},
		Differences: []*Difference{}, NotExpressible: []Refusal{}}
	for i, c := range cases {
		if !results[i].done {
			r.Partial = true
			continue
		}
		p := r.profile(c)
		p.Total++
		p.Iterations += len(c.iterations)
		switch {
		case c.Refused != "":
			p.NotExpressible++
			r.NotExpressible = append(r.NotExpressible, Refusal{c.Format, c.Profile, c.Name, c.Refused})
		case results[i].found != nil:
			r.Differences = append(r.Differences, results[i].found)
		default:
			p.Agree++
		}
	}
	return r
}

func (r *Report) profile(c *Case) *Profile {
	for i := range r.Profiles {
		if p := &r.Profiles[i]; p.Format == c.Format && p.Name == c.Profile {
			return p
		}
	}
	r.Profiles = append(r.Profiles, Profile{Format: c.Format, Name: c.Profile})
	return &r.Profiles[len(r.Profiles)-1]
}

// Err returns an error if a case differs, could not be replayed or could not be read.
func (r *Report) Err() error {
	agree, total, missing := 0, 0, 0
	for i := range r.Profiles {
		agree, total = agree+r.Profiles[i].Agree, total+r.Profiles[i].Total
	}
	for _, rec := range r.Records {
		if rec.Fault != "" {
			missing += rec.Missing
		}
		if rec.Fault != "" && rec.Missing == 0 {
			return fmt.Errorf("%s: %s", rec.File, rec.Fault)
		}
	}
	if agree == total && missing == 0 && total > 0 {
		return nil
	}
	text := fmt.Sprintf("%d of %d cases agree", agree, total+missing)
	for _, part := range []struct {
		n    int
		what string
	}{{len(r.Differences), "differ"}, {len(r.NotExpressible), "not expressible"}, {missing, "not read"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	return errors.New(text)
}

// WriteTable writes the report for people.
func (r *Report) WriteTable(w io.Writer) error { return r.write(w, new(layout.Text)) }

// WriteMarkdown writes the same as Markdown.
func (r *Report) WriteMarkdown(w io.Writer) error { return r.write(w, &layout.Text{Markdown: true}) }

func (r *Report) write(w io.Writer, t *layout.Text) error {
	if r.Partial {
		t.Paragraph("Interrupted: cases are missing.")
	}
	for _, rec := range r.Records {
		t.Paragraph(fmt.Sprintf("%s: %s", rec.File, rec.Source))
		if rec.Fault != "" {
			t.Paragraph(fmt.Sprintf("%s: %s", rec.File, rec.Fault))
		}
	}
	t.Blank()
	t.Table(r.grid(), 2, 1)
	if len(r.Differences) > 0 {
		t.Heading("First difference of each case")
	}
	for _, d := range r.Differences {
		t.Item(d.Case, fmt.Sprintf("iteration %d: expected %s", d.Iteration, d.Expected))
		t.Item("", "got "+d.Got)
	}
	if len(r.NotExpressible) > 0 {
		t.Heading("Not expressible")
	}
	for _, x := range r.reasons() {
		t.Item(strconv.Itoa(x.cases), x.reason+" ("+x.first+")")
	}
	_, err := t.WriteTo(w)
	return err
}

// WriteProfiles writes the table of profiles as Markdown.
func (r *Report) WriteProfiles(w io.Writer) error {
	t := &layout.Text{Markdown: true}
	t.Table(r.grid(), 2, 1)
	_, err := t.WriteTo(w)
	return err
}

// WriteCSV writes the table of profiles as CSV.
func (r *Report) WriteCSV(w io.Writer) error {
	out := layout.NewCSVWriter(w)
	out.Write([]string{"format", "profile", "agree", "total", "not_expressible", "iterations"})
	for i := range r.Profiles {
		p := &r.Profiles[i]
		out.Write([]string{p.Format, p.Name, strconv.Itoa(p.Agree), strconv.Itoa(p.Total),
			strconv.Itoa(p.NotExpressible), strconv.Itoa(p.Iterations)})
	}
	out.Flush()
	return out.Error()
}

// grid returns the table of profiles.
func (r *Report) grid() [][]string {
	grid := [][]string{{"format", "profile", "agree", "of", "not expressible", "iterations"}}
	line := func(p *Profile) {
		grid = append(grid, []string{p.Format, p.Name, strconv.Itoa(p.Agree), strconv.Itoa(p.Total),
			strconv.Itoa(p.NotExpressible), layout.Grouped(strconv.Itoa(p.Iterations))})
	}
	for i := range r.Profiles {
		line(&r.Profiles[i])
	}
	sum := r.Sum("")
	sum.Format = "all"
	line(&sum)
	return grid
}

// Sum returns the sums over the profiles of a format, or of all formats if it is empty.
func (r *Report) Sum(format string) Profile {
	sum := Profile{Format: format}
	for i := range r.Profiles {
		p := &r.Profiles[i]
		if format != "" && p.Format != format {
			continue
		}
		sum.Agree, sum.Total = sum.Agree+p.Agree, sum.Total+p.Total
		sum.NotExpressible, sum.Iterations = sum.NotExpressible+p.NotExpressible, sum.Iterations+p.Iterations
	}
	return sum
}

// reason is a reason why cases were not replayed, with their number and the first of them.
type reason struct {
	reason, first string
	cases         int
}

// reasons counts the cases that were not replayed by their reasons, most frequent first.
func (r *Report) reasons() (list []reason) {
	for _, x := range r.NotExpressible {
		at := slices.IndexFunc(list, func(y reason) bool { return y.reason == x.Reason })
		if at < 0 {
			at = len(list)
			list = append(list, reason{reason: x.Reason, first: x.Case})
		}
		list[at].cases++
	}
	slices.SortStableFunc(list, func(a, b reason) int { return cmp.Compare(b.cases, a.cases) })
	return list
}
