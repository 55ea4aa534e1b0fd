package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestCompletions(t *testing.T) {
	var sent []Sent
	x := serve(t, small, 1000, func(o *Options) { o.Sent = func(s Sent) { sent = append(sent, s) } })
	a := x.do(t, "POST", "/v1/completions", `{"model": "llama-3.1-8b", "prompt": "Hello, world", "max_tokens": 7,
		"ignore_eos": true, "unknown": {"a": 1}, "user": "u", "seed": 1, "temperature": 0.5, "best_of": 1}`,
		"X-Request-Id", "abc-1")
	v := read(t, a.body)
	if a.status != 200 || a.header.Get("Content-Type") != "application/json" || a.header.Get(RequestHeader) != "0" {
		t.Fatalf("%d %v %s", a.status, a.header, a.body)
	}
	want := object{
		"id": "cmpl-abc-1", "object": "text_completion", "model": "llama-3.1-8b", "choices.0.index": 0.0,
		"choices.0.finish_reason": "length", "choices.0.stop_reason": nil, "choices.0.logprobs": nil,
		"usage.prompt_tokens": 3.0, "usage.completion_tokens": 7.0, "usage.total_tokens": 10.0,
		"usage.prompt_tokens_details.cached_tokens": 0.0,
	}
	for path, w := range want {
		if got := at(t, v, path); got != w {
			t.Errorf("%s: %v (want %v)", path, got, w)
		}
	}
	if want := (Sent{ID: 0, Outputs: 1, MaxTokens: 7, Limited: true}); len(sent) != 1 || sent[0] != want {
		t.Errorf("sent %+v", sent)
	}
	text := at(t, v, "choices.0.text").(string)
	if n := len(x.tokenizer.Encode(text)); n != 7 {
		t.Errorf("%q has %d tokens", text, n)
	}
	if f, _ := at(t, v, "system_fingerprint").(string); !strings.HasPrefix(f, "fp_") {
		t.Errorf("fingerprint %q", f)
	}
}

// TestStream compares a stream with the response without one: the same text, usage and reason.
func TestStream(t *testing.T) {
	for _, k := range []struct{ path, body, text, whole string }{
		{"/v1/completions", `"prompt": "Hello", "max_tokens": 300`, "choices.0.text", "choices.0.text"},
		{"/v1/completions", `"prompt": "Hello", "max_tokens": 5, "min_tokens": 5, "echo": true`, "choices.0.text",
			"choices.0.text"},
		{"/v1/chat/completions", `"messages": [{"role": "user", "content": "Hello"}]`, "choices.0.delta.content",
			"choices.0.message.content"},
		{"/v1/chat/completions", `"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
			"max_completion_tokens": 3, "ignore_eos": true`, "choices.0.delta.content", "choices.0.message.content"},
	} {
		t.Run(k.path+k.body, func(t *testing.T) {
			t.Parallel()
			whole := read(t, serve(t, small, 1000, nil).do(t, "POST", k.path, "{"+k.body+"}").body)
			a := serve(t, small, 1000, nil).do(t, "POST", k.path,
				"{"+k.body+`, "stream": true, "stream_options": {"include_usage": true}}`)
			if got := a.header.Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
				t.Errorf("Content-Type %q", got)
			}
			list := events(t, a.body)
			text := joined(t, list, k.text)
			if want := at(t, whole, k.whole); text != want || text == "" {
				t.Errorf("stream %q, whole %q", text, want)
			}
			usage, last := list[len(list)-1], list[len(list)-2]
			if got, want := fmt.Sprint(at(t, usage, "usage")), fmt.Sprint(at(t, whole, "usage")); got != want {
				t.Errorf("stream %s, whole %s", got, want)
			}
			if len(at(t, usage, "choices").([]any)) != 0 {
				t.Errorf("the last event has choices: %v", usage)
			}
			if got, want := at(t, last, "choices.0.finish_reason"), at(t, whole, "choices.0.finish_reason"); got != want {
				t.Errorf("stream %v, whole %v", got, want)
			}
			for _, e := range list[:len(list)-2] {
				if at(t, e, "choices.0.finish_reason") != nil {
					t.Errorf("an event before the last one has a reason: %v", e)
				}
			}
			if chat := strings.Contains(k.path, "chat"); chat && at(t, list[0], "choices.0.delta.role") != "assistant" {
				t.Errorf("first %v", list[0])
			} else if n := int(at(t, usage, "usage.completion_tokens").(float64)); !chat && len(list) != n+1 ||
				chat && len(list) != n+2 {
				t.Errorf("%d events for %d tokens", len(list), n)
			}
		})
	}
}

