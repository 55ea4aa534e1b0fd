package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clifftop/workload"
)

// FuzzBody sends any body to the endpoints: no body makes the server fail, and every error has OpenAI's shape.
func FuzzBody(f *testing.F) {
	paths := []string{"/v1/completions", "/v1/chat/completions", "/generate", "/tokenize", "/detokenize"}
	files, err := filepath.Glob("testdata/clients/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var cases []clientCase
		if err := json.Unmarshal(data, &cases); err != nil {
			f.Fatal(err)
		}
		for _, k := range cases {
			for i, path := range paths {
				if path == k.Path {
					f.Add(i, 0, string(k.Body))
				}
			}
		}
	}
	for _, body := range []string{"", "null", "{}", `{"prompt": null}`, `{"messages": [null]}`, `{"text": [[]]}`,
		`{"prompt": [1, 2,]}`, `{"stop": ["\u0000"], "prompt": "a"}`, `{"prompt": "\ud800", "echo": true}`,
		`{"prompt": " ", "n": 3, "stream": true}`, `{"tokens": [1]}`, `{"prompt": "a", "stream_options": null}`} {
		for i := range paths {
			f.Add(i, i%2, body)
		}
	}
	for _, kv := range []string{"null", "[]", `{"do_remote_decode": true}`,
		`{"do_remote_prefill": true, "remote_engine_id": ` +
			`"p-1", "remote_request_id": "0", "remote_block_ids": [[0]], "remote_host": null, "remote_port": "x"}`} {
		for replica := range 5 {
			f.Add(replica%2, replica,
				`{"prompt": "a", "messages": [{"role": "user", "content": "a"}], "kv_transfer_params": `+kv+"}")
		}
	}
	x := newServer(f, divided, 1, nil)
	x.send = func(r workload.Request) stream { return &memory{r.OutputTokens} }
	var handlers []http.Handler
	for replica := range 5 {
		handlers = append(handlers, x.Handler(int32(replica)))
	}
	f.Fuzz(func(t *testing.T, path, replica int, body string) {
		if path < 0 || path >= len(paths) || replica < 0 || replica >= len(handlers) {
			return
		}
		r, err := http.NewRequest("POST", paths[path], strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handlers[replica].ServeHTTP(w, r)
		a := answer{w.Code, w.Header(), w.Body.String()}
		switch {
		case a.status >= 500:
			t.Fatalf("%d %s", a.status, a.body)
		case a.status != 200:
			isError(t, a)
		case strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream"):
			events(t, a.body)
		default:
			read(t, a.body)
		}
	})
}
