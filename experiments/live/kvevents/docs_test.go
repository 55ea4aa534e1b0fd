package kvevents

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocs compares the keys that docs/serve.md lists with those of Config.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile("../../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(data), "\n## KV events\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var listed, real []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\| ").FindAllStringSubmatch(section, -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			listed = append(listed, strings.Trim(name, "`"))
		}
	}
	for f := range reflect.TypeFor[Config]().Fields() {
		real = append(real, f.Tag.Get("json"))
	}
	slices.Sort(listed)
	slices.Sort(real)
	if !slices.Equal(listed, real) {
		t.Errorf("docs/serve.md lists %q (want %q)", listed, real)
	}
}