// TestContinuousUsage asks for the usage in every event, as GuideLLM does.
func TestContinuousUsage(t *testing.T) {
	x := serve(t, small, 1000, nil)
	list := events(t, x.do(t, "POST", "/v1/chat/completions", `{"messages": [{"role": "user", "content": "Hello"}],
		"max_tokens": 4, "ignore_eos": true, "stream": true,
		"stream_options": {"include_usage": true, "continuous_usage_stats": true}}`).body)
	for i, e := range list {
		if got := at(t, e, "usage.completion_tokens"); got != float64(min(i, 4)) {
			t.Errorf("event %d: %v tokens", i, got)
		}
	}
}

// TestChoices asks for several outputs of several prompts, with and without a stream.
func TestChoices(t *testing.T) {
	x := serve(t, small, 1000, nil)
	body := `{"prompt": ["one two", "three"], "n": 3, "max_tokens": 9, "ignore_eos": true`
	v := read(t, x.do(t, "POST", "/v1/completions", body+"}").body)
	texts := map[any]bool{}
	choices := at(t, v, "choices").([]any)
	for i, c := range choices {
		if at(t, c, "index") != float64(i) {
			t.Errorf("choice %d: %v", i, c)
		}
		texts[at(t, c, "text")] = true
	}
	if len(choices) != 6 || len(texts) != 6 || at(t, v, "usage.completion_tokens") != 54.0 ||
		at(t, v, "usage.prompt_tokens") != 3.0 {
		t.Fatalf("%v", v)
	}
	list := events(t, x.do(t, "POST", "/v1/completions", body+`, "stream": true}`).body)
	tokens, ends := map[any]int{}, map[any]int{}
	for _, e := range list {
		i := at(t, e, "choices.0.index")
		tokens[i]++
		if at(t, e, "choices.0.finish_reason") == "length" {
			ends[i]++
		}
	}
	for i := range 6 {
		if tokens[float64(i)] != 9 || ends[float64(i)] != 1 {
			t.Errorf("choice %d: %d tokens, %d ends", i, tokens[float64(i)], ends[float64(i)])
		}
	}
}

