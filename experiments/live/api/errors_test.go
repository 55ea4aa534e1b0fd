package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"clifftop/sim/event"
)

// isError checks that a body is an error in OpenAI's shape, and returns its message.
func isError(t testing.TB, a answer) string {
	t.Helper()
	v := read(t, a.body)
	message, ok := at(t, v, "error.message").(string)
	kind, ok2 := at(t, v, "error.type").(string)
	code, ok3 := at(t, v, "error.code").(float64)
	_, ok4 := at(t, v, "error").(object)["param"]
	if !ok || !ok2 || !ok3 || !ok4 || message == "" || kind == "" || int(code) != a.status {
		t.Errorf("%d %s is not an error in OpenAI's shape", a.status, a.body)
	}
	if a.header.Get("Content-Type") != "application/json" || a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("header %v", a.header)
	}
	return message
}

func TestErrors(t *testing.T) {
	x := serve(t, small, 1000, func(o *Options) { o.Body = 10_000 })
	const completions, chat = "/v1/completions", "/v1/chat/completions"
	for _, k := range []struct {
		method, path, body string
		status             int
		param, message     string
	}{
		{"POST", completions, `{"prompt": "a",`, 400, "", "the body is not JSON: line 1, column 15"},
		{"POST", completions, "{\n\"prompt\": \"a\",\n]", 400, "", "line 3, column 1"},
		{"POST", completions, `[1]`, 400, "", "the body is JSON array (want an object)"},
		{"POST", completions, ` `, 400, "", "the body is not JSON"},
		{"POST", completions, `{"prompt": "a"} x`, 400, "", "the body is not JSON"},
		{"POST", completions, `{}`, 400, "prompt", "prompt is missing"},
		{"POST", completions, `{"prompt": []}`, 400, "prompt", "prompt is missing"},
		{"POST", completions, `{"prompt": [[]]}`, 400, "prompt", "the prompt is empty"},
		{"POST", completions, `{"prompt": 5}`, 400, "prompt", "prompt: found number (want a string"},
		{"POST", completions, `{"prompt": [1, "a"]}`, 400, "prompt", `prompt[1]: "a" is not a token ID`},
		{"POST", completions, `{"prompt": ["a", 1]}`, 400, "prompt", "several kinds"},
		{"POST", completions, `{"prompt": [1, -1]}`, 400, "prompt", `prompt[1]: -1 is not a token ID`},
		{"POST", completions, `{"prompt": [1, 4294967295]}`, 400, "prompt", "is not a token ID"},
		{"POST", completions, `{"prompt": [[1], 2]}`, 400, "prompt", "found number in a list of lists"},
		{"POST", completions, `{"prompt": "a", "max_tokens": "x"}`, 400, "max_tokens", "max_tokens: found string (want a number)"},
		{"POST", completions, `{"prompt": "a", "max_tokens": 1.5}`, 400, "max_tokens", "1.5 is not allowed (want an integer)"},
		{"POST", completions, `{"prompt": "a", "max_tokens": -1}`, 400, "max_tokens", "-1 is not allowed (want 1 to"},
		{"POST", completions, `{"prompt": "a", "max_tokens": 1e300}`, 400, "max_tokens", "want an integer"},
		{"POST", completions, `{"prompt": "a", "max_tokens": 0}`, 400, "max_tokens", "0 is not allowed"},
		{"POST", completions, `{"prompt": "a", "n": 0}`, 400, "n", "0 is not allowed (want 1 to 128)"},
		{"POST", completions, `{"prompt": "a", "stream": 1}`, 400, "stream", "stream: found number (want true or false)"},
		{"POST", completions, `{"prompt": "a", "stop": 1}`, 400, "stop", "stop: found number"},
		{"POST", completions, `{"prompt": "a", "stop": ""}`, 400, "stop", "string 0 has 0 bytes"},
		{"POST", completions, `{"prompt": "a", "stop": ["a", 1]}`, 400, "stop", "stop: found array"},
		{"POST", completions, `{"prompt": "a", "min_tokens": 5, "max_tokens": 4}`, 400, "min_tokens", "exceeds max_tokens"},
		{"POST", completions, `{"prompt": "a", "logprobs": 5}`, 400, "logprobs", "logprobs is not supported"},
		{"POST", completions, `{"prompt": "a", "prompt_embeds": "x"}`, 400, "prompt_embeds", "not supported"},
		{"POST", completions, `{"prompt": "a", "use_beam_search": true}`, 400, "use_beam_search", "not supported"},
		{"POST", completions, `{"prompt": "a", "priority": 99999}`, 400, "priority", "want -32768 to 32767"},
		{"POST", completions, `{"prompt": "a", "stream_options": {}}`, 400, "stream_options", "needs stream: true"},
		{"POST", completions, `{"prompt": "a", "stream": true, "stream_options": {"include_usage": 1}}`, 400,
			"stream_options.include_usage", "want true or false"},
		{"POST", completions, `{"prompt": [1], "echo": true}`, 400, "echo", "tokenizer.json"},
		{"POST", completions, `{"prompt": "a", "model": "gpt-<script>"}`, 404, "model", `the model "gpt-<script>" does not exist`},
		{"POST", completions, `{"prompt": "a", "max_tokens": 4096}`, 400, "input_tokens",
			"the maximum context length is 4096 tokens, but the prompt has 1 and the request asks for 4096 output tokens, 4097"},
		{"POST", completions, `{"prompt": "` + strings.Repeat("a ", 4500) + `"}`, 400, "input_tokens",
			"the maximum context length is 4096 tokens, but the prompt has"},
		{"POST", completions, `{"prompt": "` + strings.Repeat("a", 10_000) + `"}`, 413, "", "want at most 10000 bytes"},
		{"POST", chat, `{}`, 400, "messages", "messages is empty"},
		{"POST", chat, `{"messages": [{"content": "a"}]}`, 400, "messages", "messages[0] has no role"},
		{"POST", chat, `{"messages": [{"role": "user", "content": 5}]}`, 400, "", "want a string or a list of parts"},
		{"POST", chat, `{"messages": [{"role": 7}]}`, 400, "messages.role", "messages.role: found number (want a string)"},
		{"POST", chat, `{"messages": [{"role": "user", "content": "a"}], "max_completion_tokens": 0}`, 400,
			"max_completion_tokens", "0 is not allowed"},
		{"POST", chat, `{"messages": [{"role": "user", "content": "a"}], "logprobs": true}`, 400, "logprobs", "not supported"},
		{"POST", "/generate", `{"sampling_params": {}}`, 400, "text", "text or input_ids is missing"},
		{"POST", "/generate", `{"text": "a", "input_ids": [1]}`, 400, "input_ids", "given together"},
		{"POST", "/generate", `{"text": "a", "return_logprob": true}`, 400, "return_logprob", "not supported"},
		{"POST", "/tokenize", `{}`, 400, "prompt", "prompt is missing"},
		{"POST", "/detokenize", `{}`, 400, "tokens", "tokens is missing"},
		{"GET", completions, "", 405, "", `"GET" is not allowed here (want POST)`},
		{"DELETE", "/health", "", 405, "", "want GET or POST"},
		{"GET", "/v2/<b>", "", 404, "", `there is no "/v2/<b>"`},
		{"GET", "/v1/models/nothing", "", 404, "model", "does not exist"},
	} {
		a := x.do(t, k.method, k.path, k.body)
		message := isError(t, a)
		param, _ := at(t, read(t, a.body), "error.param").(string)
		if a.status != k.status || param != k.param || !strings.Contains(message, k.message) {
			t.Errorf("%s %s %.80s: %d %q %s\nwant %d %q %s", k.method, k.path, k.body, a.status, param, message, k.status,
				k.param, k.message)
		}
		if strings.Contains(a.body, "<") {
			t.Errorf("%s is not escaped", a.body)
		}
	}
	if a := x.do(t, "POST", completions, `{"prompt": "a"}`, "Content-Type", "text/plain"); a.status != 415 ||
		isError(t, a) == "" {
		t.Errorf("%v", a)
	}
	for header, v := range map[string]string{OutputHeader: "0", ClassHeader: "none"} {
		if a := x.do(t, "POST", completions, `{"prompt": "a"}`, header, v); a.status != 400 || isError(t, a) == "" {
			t.Errorf("%s: %v", header, a)
		}
	}
	if n := len(x.records); n > 0 {
		t.Errorf("%d requests were submitted", n)
	}
}

