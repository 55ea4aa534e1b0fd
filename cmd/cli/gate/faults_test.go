package gate

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// longestLine is the length of an error's first line, without the name of the file.
const longestLine = 160

// TestFaults puts one bad value into a valid scenario. The command must refuse it in one line that names its key, or the
// key of the map that it is in.
func TestFaults(t *testing.T) {
	setChecks(t, checks())
	rapid.Check(t, func(t *rapid.T) {
		s := scenarios.Draw(t, "scenario")
		d := drawer{t}
		b := s.clone()
		key, in := d.spoil("", map[string]any(b))
		name := b.file(t, "scenario")
		o := command(t, "run", name, "--quiet")
		line, _, _ := strings.Cut(o.stderr, "\n")
		text, found := strings.CutPrefix(line, "clifftop: "+name+":")
		switch {
		case o.status != 2:
			t.Fatalf("exit status %d with a bad %s: %s%s", o.status, key, o.stderr, b)
		case !found:
			t.Fatalf("the error does not say where: %s", o.stderr)
		case !strings.Contains(o.stderr, key) && (in == "" || !strings.Contains(o.stderr, in)):
			t.Fatalf("the error does not name %s: %s%s", key, o.stderr, b)
		case utf8.RuneCountInString(text) > longestLine:
			t.Fatalf("the error is long: %s", line)
		}
	})
}

// spoil makes one value of a map bad and returns its key and that of the map that it is in. It goes down by chance.
func (d drawer) spoil(path string, m map[string]any) (key, in string) {
	list := slices.Sorted(maps.Keys(m))
	if len(list) == 0 || d.chance(.15) {
		m["zzz"] = 1
		return "zzz", path
	}
	key = one(d, list...)
	switch x := m[key].(type) {
	case map[string]any:
		return d.spoil(key, x)
	case []any:
		if len(x) > 0 {
			if below, ok := x[0].(map[string]any); ok {
				return d.spoil(key, below)
			}
		}
		m[key] = map[string]any{"zzz": x}
	case float64:
		m[key] = one(d, any(json.Number("-1e30")), any("zzz"), any([]any{[]any{}}))
	default:
		m[key] = map[string]any{"zzz": 1}
	}
	return key, path
}
