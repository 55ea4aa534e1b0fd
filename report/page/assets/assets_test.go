package assets

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNothingIsFetched fails when a script or a style sheet asks for something elsewhere. The library names its home in
// a comment.
func TestNothingIsFetched(t *testing.T) {
	address := regexp.MustCompile(`(?:https?:)?//[a-z][a-z0-9.-]*\.[a-z]{2,}[^\s"')]*|\b(?:fetch|XMLHttpRequest|WebSocket|importScripts|sendBeacon)\b|@import|url\(`)
	for name, text := range map[string]string{"scripts": Scripts(), "styles": Styles()} {
		for _, found := range address.FindAllString(text, -1) {
			if found != "https://github.com/leeoniya/uPlot" {
				t.Errorf("the %s have %q", name, found)
			}
		}
	}
}

// TestEveryFileIsUsed fails when a file is embedded and no page has it.
func TestEveryFileIsUsed(t *testing.T) {
	used := slices.Concat(scriptNames(), styleNames(), []string{"uPlot.LICENSE"})
	entries, err := files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(used, e.Name()) {
			t.Errorf("%s is embedded and not used", e.Name())
		}
	}
	if len(entries) != len(used) {
		t.Errorf("%d files are embedded, %d used", len(entries), len(used))
	}
	if !strings.Contains(Licence(), "MIT") ||
		!strings.HasPrefix(Scripts(), "/*! https://github.com/leeoniya/uPlot (v1.6.32) */") {
		t.Error("the library stands there without its name, version or licence")
	}
}