// TestBusy fills the queue: the rest is rejected, before a stream has begun.
func TestBusy(t *testing.T) {
	t.Parallel()
	for status, retry := range map[int]string{0: "429", 503: "503"} {
		x := serve(t, small+"\nname: x", 1, func(o *Options) { o.BusyStatus = status })
		x.stop()
		<-x.served
		x = serve(t, "model: llama-3.1-8b\ngpu: h100\nengine: {max_num_seqs: 1, max_num_queued_reqs: 1}", 1,
			func(o *Options) { o.BusyStatus = status })
		codes := make(chan answer, 8)
		for range cap(codes) {
			go func() {
				codes <- x.do(t, "POST", "/v1/completions", `{"prompt": "a", "max_tokens": 100, "ignore_eos": true,
					"stream": true}`)
			}()
		}
		seen := map[string]int{}
		for range cap(codes) {
			a := <-codes
			seen[fmt.Sprint(a.status)]++
			if a.status != 200 {
				isError(t, a)
				if a.header.Get("Retry-After") == "" {
					t.Errorf("%v", a.header)
				}
			}
		}
		if seen[retry] < 4 || seen["200"] < 1 || seen["200"]+seen[retry] != cap(codes) {
			t.Errorf("%v", seen)
		}
	}
}

// TestNeverFits sends a prompt to a replica whose context is too short for it.
func TestNeverFits(t *testing.T) {
	x := newServer(t, "model: llama-3.1-8b\ngpu: h100\npools: [{name: a, engine: {max_model_len: 1000}}, "+
		"{name: b, engine: {max_model_len: 4000}}]", 1000, nil)
	ports, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ports[0].Replica = 1
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- x.Serve(ctx, ports) }()
	x.url = "http://" + ports[0].Addr().String()
	a := x.do(t, "POST", "/v1/completions", `{"prompt": "`+strings.Repeat("a ", 1500)+`", "stream": true}`)
	if a.status != 400 || !strings.Contains(isError(t, a), "never fits") {
		t.Errorf("%v", a)
	}
	// An output that reaches the end of the context is cut.
	v := read(t, x.do(t, "POST", "/v1/completions",
		`{"prompt": "`+strings.Repeat("a ", 900)+`", "max_tokens": 500, "ignore_eos": true}`).body)
	if at(t, v, "choices.0.finish_reason") != "length" || at(t, v, "usage.total_tokens") != 1000.0 {
		t.Errorf("%v", v)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestFailure lets a replica crash: its streams break, and new requests get 502 or 503, or a broken connection at the
// port of the replica.
func TestFailure(t *testing.T) {
	t.Parallel()
	x := serve(t, "model: llama-3.1-8b\ngpu: h100\nlifecycle: {failures: [{replica: 0, at: 1s, kind: crash, for: 1h}]}",
		1, nil)
	body := `{"prompt": "a", "max_tokens": 5000, "ignore_eos": true, "stream": true}`
	r, err := http.Post(x.url+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	got, err := io.ReadAll(r.Body)
	if err == nil || r.StatusCode != 200 || len(got) == 0 {
		t.Errorf("status %d, %d bytes, error %v (want a broken stream)", r.StatusCode, len(got), err)
	}
	a := x.do(t, "POST", "/v1/completions", body)
	if a.status != 503 && a.status != 502 {
		t.Errorf("%v", a)
	}
	isError(t, a)
	if a := x.do(t, "GET", "/health", ""); a.status != 503 {
		t.Errorf("health %v", a)
	}
}

func TestKeys(t *testing.T) {
	x := serve(t, small, 1000, func(o *Options) { o.Keys = []string{"one", "two"} })
	for path, method := range map[string]string{"/v1/models": "GET", "/v1/completions": "POST", "/generate": "POST",
		"/tokenize": "POST", "/get_server_info": "GET", "/v1//models": "GET", "/v1/models/x": "GET"} {
		for _, key := range []string{"", "Bearer", "Bearer three", "Basic one", "one", "Bearer on", "Bearer one two"} {
			a := x.do(t, method, path, "", "Authorization", key)
			if a.status != 401 || a.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s with %q: %v", path, key, a)
			}
			isError(t, a)
		}
	}
	for _, key := range []string{"Bearer one", "bearer two"} {
		if a := x.do(t, "GET", "/v1/models", "", "Authorization", key); a.status != 200 {
			t.Errorf("%q: %v", key, a)
		}
	}
	for _, path := range []string{"/health", "/ping", "/version", "/load"} {
		if a := x.do(t, "GET", path, ""); a.status != 200 {
			t.Errorf("%s: %v", path, a)
		}
	}
}

func TestOrigins(t *testing.T) {
	x := serve(t, small, 1000, nil)
	if a := x.do(t, "GET", "/v1/models", "", "Origin", "http://a"); a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%v", a.header)
	}
	y := serve(t, small, 1000, func(o *Options) { o.AllowOrigins, o.Keys = []string{"http://a"}, []string{"k"} })
	a := y.do(t, "OPTIONS", "/v1/completions", "", "Origin", "http://a", "Access-Control-Request-Method", "POST")
	if a.status != 204 || a.header.Get("Access-Control-Allow-Origin") != "http://a" {
		t.Errorf("%v", a)
	}
	if a := y.do(t, "GET", "/health", "", "Origin", "http://b"); a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%v", a.header)
	}
}

