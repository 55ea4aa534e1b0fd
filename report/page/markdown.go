package page

import (
	"fmt"
	"html"
	"html/template"
	"io"
	"strings"

	"clifftop/report/layout"
)

// tables converts the Markdown that a result writes to HTML, with headings from the given level.
func tables(level int, write func(io.Writer) error) (template.HTML, error) {
	var b strings.Builder
	if err := write(&b); err != nil {
		return "", err
	}
	return fromMarkdown(b.String(), level), nil
}

// fromMarkdown converts the Markdown of results: headings, tables, paragraphs, and lists whose items may begin with a
// name in bold.
func fromMarkdown(text string, level int) template.HTML {
	m := &markdown{level: level, heading: "Table"}
	for _, line := range strings.Split(text, "\n") {
		m.line(strings.TrimRight(line, " "))
	}
	m.end()
	return template.HTML(m.b.String())
}

// markdown is text on its way to HTML.
type markdown struct {
	b       strings.Builder
	level   int
	heading string // the last one, which names tables
	open    string // the element that lines go to: dl, ul, table or none
	rows    [][]string
}

func (m *markdown) line(line string) {
	item, isItem := strings.CutPrefix(line, "* ")
	name, rest, named := strings.Cut(strings.TrimPrefix(item, "**"), "**: ")
	switch {
	case strings.HasPrefix(line, "#"):
		m.end()
		m.heading = strings.TrimLeft(line, "# ")
		if strings.HasPrefix(line, "##") { // the page has a title
			fmt.Fprintf(&m.b, "<h%d>%s</h%[1]d>\n", m.level, escape(m.heading))
		}
	case strings.HasPrefix(line, "|"):
		m.begin("table")
		m.rows = append(m.rows, layout.MarkdownCells(line))
	case isItem && named && strings.HasPrefix(item, "**"):
		m.begin("dl")
		fmt.Fprintf(&m.b, "<div><dt%s>%s</dt><dd>%s</dd></div>\n", class(name), escape(name), escape(rest))
	case isItem:
		m.begin("ul")
		fmt.Fprintf(&m.b, "<li>%s</li>\n", escape(item))
	case line == "":
		m.end()
	default:
		m.end()
		fmt.Fprintf(&m.b, "<p>%s</p>\n", escape(line))
		m.heading = line
	}
}

func (m *markdown) begin(element string) {
	if m.open == element {
		return
	}
	m.end()
	if m.open = element; element != "table" {
		fmt.Fprintf(&m.b, "<%s>\n", element)
	}
}

func (m *markdown) end() {
	switch m.open {
	case "":
		return
	case "table":
		m.table()
	default:
		fmt.Fprintf(&m.b, "</%s>\n", m.open)
	}
	m.open = ""
}

// table writes the rows. The first row has the names of the columns, the second their alignment.
func (m *markdown) table() {
	left := strings.Count(m.rows[min(1, len(m.rows)-1)][0], "---|")
	fmt.Fprintf(&m.b, "<div class=\"table\" role=\"region\" tabindex=\"0\" aria-label=\"%s\"><table>\n",
		escape(m.heading))
	for i, row := range m.rows {
		if i == 1 {
			continue
		}
		m.b.WriteString("<tr>")
		for k, cell := range row {
			text := escape(strings.TrimSpace(cell))
			switch {
			case text == "":
				m.b.WriteString("<td></td>")
			case i == 0:
				m.b.WriteString(`<th scope="col">` + text + "</th>")
			case k == 0:
				m.b.WriteString(`<th scope="row">` + text + "</th>")
			case k < left:
				m.b.WriteString(`<td class="text">` + text + "</td>")
			default:
				m.b.WriteString("<td" + class(text) + ">" + text + "</td>")
			}
		}
		m.b.WriteString(strings.Repeat("<td></td>", max(0, len(m.rows[0])-len(row))) + "</tr>\n")
	}
	m.b.WriteString("</table></div>\n")
	m.rows = nil
}

// escape is a text of Markdown in HTML.
func escape(text string) string { return html.EscapeString(layout.UnescapeMarkdown(text)) }

// class marks verdicts.
func class(text string) string {
	switch {
	case text == "PASS":
		return ` class="pass"`
	case text == "FAIL":
		return ` class="fail"`
	case strings.HasPrefix(text, "NOT "):
		return ` class="open"`
	}
	return ""
}

func pairs(list [][2]string) template.HTML {
	var b strings.Builder
	b.WriteString("<dl>\n")
	for _, p := range list {
		fmt.Fprintf(&b, "<div><dt>%s</dt><dd>%s</dd></div>\n", html.EscapeString(layout.Plain(p[0])),
			html.EscapeString(layout.Plain(p[1])))
	}
	b.WriteString("</dl>\n")
	return template.HTML(b.String())
}
