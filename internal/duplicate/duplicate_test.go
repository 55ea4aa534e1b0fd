package duplicate

import "testing"

func TestKey(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 1, "b": {"a": 2}}`:                   "",
		`{"a": 1, "a": 1}`:                          "a",
		"{\"a\": [{\"b\": 1,\n \"b\": 2}]}":         "a.0.b",
		`[{"x": 1}, {"x": 1}]`:                      "",
		`{"a": {"b": null}, "c": true, "a": false}`: "a",
		`{"a": 1, "a"`:                              "a",
		`not JSON`:                                  "",
		``:                                          "",
	} {
		path, line, found := Key([]byte(text))
		if path != want || found != (want != "") {
			t.Errorf("%s: %q, %v", text, path, found)
		}
		if want == "a.0.b" && line != 2 {
			t.Errorf("%s: line %d", text, line)
		}
	}
}

func TestColumn(t *testing.T) {
	if name, found := Column([]string{"a", "b ", " a", "", ""}); name != "a" || !found {
		t.Errorf("%q, %v", name, found)
	}
	if name, found := Column([]string{"a", "b", "", ""}); found {
		t.Errorf("%q", name)
	}
}
