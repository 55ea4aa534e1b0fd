package cli

import (
	"io"
	"os"
	"regexp"
)

// A colour is what a terminal needs to write in it. Words say the same without.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	bold   = "\x1b[1m"
	plain  = "\x1b[0m"
)

// painted are the words of tables that are coloured. They are coloured where they stand, so that nothing moves.
var painted = []struct {
	words  *regexp.Regexp
	colour string
}{
	{regexp.MustCompile(`(?m)^(?:warning|partial|collapse|useful output|sign at [0-9.e+-]+)\b|\bNOT STATIONARY\b|\bSLO undecided\b|\bNOT DIST\.|\bNOT RELEV\.`), yellow},
	{regexp.MustCompile(`\bFAILS?\b|\bSLO MISSED\b|\bNO PLAN\b`), red},
	{regexp.MustCompile(`\bPASS\b|\bSLO met\b|(?m)^holds\b`), green},
	{regexp.MustCompile(`(?m)^(?:knee|peak|capacity|throughput|first limit)\b`), bold},
}

// paint colours the words of a table.
func paint(text []byte) []byte {
	for _, p := range painted {
		text = p.words.ReplaceAllFunc(text, func(words []byte) []byte { return []byte(p.colour + string(words) + plain) })
	}
	return text
}

// coloured reports whether what is written to w may have colours: on a terminal, but for NO_COLOR (https://no-color.org), and
// elsewhere with CLICOLOR_FORCE.
func coloured(w io.Writer) bool {
	if os.Getenv("NO_COLOR") != "" {
		return false
	}
	if force := os.Getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	if o, ok := w.(*output); ok {
		w = o.Writer
	}
	return isTerminal(w)
}
