// Package assets holds what pages of charts are made of: the charting library uPlot 1.6.32 as its npm package has it,
// with its licence, and the scripts and styles that draw a chart with it. It imports nothing, so that it can be part of
// any page, also of one whose engine runs in the browser.
//
// A page takes [Styles] and [Scripts], and calls
//
//	const chart = Clifftop.chart(element, spec)   // draws spec into the element
//	chart.update(spec)                            // another one in its place
//
// in which the head of chart.js says what a spec is.
package assets

import (
	"embed"
	"strings"
)

//go:embed uPlot.iife.min.js uPlot.min.css uPlot.LICENSE
//go:embed format.js labels.js table.js paint.js talk.js chart.js chart.css
var files embed.FS

// scriptNames are the scripts in the order in which they must run, and styleNames the style sheets.
func scriptNames() []string {
	return []string{"uPlot.iife.min.js", "format.js", "labels.js", "table.js", "paint.js", "talk.js", "chart.js"}
}

// styleNames are the style sheets in their order.
func styleNames() []string { return []string{"uPlot.min.css", "chart.css"} }

// Scripts is all scripts in one text.
func Scripts() string { return joined(scriptNames()) }

// Styles is all style sheets in one text.
func Styles() string { return joined(styleNames()) }

// Licence is the licence of uPlot, which goes wherever its code goes.
func Licence() string { return joined([]string{"uPlot.LICENSE"}) }

func joined(names []string) string {
	var b strings.Builder
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			panic("assets: " + name + " is not embedded")
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.String()
}
