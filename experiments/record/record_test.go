package record

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"clifftop/workload"
	"clifftop/workload/trace"
)

// start returns a proxy in front of a server, and a function that ends it and returns the trace.
func start(t *testing.T, upstream http.Handler, o Options) (address string, end func() string) {
	t.Helper()
	server := httptest.NewServer(upstream)
	t.Cleanup(server.Close)
	o.Upstream, _ = url.Parse(server.URL)
	var out bytes.Buffer
	if o.Out == nil {
		o.Out = &out
	}
	o.Salt = []byte("salt")
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(r)
	t.Cleanup(proxy.Close)
	return proxy.URL, func() string {
		proxy.Close()
		r.Close()
		return out.String()
	}
}

func post(t *testing.T, address, body string) string {
	t.Helper()
	resp, err := http.Post(address, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// read returns the rows of a trace as the reader of traces has them, and the columns that record adds.
func read(t *testing.T, text string) (list []workload.Request, cells []map[string]string) {
	t.Helper()
	f, err := trace.Open(strings.NewReader(text), "trace", trace.Options{ZeroOutput: trace.OneToken})
	for err == nil {
		var row trace.Row
		if row, err = f.Next(); err == nil {
			list = append(list, row.Request)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatalf("%v\n%s", err, text)
	}
	if w := f.Warnings(); len(w) > 0 {
		t.Errorf("warnings %q", w)
	}
	d := csv.NewReader(strings.NewReader(text))
	d.Comment = '#'
	all, err := d.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range all[1:] {
		m := map[string]string{}
		for i, name := range all[0] {
			m[name] = row[i]
		}
		cells = append(cells, m)
	}
	return list, cells
}

// stream answers with chunks of output, and the usage if it is not empty.
func stream(w http.ResponseWriter, usage string, pause time.Duration, chunks ...string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for _, c := range chunks {
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", c)
		w.(http.Flusher).Flush()
		time.Sleep(pause)
	}
	if usage != "" {
		fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":%s}\n\n", usage)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func chat(turns ...string) string {
	var list []string
	for i, text := range turns {
		list = append(list, fmt.Sprintf("{\"role\":%q,\"content\":%q}", []string{"user", "assistant"}[i%2], text))
	}
	return `{"model":"m","stream":true,"messages":[` + strings.Join(list, ",") + `]}`
}

// The counts of the server hold, also where the tokenizer here has others: a later turn repeats the whole of the turn
// before.
func TestConversation(t *testing.T) {
	t.Parallel()
	prompts := []int{100, 160, 230}
	n := 0
	address, end := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		stream(w, fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d}`, prompts[n], 12+n), 0, "An answer", " to it.")
		n++
	}), Options{})
	question := "Why does the throughput of a server fall when more requests arrive than it has memory for?"
	post(t, address+"/v1/chat/completions", chat(question))
	post(t, address+"/v1/chat/completions", chat(question, "An answer to it.", "And then?"))
	post(t, address+"/v1/chat/completions", chat(question, "An answer to it.", "And then?", "An answer to it.", "So?"))
	text := end()
	list, _ := read(t, text)
	if len(list) != 3 {
		t.Fatalf("%d rows:\n%s", len(list), text)
	}
	for i, r := range list {
		if r.Session != 1 || int(r.Turn) != i || int(r.InputTokens) != prompts[i] || int(r.OutputTokens) != 12+i ||
			r.Content.Tokens() != int64(prompts[i]) {
			t.Errorf("row %d: %+v with content of %d", i, r, r.Content.Tokens())
		}
		if i == 0 {
			continue
		}
		// All of the earlier prompt, and its output.
		whole := list[i-1].Text(nil)
		for k, s := range whole {
			if r.Content.Segments[k] != s {
				t.Errorf("row %d: segment %d is %v, but was %v", i, k, r.Content.Segments[k], s)
			}
		}
	}
}

// Prompts share what they begin with, whatever the order in which requests end.
func TestSharedPrefix(t *testing.T) {
	t.Parallel()
	slow := make(chan struct{})
	address, end := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("first")) {
			<-slow
		}
		stream(w, "", 0, "a", "b", "c")
	}), Options{})
	system := strings.Repeat("The rules of the house are long. ", 20)
	var all sync.WaitGroup
	all.Go(func() { post(t, address+"/v1/completions", fmt.Sprintf(`{"prompt":%q,"stream":true}`, system+"first")) })
	time.Sleep(50 * time.Millisecond) // the order of arrivals
	post(t, address+"/v1/completions", fmt.Sprintf(`{"prompt":%q,"stream":true}`, system+"second"))
	close(slow)
	all.Wait()
	list, cells := read(t, end())
	if len(list) != 2 || cells[0]["ttft_s"] <= cells[1]["ttft_s"] {
		t.Fatalf("%v", cells)
	}
	a, b := list[0].Content.Segments, list[1].Content.Segments
	shared := 0
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			break
		}
		shared += int(a[i].Tokens)
	}
	if n := int(list[0].InputTokens); shared < n-20 || shared >= n {
		t.Errorf("%d of %d tokens are shared", shared, n)
	}
	if list[0].OutputTokens != 3 || cells[0]["counted"] != byChunks {
		t.Errorf("%v", cells[0])
	}
}

// Outcomes, and how each is counted.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	address, end := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		has := func(s string) bool { return bytes.Contains(body, []byte(s)) }
		switch {
		case has("busy"):
			http.Error(w, `{"error":{"message":"busy"}}`, http.StatusTooManyRequests)
		case has("wrong"):
			http.Error(w, `{"error":{"message":"wrong"}}`, http.StatusBadRequest)
		case has("break"):
			stream(w, "", 0, "a")
			panic(http.ErrAbortHandler)
		case has("error"):
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"error\":{\"message\":\"died\"}}\n\ndata: [DONE]\n\n")
		case has("slow"):
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"a\"}]}\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done() // the client goes
		case has("pair"):
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"choices":[{"index":0,"text":"one two three four"},{"index":1,"text":"five six"}],`+
				`"usage":{"prompt_tokens":7,"completion_tokens":12,"prompt_tokens_details":{"cached_tokens":4}}}`)
		case has("generate"):
			w.Header().Set("Content-Type", "text/event-stream")
			for _, text := range []string{"a", "a b", "a b c"} {
				fmt.Fprintf(w, "data: {\"text\":%q,\"meta_info\":{\"prompt_tokens\":9,\"completion_tokens\":%d}}\n\n", text,
					(len(text)+1)/2)
			}
			fmt.Fprint(w, "data: [DONE]\n\n")
		}
	}), Options{})
	path := address + "/v1/completions"
	post(t, path, `{"prompt":"busy"}`)
	post(t, path, `{"prompt":"wrong"}`)
	if resp, err := http.Post(path, "application/json", strings.NewReader(`{"prompt":"break"}`)); err == nil {
		_, _ = io.ReadAll(resp.Body) // it breaks off
		resp.Body.Close()
	}
	post(t, path, `{"prompt":"error"}`)
	client := http.Client{Timeout: 200 * time.Millisecond}
	if resp, err := client.Post(path, "application/json",
		strings.NewReader(`{"prompt":"slow","max_tokens":50}`)); err == nil {
		_, _ = io.ReadAll(resp.Body) // until the timeout
		resp.Body.Close()
	}
	post(t, path, `{"prompt":"pair","n":2}`)
	post(t, address+"/generate", `{"text":"generate","stream":true}`)
	post(t, address+"/v1/other", `{"prompt":"not recorded"}`)
	list, cells := read(t, end())
	want := []struct {
		outcome, status, counted, received string
		input, output                      int32
	}{
		{rejected, "429", byText, "0", 1, 1},
		{failed, "400", byText, "0", 1, 1},
		{failed, "200", byChunks, "1", 1, 1},
		{failed, "200", byText, "0", 1, 1},
		{cancelled, "200", byChunks, "1", 1, 50},
		{completed, "200", byUsage, "8", 7, 8},
		{completed, "200", byUsage, "4", 7, 4},
		{completed, "200", byUsage, "3", 9, 3},
	}
	if len(list) != len(want) {
		t.Fatalf("%d rows: %v", len(list), cells)
	}
	for i, w := range want {
		c, r := cells[i], list[i]
		if c["outcome"] != w.outcome || c["status"] != w.status || c["counted"] != w.counted || c["received"] != w.received ||
			r.InputTokens != w.input || r.OutputTokens != w.output {
			t.Errorf("row %d: %+v of %v", i, r, c)
		}
		if left := r.Client != nil; left != (w.outcome == cancelled) {
			t.Errorf("row %d: the client %+v", i, r.Client)
		}
	}
	if cells[5]["cached_tokens"] != "4" || cells[5]["ttft_s"] != "" || cells[7]["ttft_s"] == "" {
		t.Errorf("%v\n%v", cells[5], cells[7])
	}
}

