package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var number = regexp.MustCompile(`\d+(?:\.\d+)?(?:[eE][+-]?\d+)?`)

// program is what a page has beside its content.
var program = regexp.MustCompile(`(?s)<meta http-equiv[^>]*>|<style[^>]*>.*?</style>|<script>.*?</script>`)

// numbersOf returns the numbers of a text in order, with their signs.
func numbersOf(text string) []string {
	var found []string
	for _, at := range number.FindAllStringIndex(text, -1) {
		from := at[0]
		minus := from > 0 && text[from-1] == '-'
		if minus && (from == 1 || strings.IndexByte(" ,:([{=\"\n\t>", text[from-2]) >= 0) {
			from--
		}
		found = append(found, text[from:at[1]])
	}
	return found
}

// compareNumbers compares the numbers of two files: JSON by path, anything else in order. In prose another order of the
// same numbers is a note, not a difference.
func compareNumbers(name string, x, y []byte) (difference, note string) {
	var left, right any
	if decode(x, &left) && decode(y, &right) {
		return compareJSON(name, flatten(left), flatten(right)), ""
	}
	if filepath.Ext(name) == ".html" {
		x, y = program.ReplaceAll(x, nil), program.ReplaceAll(y, nil)
		x, y = []byte(html.UnescapeString(string(x))), []byte(html.UnescapeString(string(y)))
	}
	a, b := numbersOf(string(x)), numbersOf(string(y))
	if slices.Equal(a, b) {
		return "", ""
	}
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	text := fmt.Sprintf("  %s: number %d of %d and %d\n    - %s\n    + %s", name, i+1, len(a), len(b),
		strings.Join(a[max(0, min(i, len(a))-2):min(len(a), i+5)], " "),
		strings.Join(b[max(0, min(i, len(b))-2):min(len(b), i+5)], " "))
	slices.Sort(a)
	slices.Sort(b)
	if prose := filepath.Ext(name); slices.Equal(a, b) &&
		(prose == ".stdout" || prose == ".stderr" || prose == ".md" || prose == ".html") {
		return "", text + "\n    (the same numbers in another order)"
	}
	return text, ""
}

// decode reads one JSON value that is an object or a list, with numbers as they are written.
func decode(text []byte, into *any) bool {
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' || !json.Valid(trimmed) {
		return false
	}
	decoder := json.NewDecoder(bytes.NewReader(trimmed))
	decoder.UseNumber()
	return decoder.Decode(into) == nil
}

// entry is the place of a value in a JSON document and the numbers there.
type entry struct{ path, value string }

// flatten returns the places of a JSON document that hold numbers, truth values or texts with numbers in them.
func flatten(value any) []entry {
	var entries []entry
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, value := range v {
				walk(path+"."+key, value)
			}
		case []any:
			for i, value := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), value)
			}
		case string:
			if found := numbersOf(v); len(found) > 0 {
				slices.Sort(found) // words may change their order
				entries = append(entries, entry{path, strings.Join(found, " ")})
			}
		case json.Number, bool:
			entries = append(entries, entry{path, fmt.Sprint(v)})
		}
	}
	walk("", value)
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return entries
}

func compareJSON(name string, a, b []entry) string {
	for i := 0; i < max(len(a), len(b)); i++ {
		var x, y entry
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		switch {
		case i < len(a) && i < len(b) && x.path < y.path || i >= len(b):
			y = entry{}
		case i < len(a) && i < len(b) && x.path > y.path || i >= len(a):
			x = entry{}
		}
		if x != y {
			return fmt.Sprintf("  %s:\n    - %s %s\n    + %s %s", name, x.path, x.value, y.path, y.value)
		}
	}
	return ""
}
