package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// clientCase is a request of testdata/clients.
type clientCase struct {
	Name    string
	Path    string
	Headers map[string]string
	Tokens  float64 // of the output; 0 for any number
	Prompt  float64 // tokens; 0 for any number
	Body    json.RawMessage
}

// seen is what a program takes from a response.
type seen struct {
	chunks         int // with output
	text           string
	output, prompt float64 // tokens; -1 if it does not read them
}

// reader reads a response as a program does. It fails where the program would.
type reader func(path, body string, streamed bool) (seen, error)

// clients are the programs of testdata/clients.
var clients = map[string]reader{
	"vllm": readVLLM, "sglang": readSGLang, "guidellm": readGuideLLM, "aiperf": readAIPerf, "llmperf": readLLMPerf,
	"k6": readK6,
}

// TestClients sends the requests of load generators, and reads the responses as they do.
func TestClients(t *testing.T) {
	files, err := filepath.Glob("testdata/clients/*.json")
	if err != nil || len(files) != len(clients) {
		t.Fatalf("%d files for %d programs: %v", len(files), len(clients), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []clientCase
		if err := json.Unmarshal(data, &cases); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		x := serve(t, small, 1000, func(o *Options) { o.Incremental = name == "aiperf" })
		for _, k := range cases {
			t.Run(name+"/"+k.Name, func(t *testing.T) { replayClient(t, x, clients[name], &k) })
		}
	}
}

func replayClient(t *testing.T, x *site, read reader, k *clientCase) {
	var headers []string
	for name, v := range k.Headers {
		headers = append(headers, name, v)
	}
	a := x.do(t, "POST", k.Path, string(k.Body), headers...)
	if a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	streamed := strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream")
	got, err := read(k.Path, a.body, streamed)
	if err != nil {
		t.Fatalf("%v in\n%s", err, a.body)
	}
	differs := func(want, got float64) bool { return want > 0 && got >= 0 && got != want }
	if differs(k.Tokens, got.output) || differs(k.Prompt, got.prompt) {
		t.Errorf("%v prompt and %v output tokens (want %v and %v)", got.prompt, got.output, k.Prompt, k.Tokens)
	}
	if n := len(x.tokenizer.Encode(got.text)); k.Tokens > 0 && n != int(k.Tokens) {
		t.Errorf("%q has %d tokens (want %v)", got.text, n, k.Tokens)
	}
	if streamed && k.Tokens > 0 && got.chunks < int(k.Tokens) {
		t.Errorf("%d chunks for %v tokens", got.chunks, k.Tokens)
	}
	if id := k.Headers["x-request-id"]; id != "" && !strings.Contains(a.body, id) {
		t.Errorf("the request ID is not in the response")
	}
}

// object1 decodes an event.
func object1(text string) (v object, err error) { return v, json.Unmarshal([]byte(text), &v) }

// list returns the choices of an event; a program that needs one fails without.
func list(v object) []object {
	choices, _ := v["choices"].([]any)
	var out []object
	for _, c := range choices {
		o, _ := c.(object)
		out = append(out, o)
	}
	return out
}

func textOf(v any) string { s, _ := v.(string); return s }

// tokensOf returns a count of the usage, or the fallback.
func tokensOf(v object, key string, fallback float64) float64 {
	usage, _ := v["usage"].(object)
	if n, ok := usage[key].(float64); ok {
		return n
	}
	return fallback
}

// readVLLM gets the stream in pieces of one or more events. It cuts white space off each piece, and takes what follows
// the last blank line as an event if it is complete.
func readVLLM(_, body string, _ bool) (s seen, err error) {
	for size := 1; size < 6 && err == nil; size++ {
		s, err = readVLLMPieces(body, size)
	}
	return s, err
}

func readVLLMPieces(body string, size int) (s seen, err error) {
	s.output, s.prompt = -1, -1
	buffer := ""
	var messages []string
	events := strings.SplitAfter(body, "\n\n")
	for from := 0; from < len(events); from += size {
		buffer += strings.TrimSpace(strings.Join(events[from:min(len(events), from+size)], ""))
		for strings.Contains(buffer, "\n\n") {
			var m string
			m, buffer, _ = strings.Cut(buffer, "\n\n")
			messages = append(messages, strings.TrimSpace(m))
		}
		if rest, ok := strings.CutPrefix(buffer, "data: "); ok && (rest == "[DONE]" || json.Valid([]byte(rest))) {
			messages, buffer = append(messages, buffer), ""
		}
	}
	for _, m := range messages {
		chunk := strings.TrimPrefix(m, "data: ")
		if chunk == "[DONE]" || chunk == "" {
			continue
		}
		v, err := object1(chunk)
		if err != nil {
			return s, err
		}
		if c := list(v); len(c) > 0 {
			s.chunks++
			if delta, ok := c[0]["delta"].(object); ok {
				s.text += textOf(delta["content"])
			} else {
				s.text += textOf(c[0]["text"])
			}
			continue
		}
		s.output, s.prompt = tokensOf(v, "completion_tokens", -1), tokensOf(v, "prompt_tokens", -1)
	}
	if s.chunks == 0 || s.output < 0 || s.prompt < 0 {
		return s, errors.New("no chunk, or no usage")
	}
	return s, nil
}

// readSGLang takes lines. Every event must have a choice, or the text so far.
func readSGLang(path, body string, _ bool) (s seen, err error) {
	s.output, s.prompt = -1, -1
	for line := range strings.SplitSeq(body, "\n") {
		chunk := strings.TrimPrefix(strings.TrimSpace(line), "data: ")
		if chunk == "" || chunk == "[DONE]" {
			continue
		}
		v, err := object1(chunk)
		if err != nil {
			return s, err
		}
		if path == "/generate" {
			meta, _ := v["meta_info"].(object)
			n, ok := meta["completion_tokens"].(float64)
			if !ok || n < s.output {
				return s, fmt.Errorf("completion_tokens %v", meta["completion_tokens"])
			}
			s.text, s.output = textOf(v["text"]), n
			s.prompt, _ = meta["prompt_tokens"].(float64)
			s.chunks++
			continue
		}
		c := list(v)
		if len(c) == 0 {
			return s, errors.New("an event has no choice")
		}
		s.text += textOf(c[0]["text"])
		s.output = tokensOf(v, "completion_tokens", s.output)
		s.chunks++
	}
	return s, nil
}

// readGuideLLM takes lines up to the exact end mark, and the last usage.
func readGuideLLM(_, body string, streamed bool) (s seen, err error) {
	s.output, s.prompt = -1, -1
	if !streamed {
		return readK6("", body, false)
	}
	for line := range strings.SplitSeq(body, "\n") {
		if line == "data: [DONE]" {
			if s.output < 0 {
				return s, errors.New("no usage")
			}
			return s, nil
		}
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data:")
		if !ok {
			continue
		}
		v, err := object1(data)
		if err != nil || textOf(v["id"]) == "" {
			return s, fmt.Errorf("no id: %v", err)
		}
		if c := list(v); len(c) > 0 {
			text := textOf(c[0]["text"])
			if delta, ok := c[0]["delta"].(object); ok {
				text = textOf(delta["content"])
			}
			if s.text += text; text != "" {
				s.chunks++
			}
		}
		s.output, s.prompt = tokensOf(v, "completion_tokens", s.output), tokensOf(v, "prompt_tokens", s.prompt)
	}
	return s, errors.New("the stream has no end")
}

// readAIPerf checks the kind of each event, and that every choice has ended at the end mark.
func readAIPerf(path, body string, streamed bool) (s seen, err error) {
	s.output, s.prompt = -1, -1
	if !streamed {
		body = "data: " + body + "\n\ndata: [DONE]"
	}
	open, done := map[float64]bool{}, false
	for message := range strings.SplitSeq(strings.TrimSpace(body), "\n\n") {
		data, ok := strings.CutPrefix(message, "data: ")
		if !ok || done {
			return s, fmt.Errorf("message %q", message)
		}
		if done = data == "[DONE]"; done {
			continue
		}
		v, err := object1(data)
		if err != nil || v["error"] != nil {
			return s, fmt.Errorf("an error event, or no JSON: %v", err)
		}
		if path == "/generate" {
			ids, _ := v["output_ids"].([]any)
			meta, _ := v["meta_info"].(object)
			s.chunks += len(ids)
			s.text += textOf(v["text"])
			s.output, _ = meta["completion_tokens"].(float64)
			s.prompt, _ = meta["prompt_tokens"].(float64)
			continue
		}
		chat := strings.Contains(path, "chat")
		if kind := textOf(v["object"]); chat && kind != "chat.completion.chunk" || !chat && kind != "text_completion" {
			return s, fmt.Errorf("object %q", kind)
		}
		for _, c := range list(v) {
			index, ok := c["index"].(float64)
			if !ok {
				return s, errors.New("a choice has no index")
			}
			open[index] = textOf(c["finish_reason"]) == ""
			text := textOf(c["text"])
			if delta, ok := c["delta"].(object); ok {
				text = textOf(delta["content"])
			}
			if s.text += text; text != "" {
				s.chunks++
			}
		}
		s.output, s.prompt = tokensOf(v, "completion_tokens", s.output), tokensOf(v, "prompt_tokens", s.prompt)
	}
	if open[0] || !done {
		return s, errors.New("the stream ends without a reason or an end mark")
	}
	return s, nil
}

// readLLMPerf takes lines. Every event must have a delta.
func readLLMPerf(_, body string, _ bool) (s seen, err error) {
	s.output, s.prompt = -1, -1
	for line := range strings.SplitSeq(body, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		chunk := line[len("data: "):]
		if chunk == "[DONE]" {
			continue
		}
		v, err := object1(chunk)
		if err != nil || v["error"] != nil {
			return s, fmt.Errorf("an error event, or no JSON: %v", err)
		}
		c := list(v)
		if len(c) == 0 || c[0]["delta"] == nil {
			return s, errors.New("an event has no delta")
		}
		delta, _ := c[0]["delta"].(object)
		s.text += textOf(delta["content"])
		s.chunks++
	}
	return s, nil
}

// readK6 takes fields of a response without a stream.
func readK6(_, body string, _ bool) (s seen, err error) {
	v, err := object1(body)
	if err != nil {
		return s, err
	}
	c := list(v)
	if len(c) != 1 || textOf(c[0]["finish_reason"]) == "" {
		return s, errors.New("no choice, or no reason")
	}
	if s.text = textOf(c[0]["text"]); c[0]["text"] == nil {
		m, _ := c[0]["message"].(object)
		s.text = textOf(m["content"])
	}
	s.output, s.prompt = tokensOf(v, "completion_tokens", -1), tokensOf(v, "prompt_tokens", -1)
	return s, nil
}