// A client may leave when it has the last event, before the connection says that the response has ended.
func TestLeavesAfterTheLastEvent(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	address, end := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stream(w, "", 0, "a", "b")
		w.(http.Flusher).Flush()
		select { // the response does not end by itself
		case <-r.Context().Done():
		case <-held:
		}
	}), Options{})
	defer close(held)
	body := strings.NewReader(`{"prompt":"a","stream":true}`)
	resp, err := http.Post(address+"/v1/completions", "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	for b := make([]byte, 64); !bytes.Contains(got, []byte("[DONE]\n\n")); {
		n, err := resp.Body.Read(b)
		if got = append(got, b[:n]...); err != nil {
			t.Fatal(err)
		}
	}
	resp.Body.Close()
	_, cells := read(t, end())
	if len(cells) != 1 || cells[0]["outcome"] != completed || cells[0]["received"] != "2" {
		t.Errorf("%v", cells)
	}
}

// What passes is unchanged, and nothing of it is in the trace.
func TestTransparent(t *testing.T) {
	t.Parallel()
	const secret = "sesame"
	body := fmt.Sprintf(`{"model":"%s", "prompt":"%[1]s %[1]s", "user":"%[1]s", "unknown":[1, 2.50]}`, secret)
	answer := []byte(`{"choices":[{"text":"` + secret + `"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(answer)
	_ = z.Close()
	address, end := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		if string(got) != body || r.Header.Get("Authorization") != "Bearer "+secret || r.URL.RawQuery != "q="+secret ||
			r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("%s %v %s", got, r.Header, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("X-Custom", secret)
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(zipped.Bytes())
	}), Options{})
	q, _ := http.NewRequest(http.MethodPost, address+"/base/v1/completions?q="+secret, strings.NewReader(body))
	q.Header.Set("Authorization", "Bearer "+secret)
	q.Header.Set("Accept-Encoding", "gzip")
	q.Header.Set("X-Session-ID", secret)
	resp, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if !bytes.Equal(got, zipped.Bytes()) || resp.Header.Get("X-Custom") != secret {
		t.Errorf("%q %v", got, resp.Header)
	}
	text := end()
	list, cells := read(t, text)
	if len(list) != 1 || list[0].InputTokens != 3 || list[0].OutputTokens != 2 || cells[0]["model"] != secret {
		t.Fatalf("%+v %v", list, cells)
	}
	if n := strings.Count(text, secret); n != 1 { // the name of the model
		t.Errorf("%d times the secret in the trace:\n%s", n, text)
	}
	if strings.Contains(text, "127.0.0.1") {
		t.Errorf("an address is in the trace:\n%s", text)
	}
}

// broken is a full disk.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A full disk ends the recording, and requests pass.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	failures := 0
	var mu sync.Mutex
	address, end := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { stream(w, "", 0, "a") }),
		Options{Out: broken{}, Failed: func(error) { mu.Lock(); failures++; mu.Unlock() }})
	for range 3 {
		if got := post(t, address+"/v1/completions", `{"prompt":"a"}`); !strings.Contains(got, "[DONE]") {
			t.Errorf("%q", got)
		}
		time.Sleep(600 * time.Millisecond) // the trace is flushed once a second
	}
	end()
	if failures != 1 {
		t.Errorf("%d failures", failures)
	}
}

// A body that is too long, or too slow, is refused.
func TestBodyLimits(t *testing.T) {
	t.Parallel()
	address, end := start(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request came") }),
		Options{MaxBody: 10, BodyTimeout: 50 * time.Millisecond})
	if got := post(t, address+"/v1/completions", `{"prompt":"too long"}`); !strings.Contains(got, "larger than 10 bytes") {
		t.Errorf("%q", got)
	}
	slow, write := io.Pipe()
	defer write.Close()
	resp, err := http.Post(address+"/v1/completions", "application/json", slow)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestTimeout {
		t.Errorf("status %s", resp.Status)
	}
	write.Close()
	end()
}

// The server is away.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	u, _ := url.Parse("http://127.0.0.1:1")
	var out bytes.Buffer
	r, err := New(Options{Upstream: u, Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(r)
	got := post(t, proxy.URL+"/v1/completions", `{"prompt":"a"}`)
	proxy.Close()
	r.Close()
	if !strings.Contains(got, "clifftop record cannot reach the server") || r.Summary() != "1 failed" {
		t.Errorf("%q %q", got, r.Summary())
	}
	_, cells := read(t, out.String())
	if len(cells) != 1 || cells[0]["outcome"] != failed || cells[0]["status"] != "502" {
		t.Errorf("%v", cells)
	}
}

// Prompts in all their forms.
func TestPrompts(t *testing.T) {
	for body, want := range map[string]string{
		`{"prompt":"a b"}`:                          "[{a b [] <nil>}] 1 0",
		`{"prompt":["a","b"],"n":2,"max_tokens":7}`: "[{a [] <nil>} {b [] <nil>}] 2 7",
		`{"prompt":[5,6,7]}`:                        "[{ [5 6 7] <nil>}] 1 0",
		`{"prompt":[[5],[6,7]]}`:                    "[{ [5] <nil>} { [6 7] <nil>}] 1 0",
		`{"input_ids":[5,6]}`:                       "[{ [5 6] <nil>}] 1 0",
		`{"text":["a"],"sampling_params":{"n":3,"max_new_tokens":9}}`: "[{a [] <nil>}] 3 9",
		`{"prompt":[]}`: "[{ [] <nil>}] 1 0",
		`{"prompt":{"a":1},"max_completion_tokens":"x"}`: "[{ [] <nil>}] 1 0",
		`{`: "[{ [] <nil>}] 1 0",
	} {
		r := parse([]byte(body), "")
		if got := fmt.Sprint(r.prompts, r.n, r.most); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// Bodies of any kind pass and do no harm.
func FuzzBody(f *testing.F) {
	for _, s := range []string{`{"prompt":"a"}`, `{"prompt":[1,2]}`, `{"prompt":[[1],[2]]}`, `{"prompt":["a","b"],"n":-1}`,
		`{"messages":[{"role":5}]}`, `{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`,
		`{"n":1e300,"text":""}`,
		`[]`, `{`, `{"input_ids":[4294967295]}`, `{"max_tokens":"x","prompt":null}`} {
		f.Add([]byte(s), []byte(`data: {"choices":[{"index":-1,"text":"a"},{"index":99999,"text":"b"}],"usage":{}}`+"\n"))
	}
	f.Fuzz(func(t *testing.T, body, response []byte) {
		var out bytes.Buffer
		r, err := newRows(&Options{Out: &out, Salt: []byte{1}})
		if err != nil {
			t.Fatal(err)
		}
		x := &exchange{status: 200, upstream: true, whole: true, wall: time.Now(), answer: answer{stream: true, done: true}}
		m := meter{ReadCloser: io.NopCloser(bytes.NewReader(response)), x: x}
		if _, err := io.ReadAll(&m); err != nil {
			t.Fatal(err)
		}
		r.arrive(0, parse(body, ""))
		has := r.end(x)
		r.close()
		if has {
			read(t, out.String())
		}
	})
}