// TestPrompts sends the kinds of prompts.
func TestPrompts(t *testing.T) {
	x := serve(t, small, 1000, nil)
	for _, k := range []struct {
		prompt string
		tokens float64
		images bool
	}{
		{`"a b c"`, 3, false}, {`["a b c", "d"]`, 4, false}, {`[1, 2, 3, 4, 5]`, 5, false},
		{`[[1, 2], [3]]`, 3, false}, {`["x"]`, 1, false}, {`"\u0041\n"`, 2, false},
	} {
		a := x.do(t, "POST", "/v1/completions", `{"prompt": `+k.prompt+`, "max_tokens": 1}`)
		if a.status != 200 || at(t, read(t, a.body), "usage.prompt_tokens") != k.tokens {
			t.Errorf("%s: %d %s", k.prompt, a.status, a.body)
		}
	}
	a := x.do(t, "POST", "/v1/chat/completions", `{"max_tokens": 1, "messages": [{"role": "user", "content": [
		{"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/a.png"}}, {"type": "text", "text": "What?"}]}]}`)
	if n, _ := at(t, read(t, a.body), "usage.prompt_tokens").(float64); a.status != 200 || n < 500 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestLengths checks the order of what says how long an output is.
func TestLengths(t *testing.T) {
	x := serve(t, small, 1000, nil)
	for _, k := range []struct {
		body, header string
		least, most  float64
		reason       string
	}{
		{`"max_tokens": 100`, "", 20, 40, "stop"},
		{`"max_tokens": 100, "min_tokens": 60`, "", 60, 60, "stop"},
		{`"max_tokens": 100, "min_tokens": 100`, "", 100, 100, "length"},
		{`"max_tokens": 100, "ignore_eos": true`, "", 100, 100, "length"},
		{`"max_tokens": 100, "ignore_eos": true`, "33", 33, 33, "stop"},
		{`"max_tokens": 10`, "33", 10, 10, "length"},
		{`"max_tokens": 10`, "", 10, 10, "length"},
		{``, "", 16, 16, "length"},
		{``, "50", 50, 50, "stop"},
		{``, "5000", 4094, 4094, "length"},
		{`"max_tokens": 3.0`, "", 3, 3, "length"},
		{`"max_tokens": null`, "", 16, 16, "length"},
	} {
		headers := []string{OutputHeader, k.header}
		if k.header == "" {
			headers = nil
		}
		body := `{"prompt": "a b"`
		if k.body != "" {
			body += ", " + k.body
		}
		v := read(t, x.do(t, "POST", "/v1/completions", body+"}", headers...).body)
		n, _ := at(t, v, "usage.completion_tokens").(float64)
		if n < k.least || n > k.most || at(t, v, "choices.0.finish_reason") != k.reason {
			t.Errorf("%s %s: %v tokens, %v", k.body, k.header, n, at(t, v, "choices.0.finish_reason"))
		}
	}
}

// TestStop cuts the text before a stop string, in both kinds of response.
func TestStop(t *testing.T) {
	whole := read(t, serve(t, small, 1000, nil).do(t, "POST", "/v1/completions",
		`{"prompt": "a", "max_tokens": 40, "ignore_eos": true}`).body)
	text := at(t, whole, "choices.0.text").(string)
	words := strings.Fields(text)
	stop := words[len(words)/2]
	before, _, _ := strings.Cut(text, stop)
	for _, form := range []string{fmt.Sprintf("%q", stop), fmt.Sprintf(`["not there", %q]`, stop)} {
		body := `{"prompt": "a", "max_tokens": 40, "ignore_eos": true, "stop": ` + form
		v := read(t, serve(t, small, 1000, nil).do(t, "POST", "/v1/completions", body+"}").body)
		if got := at(t, v, "choices.0.text"); got != before || at(t, v, "choices.0.finish_reason") != "stop" ||
			at(t, v, "choices.0.stop_reason") != stop {
			t.Errorf("%v (want text %q)", v, before)
		}
		list := events(t, serve(t, small, 1000, nil).do(t, "POST", "/v1/completions", body+`, "stream": true}`).body)
		if got := joined(t, list, "choices.0.text"); got != before {
			t.Errorf("stream %q, want %q", got, before)
		}
	}
	v := read(t, serve(t, small, 1000, nil).do(t, "POST", "/v1/completions", fmt.Sprintf(
		`{"prompt": "a", "max_tokens": 40, "ignore_eos": true, "include_stop_str_in_output": true, "stop": %q}`,
		stop)).body)
	if got := at(t, v, "choices.0.text"); got != before+stop {
		t.Errorf("%q (want %q)", got, before+stop)
	}
}

func TestEchoAlone(t *testing.T) {
	x := serve(t, small, 1000, nil)
	v := read(t, x.do(t, "POST", "/v1/completions", `{"prompt": "a \"b\" \u20ac", "echo": true, "max_tokens": 0}`).body)
	if got := at(t, v, "choices.0.text"); got != "a \"b\" €" {
		t.Errorf("%v", v)
	}
}

func TestTokenIDs(t *testing.T) {
	x := serve(t, small, 1000, nil)
	v := read(t, x.do(t, "POST", "/v1/completions",
		`{"prompt": [7, 8], "max_tokens": 3, "return_token_ids": true}`).body)
	if got := fmt.Sprint(at(t, v, "choices.0.prompt_token_ids")); got != "[7 8]" {
		t.Errorf("prompt %s", got)
	}
	want := []any{}
	for _, id := range x.tokenizer.Encode(at(t, v, "choices.0.text").(string)) {
		want = append(want, float64(id))
	}
	if got := at(t, v, "choices.0.token_ids"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v (want %v)", got, want)
	}
	list := events(t, x.do(t, "POST", "/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}],
		"max_tokens": 3, "return_token_ids": true, "stream": true}`).body)
	if at(t, list[0], "prompt_token_ids") == nil || len(at(t, list[1], "choices.0.token_ids").([]any)) != 1 {
		t.Errorf("%v", list)
	}
}

// TestConversation sends a conversation whose second request repeats the first one and its output: the prefix cache
// finds both.
func TestConversation(t *testing.T) {
	x := serve(t, small, 1000, nil)
	first := `{"role": "user", "content": "` + strings.Repeat("word ", 400) + `"}`
	v := read(t, x.do(t, "POST", "/v1/chat/completions", `{"max_tokens": 200, "ignore_eos": true, "messages": [`+first+`]}`).body)
	output := at(t, v, "choices.0.message.content").(string)
	v2 := read(t, x.do(t, "POST", "/v1/chat/completions", fmt.Sprintf(`{"max_tokens": 2, "messages": [%s,
		{"role": "assistant", "content": %q}, {"role": "user", "content": "And?"}]}`, first, output)).body)
	prompt := at(t, v, "usage.prompt_tokens").(float64)
	if got := at(t, v2, "usage.prompt_tokens_details.cached_tokens").(float64); got < prompt+180 {
		t.Errorf("%v of %v + 200 tokens are cached", got, prompt)
	}
	a, b := x.record(t), x.record(t)
	if a.Request.Session != b.Request.Session || a.Request.Turn != 0 || b.Request.Turn != 1 {
		t.Errorf("session %d turn %d, session %d turn %d", a.Request.Session, a.Request.Turn, b.Request.Session,
			b.Request.Turn)
	}
}

// TestSGLang uses SGLang's endpoints.
func TestSGLang(t *testing.T) {
	x := serve(t, small, 1000, nil)
	v := read(t, x.do(t, "POST", "/generate", `{"text": "a b c", "rid": "r\"1", "sampling_params": {"max_new_tokens": 8,
		"ignore_eos": true, "temperature": 0}}`).body)
	for path, want := range (object{
		"meta_info.id": `r"1`, "meta_info.prompt_tokens": 3.0, "meta_info.completion_tokens": 8.0,
		"meta_info.cached_tokens": 0.0, "meta_info.finish_reason.type": "length", "meta_info.finish_reason.length": 8.0,
	}) {
		if got := at(t, v, path); got != want {
			t.Errorf("%s: %v (want %v)", path, got, want)
		}
	}
	if s, _ := at(t, v, "meta_info.e2e_latency").(float64); s <= 0 {
		t.Errorf("%v", v)
	}
	if n := len(at(t, v, "output_ids").([]any)); n != 8 {
		t.Errorf("%d ids", n)
	}
	v = read(t, x.do(t, "POST", "/generate", `{"input_ids": [[1, 2], [3]], "sampling_params": {"max_new_tokens": 2}}`).body)
	if list, ok := v.([]any); !ok || len(list) != 2 || at(t, list[1], "meta_info.prompt_tokens") != 1.0 {
		t.Errorf("%v", v)
	}
	for _, path := range []string{"/get_server_info", "/server_info", "/get_model_info", "/model_info"} {
		if a := x.do(t, "GET", path, ""); a.status != 200 || at(t, read(t, a.body), "model_path") != "llama-3.1-8b" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

// TestModels lists models and adapters, and uses an adapter.
func TestModels(t *testing.T) {
	x := serve(t, small+"\n"+`name: x`, 1000, func(o *Options) { o.Models = []string{"org/name", "other"} })
	v := read(t, x.do(t, "GET", "/v1/models", "").body)
	if at(t, v, "data.0.id") != "org/name" || at(t, v, "data.1.id") != "other" || at(t, v, "object") != "list" ||
		at(t, v, "data.0.max_model_len") != 4096.0 {
		t.Errorf("%v", v)
	}
	if a := x.do(t, "GET", "/v1/models/org/name", ""); at(t, read(t, a.body), "id") != "org/name" {
		t.Errorf("%v", a)
	}
	y := serve(t, strings.Replace(small, "workload: {", "workload: {lora: {adapters: 3}, ", 1), 1000, nil)
	v = read(t, y.do(t, "GET", "/v1/models", "").body)
	if n := len(at(t, v, "data").([]any)); n != 4 || at(t, v, "data.3.id") != "adapter-3" ||
		at(t, v, "data.3.parent") != "llama-3.1-8b" {
		t.Errorf("%v", v)
	}
	v = read(t, y.do(t, "POST", "/v1/completions", `{"model": "adapter-2", "prompt": "a"}`).body)
	if at(t, v, "model") != "adapter-2" || y.record(t).Request.Adapter != 2 {
		t.Errorf("%v", v)
	}
	if a := y.do(t, "POST", "/v1/completions", `{"model": "meta-llama/Llama-3.1-8B-Instruct", "prompt": "a"}`); a.status != 200 {
		t.Errorf("alias: %s", a.body)
	}
}

// TestClasses gives requests the scenario's classes.
func TestClasses(t *testing.T) {
	x := serve(t, "model: llama-3.1-8b\ngpu: h100\nworkload: {classes: [{name: a, weight: 1, output: {distribution: fixed, "+
		"value: 5}}, {name: b, weight: 3, priority: 7, output: {distribution: fixed, value: 9}}]}", 1000, nil)
	want := map[string]float64{"a": 5, "b": 9}
	for name, tokens := range want {
		v := read(t, x.do(t, "POST", "/v1/completions", `{"prompt": "x", "max_tokens": 100}`, ClassHeader, name).body)
		if got := at(t, v, "usage.completion_tokens"); got != tokens {
			t.Errorf("class %s: %v tokens", name, got)
		}
		r := x.record(t).Request
		if int(r.Class) != strings.Index("ab", name) || (name == "b") != (r.Priority == 7) {
			t.Errorf("%+v", r)
		}
	}
	counts := map[uint16]int{}
	for range 100 {
		x.do(t, "POST", "/v1/completions", `{"prompt": "x", "max_tokens": 1}`)
		counts[x.record(t).Request.Class]++
	}
	if counts[0] < 10 || counts[0] > 45 {
		t.Errorf("classes %v (want 25 to 75)", counts)
	}
}

func TestTokenize(t *testing.T) {
	x := serve(t, small, 1000, nil)
	v := read(t, x.do(t, "POST", "/tokenize", `{"model": "llama-3.1-8b", "prompt": "Hello, world"}`).body)
	if at(t, v, "count") != 3.0 || len(at(t, v, "tokens").([]any)) != 3 || at(t, v, "max_model_len") != 4096.0 {
		t.Errorf("%v", v)
	}
	v = read(t, x.do(t, "POST", "/tokenize", `{"messages": [{"role": "user", "content": "Hello"}]}`).body)
	if at(t, v, "count").(float64) < 5 {
		t.Errorf("%v", v)
	}
	if a := x.do(t, "POST", "/detokenize", `{"tokens": [1, 2]}`); a.status != 400 ||
		!strings.Contains(a.body, "tokenizer.json") {
		t.Errorf("%v", a)
	}
}

func TestInfo(t *testing.T) {
	x := serve(t, small, 1000, func(o *Options) {
		o.Keys = []string{"secret"}
		o.Mount = func(replica int32) map[string]http.Handler {
			return map[string]http.Handler{"GET /metrics": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, "replica %d\n", replica)
			})}
		}
	})
	for _, method := range []string{"GET", "POST"} {
		for _, path := range []string{"/health", "/ping", "/health_generate"} {
			if a := x.do(t, method, path, ""); a.status != 200 || a.body != "" {
				t.Errorf("%s %s: %v", method, path, a)
			}
		}
	}
	if v := read(t, x.do(t, "GET", "/version", "").body); at(t, v, "version") != "1.2.3" {
		t.Errorf("%v", v)
	}
	if v := read(t, x.do(t, "GET", "/load", "").body); at(t, v, "server_load") != 0.0 {
		t.Errorf("%v", v)
	}
	if a := x.do(t, "GET", "/metrics", ""); a.body != "replica 0\n" {
		t.Errorf("%v", a)
	}
}
