package layout

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"mean ± 3 % – 5 µs":     "mean ± 3 % – 5 µs",
		"\x1b[31mred\x1b[0m":    `\x1b[31mred\x1b[0m`,
		"a\rb\nc\td":            `a\rb\nc\td`,
		"\u202egnp":             `\u202egnp`,
		"\u200bzero\u0085":      `\u200bzero\u0085`,
		"cut \xe2\x82 here\x80": `cut \xe2\x82 here\x80`,
		"\x7f \U000e0041":       `\u007f \udb40\udc41`,
		"漢字":                    "漢字",
	} {
		if got := Plain(text); got != want {
			t.Errorf("Plain(%q) = %q, want %q", text, got, want)
		}
	}
	if got, want := Lines("a\x1b\tc\nb\r\n"), "a\\x1b\tc\nb\\r\n"; got != want {
		t.Errorf("Lines: %q, want %q", got, want)
	}
}

// TestMarkdownShowsTexts: whatever a text contains, it is one cell, and is read back as its plain form.
func TestMarkdownShowsTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"|", "\\", "`", "[l](x)", "<b>", "*", "a", " ", "\n", "\x1b", "\xff", "\u202e"})
		text := strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "")
		escaped := escapeMarkdown(text)
		if i := strings.IndexFunc(escaped, func(r rune) bool { return unicode.IsControl(r) || r == '\u202e' }); i >= 0 {
			t.Fatalf("%q has a control character", escaped)
		}
		if got := UnescapeMarkdown(escaped); got != Plain(text) {
			t.Fatalf("%q is read back as %q, want %q", escaped, got, Plain(text))
		}
		cells := MarkdownCells("| name | " + escaped + " | 3 |")
		if len(cells) != 3 || UnescapeMarkdown(strings.TrimSpace(cells[1])) != strings.TrimSpace(Plain(text)) {
			t.Fatalf("cells %q of %q", cells, text)
		}
	})
}