// TestDisconnect closes connections before and after the first token: the requests are aborted.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	x := serve(t, small, 1, nil)
	for _, stream := range []string{"true", "false"} {
		ctx, cancel := context.WithCancel(context.Background())
		r, _ := http.NewRequestWithContext(ctx, "POST", x.url+"/v1/completions", strings.NewReader(
			`{"prompt": "a", "max_tokens": 3000, "ignore_eos": true, "n": 2, "stream": `+stream+`}`))
		r.Header.Set("Content-Type", "application/json")
		time.AfterFunc(300*time.Millisecond, cancel)
		a, err := http.DefaultClient.Do(r)
		if err == nil {
			_, _ = io.ReadAll(a.Body)
			a.Body.Close()
		}
		for range 2 {
			if rec := x.record(t); rec.Outcome != event.Cancelled || rec.Tokens > 200 {
				t.Errorf("stream %s: %v after %d tokens", stream, rec.Outcome, rec.Tokens)
			}
		}
	}
}

// TestSlowClient does not read a stream: the request is aborted after the time limit.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	x := serve(t, "model: llama-3.1-8b\ngpu: h100\nengine: {max_model_len: 100000}", 20, func(o *Options) {
		o.WriteTimeout = 300 * time.Millisecond
	})
	c, err := net.Dial("tcp", strings.TrimPrefix(x.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := `{"text": "a", "stream": true, "sampling_params": {"max_new_tokens": 20000, "ignore_eos": true}}`
	fmt.Fprintf(c, "POST /generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		len(body), body)
	if rec := x.record(t); rec.Outcome != event.Cancelled {
		t.Errorf("%v after %d tokens", rec.Outcome, rec.Tokens)
	}
	for deadline := time.Now().Add(10 * time.Second); x.active.Load() > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the call goes on")
		}
	}
}

