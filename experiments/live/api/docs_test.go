package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// docs returns the rows of the table below a heading of docs/serve.md, as their cells.
func docs(t *testing.T, heading string) (rows [][]string) {
	t.Helper()
	data, err := os.ReadFile("../../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(data), "\n### "+heading+"\n")
	if !ok {
		t.Fatalf("docs/serve.md has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n#")
	for line := range strings.SplitSeq(section, "\n") {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "|---") {
			rows = append(rows, strings.Split(strings.Trim(line, "| "), " | "))
		}
	}
	if len(rows) < 2 {
		t.Fatalf("the section %q has no table", heading)
	}
	return rows[1:]
}

var codeText = regexp.MustCompile("`([^`]+)`")

// codes returns what is written as code in a text.
func codes(text string) (list []string) {
	for _, m := range codeText.FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

// same compares what the page lists with what there is.
func same(t *testing.T, what string, listed, real []string) {
	t.Helper()
	listed, real = slices.Sorted(slices.Values(listed)), slices.Sorted(slices.Values(real))
	if !slices.Equal(listed, real) {
		t.Errorf("docs/serve.md: %s:\n%q\nwant\n%q", what, listed, real)
	}
}

// TestDocsEndpoints compares the list of endpoints.
func TestDocsEndpoints(t *testing.T) {
	x := newServer(t, small, 1, nil)
	var listed, real []string
	for _, row := range docs(t, "Endpoints") {
		for _, path := range codes(row[0]) {
			listed = append(listed, path+" "+row[1])
		}
	}
	for _, r := range x.routes() {
		key := map[bool]string{true: "no", false: "yes"}[r.open]
		real = append(real, strings.ReplaceAll(r.methods, " ", ", ")+" "+strings.Replace(r.path, "{name...}", "NAME", 1)+
			" "+key)
	}
	same(t, "endpoints", listed, real)
}

// bodies are the types of the requests, by the names that the page gives to the endpoints.
var bodies = map[string]struct {
	kind reflect.Type
	path string
	body string // of a right request
}{
	"completions": {reflect.TypeFor[completionRequest](), "/v1/completions", `"prompt": "a", "max_tokens": 2`},
	"chat": {reflect.TypeFor[chatRequest](), "/v1/chat/completions",
		`"messages": [{"role": "user", "content": "a"}], "max_tokens": 2`},
	"generate": {reflect.TypeFor[generateRequest](), "/generate",
		`"text": "a", "sampling_params": {"max_new_tokens": 2}`},
	"tokenize":   {reflect.TypeFor[tokenizeRequest](), "/tokenize", `"prompt": "a"`},
	"detokenize": {reflect.TypeFor[detokenizeRequest](), "/detokenize", `"tokens": []`},
}

// fieldsOf returns the JSON fields of a type.
func fieldsOf(kind reflect.Type, prefix string) (list []string) {
	for i := range kind.NumField() {
		f := kind.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		own := reflect.PointerTo(inner).Implements(reflect.TypeFor[json.Unmarshaler]())
		switch {
		case f.Anonymous:
			list = append(list, fieldsOf(inner, prefix)...)
		case inner.Kind() == reflect.Struct && !own && inner != reflect.TypeFor[transferParams]():
			list = append(list, fieldsOf(inner, prefix+name+".")...)
		default:
			list = append(list, prefix+name)
		}
	}
	return list
}

// TestDocsRequests compares the fields of requests: those with an effect, those that are refused, and those without an
// effect.
func TestDocsRequests(t *testing.T) {
	x := serve(t, small, 1000, nil)
	listed := map[string][]string{}
	for _, row := range docs(t, "Request fields") {
		for endpoint := range strings.SplitSeq(row[1], ", ") {
			b, ok := bodies[endpoint]
			if !ok {
				t.Fatalf("%q is no endpoint", endpoint)
			}
			switch what, _, _ := strings.Cut(strings.Replace(row[2], ":", "", 1), " "); what {
			case "ignored":
				for _, name := range codes(row[0]) {
					listed[endpoint+" ignored"] = append(listed[endpoint+" ignored"], name)
					for _, v := range []string{"1", `"x"`, "true", "[1]", `{"a": 1}`, "null"} {
						body := fmt.Sprintf(`{%s, %q: %s}`, b.body, name, v)
						if a := x.do(t, "POST", b.path, body); a.status != 200 && endpoint != "detokenize" {
							t.Errorf("%s: %d %s", body, a.status, a.body)
						}
					}
				}
				continue
			case "refused":
				for _, name := range codes(row[0]) {
					a := x.do(t, "POST", b.path, fmt.Sprintf(`{%s, %q: true}`, b.body, name))
					if isError(t, a); a.status != 400 || at(t, read(t, a.body), "error.param") != name {
						t.Errorf("%s, %s: %d %s", endpoint, name, a.status, a.body)
					}
				}
			}
			listed[endpoint] = append(listed[endpoint], codes(row[0])...)
		}
	}
	for endpoint, b := range bodies {
		real := fieldsOf(b.kind, "")
		same(t, "fields of "+endpoint, listed[endpoint], real)
		for _, name := range listed[endpoint+" ignored"] {
			if slices.Contains(real, name) {
				t.Errorf("%s: %s has an effect", endpoint, name)
			}
		}
	}
}

// keys returns the paths of the keys in JSON.
func keys(v any, prefix string, into map[string]bool) {
	switch v := v.(type) {
	case object:
		for key, inner := range v {
			path := strings.TrimPrefix(prefix+"."+key, ".")
			if _, nested := inner.(object); !nested {
				into[path] = true
			}
			keys(inner, path, into)
		}
	case []any:
		for _, inner := range v {
			keys(inner, prefix, into)
		}
	}
}

// TestDocsResponses compares the fields of responses, without a stream and with one.
func TestDocsResponses(t *testing.T) {
	x := serve(t, small, 1000, nil)
	rows := docs(t, "Response fields")
	if len(rows) != 6 {
		t.Errorf("%d rows (want 6)", len(rows))
	}
	for _, row := range rows {
		endpoint, streamed := strings.CutSuffix(row[0], ", stream")
		b := bodies[endpoint]
		body := b.body
		if endpoint != "generate" {
			body += `, "return_token_ids": true`
		}
		got := map[string]bool{}
		if streamed {
			if endpoint != "generate" {
				body += `, "stream_options": {"include_usage": true, "continuous_usage_stats": true}`
			}
			for _, e := range events(t, x.do(t, "POST", b.path, "{"+body+`, "stream": true}`).body) {
				keys(e, "", got)
			}
		} else {
			keys(read(t, x.do(t, "POST", b.path, "{"+body+"}").body), "", got)
		}
		delete(got, "choices") // of the last event
		real := slices.Collect(maps.Keys(got))
		real = slices.DeleteFunc(real, func(k string) bool {
			return slices.ContainsFunc(real, func(other string) bool { return strings.HasPrefix(other, k+".") })
		})
		same(t, "fields of the response of "+row[0], codes(row[1]), real)
	}
}

// TestDocsErrors compares the list of errors.
func TestDocsErrors(t *testing.T) {
	var listed, real []string
	for _, row := range docs(t, "Errors") {
		listed = append(listed, row[0]+" "+strings.Join(codes(row[1]), ""))
	}
	for status, kind := range kinds {
		real = append(real, strconv.Itoa(status)+" "+kind)
	}
	same(t, "errors", listed, real)
}

// TestDocsHeaders compares the list of Clifftop's headers.
func TestDocsHeaders(t *testing.T) {
	var listed []string
	for _, row := range docs(t, "Headers") {
		for _, name := range codes(row[0]) {
			if strings.HasPrefix(name, "X-Clifftop-") {
				listed = append(listed, name)
			}
		}
	}
	same(t, "headers", listed, []string{OutputHeader, ClassHeader, RequestHeader})
}
