package lessons

import (
	"fmt"
	"io"
	"strings"

	"clifftop/report/chart"
	"clifftop/report/layout"
)

// DrawText prints a picture as text in width columns, without its title.
type DrawText func(w io.Writer, p chart.Picture, width int) error

// Write prints the lesson for a terminal, or as Markdown. Commands name the scenarios in dir, and draw draws the
// pictures.
func (r *Result) Write(w io.Writer, dir string, markdown bool, draw DrawText) error {
	t := &layout.Text{Markdown: markdown}
	t.Heading("Lesson %d: %s", r.Number, r.Title)
	t.Space()
	t.Paragraph(r.Idea)
	t.Heading("TERMS")
	for _, term := range r.Terms {
		t.Line(term.Word, term.Meaning)
	}
	t.Heading("WHAT IS SIMULATED")
	for i, s := range r.Steps {
		t.Item(fmt.Sprintf("%d.", i+1), s.Text)
		for _, command := range s.Commands {
			t.Command(strings.Replace(command, s.Scenario, dir+"/"+s.Scenario, 1))
		}
	}
	t.Heading("RESULTS")
	t.Table(append([][]string{r.Table.Columns}, r.Table.Rows...), 1, 2)
	for _, picture := range r.Pictures {
		t.Blank()
		t.Paragraph(strings.ReplaceAll(picture.Message(), "\n", " "))
		if err := drawText(t, picture, draw); err != nil {
			return err
		}
	}
	t.Heading("WHAT TO LOOK AT")
	for _, text := range r.Look {
		t.Item(bullet(markdown), text)
	}
	t.Heading("COMMON MISTAKES")
	for _, m := range r.Mistakes {
		if markdown {
			t.Item("", "“"+m.Said+"” "+m.Right)
			continue
		}
		t.Item(bullet(false), "“"+m.Said+"”")
		t.Item("", m.Right)
	}
	t.Heading("A QUESTION FOR THE CLASS")
	t.Paragraph(r.Question)
	t.Space()
	t.Paragraph("Answer: " + r.Answer)
	t.Heading("CLAIMS, CHECKED WITH THESE RESULTS")
	for _, c := range r.Claims {
		t.Line(c.verdict(), c.String())
	}
	_, err := t.WriteTo(w)
	return err
}

// bullet is the mark of a list item; Markdown adds its own.
func bullet(markdown bool) string {
	if markdown {
		return ""
	}
	return "*"
}

func drawText(t *layout.Text, p Picture, draw DrawText) error {
	var b strings.Builder
	if err := draw(&b, p.Picture, t.Columns); err != nil {
		return err
	}
	if t.Markdown {
		t.Printf("```\n%s```\n", strings.TrimLeft(b.String(), "\n"))
		return nil
	}
	t.Printf("%s", b.String())
	return nil
}

// verdict returns "holds" or "FAILS".
func (c *Claim) verdict() string {
	if c.Holds {
		return "holds"
	}
	return "FAILS"
}

func (c *Claim) String() string {
	value := "nothing was measured"
	switch {
	case c.Value != nil && c.decimals >= 0:
		value = fmt.Sprintf("%.*f", c.decimals, *c.Value)
	case c.Value != nil:
		value = number(*c.Value)
	}
	return fmt.Sprintf("%s: %s (want %s)", c.Text, value, c.Wanted)
}