// TestSlowRequests sends a header and a body too slowly.
func TestSlowRequests(t *testing.T) {
	t.Parallel()
	x := serve(t, small, 1000, func(o *Options) {
		o.HeaderTimeout, o.BodyTimeout = 200*time.Millisecond, 200*time.Millisecond
	})
	for text, want := range map[string]string{
		"POST /v1/comp": "",
		"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{": "408",
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(x.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, text)
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		b, err := io.ReadAll(c)
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%q: %q %v", text, b, err)
		}
		c.Close()
	}
}

// TestLongStream streams for longer than the time limits of header, body and writes.
func TestLongStream(t *testing.T) {
	t.Parallel()
	x := serve(t, small, 1, func(o *Options) {
		o.HeaderTimeout, o.BodyTimeout, o.WriteTimeout, o.IdleTimeout = 100*time.Millisecond, 100*time.Millisecond,
			200*time.Millisecond, 100*time.Millisecond
		o.Hold = time.Millisecond
	})
	list := events(t, x.do(t, "POST", "/v1/completions",
		`{"prompt": "a", "max_tokens": 150, "ignore_eos": true, "stream": true}`).body)
	if len(list) != 150 {
		t.Errorf("%d events", len(list))
	}
}

// TestConnections opens more connections than the limit.
func TestConnections(t *testing.T) {
	x := serve(t, small, 1000, func(o *Options) { o.Connections = 2 })
	dial := func() net.Conn {
		c, err := net.Dial("tcp", strings.TrimPrefix(x.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		return c
	}
	ask := func(c net.Conn) int {
		fmt.Fprint(c, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode
	}
	a, b := dial(), dial()
	if ask(a) != 200 || ask(b) != 200 {
		t.Fatal("the first two connections are refused")
	}
	if got := ask(dial()); got != 503 {
		t.Errorf("third connection: %d", got)
	}
	a.Close()
	for deadline := time.Now().Add(10 * time.Second); ask(dial()) != 200; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a closed connection keeps its slot")
		}
	}
}

// TestShutdown ends the server while a short and a long stream run.
func TestShutdown(t *testing.T) {
	t.Parallel()
	x := serve(t, small, 1, func(o *Options) { o.Grace = time.Second })
	done := make(chan error, 2)
	send := func(tokens int) {
		r, err := http.Post(x.url+"/v1/completions", "application/json", strings.NewReader(fmt.Sprintf(
			`{"prompt": "a", "max_tokens": %d, "ignore_eos": true, "stream": true}`, tokens)))
		if err == nil {
			_, err = io.ReadAll(r.Body)
			r.Body.Close()
		}
		done <- err
	}
	go send(50)
	go send(3000)
	for x.active.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	x.stop()
	if err := <-done; err != nil {
		t.Errorf("the short stream: %v", err)
	}
	if err := <-done; err == nil {
		t.Error("the long stream was not cut")
	}
	if err := <-x.served; err != nil {
		t.Error(err)
	}
	if rec := x.record(t); rec.Outcome != event.Completed {
		t.Errorf("short: %v", rec.Outcome)
	}
	if rec := x.record(t); rec.Outcome != event.Cancelled {
		t.Errorf("long: %v", rec.Outcome)
	}
}

// TestPorts serves each replica on a port of its own.
func TestPorts(t *testing.T) {
	x := newServer(t, "model: llama-3.1-8b\ngpu: h100\ndeployment: {replicas: 3}\n"+
		"workload: {output: {distribution: fixed, value: 2}}", 1000, nil)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	first := free.Addr().(*net.TCPAddr).Port
	if _, err := ListenEach("127.0.0.1", first, 3); err == nil ||
		err.Error() != fmt.Sprintf("127.0.0.1:%d is in use by another program (want a free port)", first) {
		t.Errorf("%v", err)
	}
	free.Close()
	ports, err := ListenEach("127.0.0.1", first, 3)
	if err != nil {
		t.Skip(err) // another program has taken one of the ports
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- x.Serve(ctx, ports) }()
	for i, p := range ports {
		y := site{url: "http://" + p.Addr().String()}
		if a := y.do(t, "POST", "/v1/completions", `{"prompt": "a"}`); a.status != 200 {
			t.Fatalf("%v", a)
		}
		if rec := x.record(t); rec.Replica != i || Exposed(p.Addr()) {
			t.Errorf("port %d: replica %d, exposed %v", i, rec.Replica, Exposed(p.Addr()))
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestParsePorts(t *testing.T) {
	for text, want := range map[string][2]int{"8001-8008": {8001, 8008}, "80": {80, 80}, "1-65535": {}, "0-3": {},
		"9-8": {}, "a": {}, "": {}, "65535-65536": {}, "1-2-3": {}} {
		first, last, err := ParsePorts(text)
		if (err == nil) != (want[0] > 0) || first != want[0] || last != want[1] {
			t.Errorf("%q: %d %d %v", text, first, last, err)
		}
	}
}
