package e2e

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// client returns OpenAI's client.
func client(url, key string) openai.Client {
	return openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey(key), option.WithMaxRetries(0))
}

// exactly makes an output as long as max_tokens, with vLLM's own field.
var exactly = option.WithJSONSet("ignore_eos", true)

// completion asks for a number of tokens.
func completion(prompt string, tokens int64) openai.CompletionNewParams {
	return openai.CompletionNewParams{Model: model, MaxTokens: openai.Int(tokens),
		Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String(prompt)}}
}

// chat asks for a number of tokens.
func chat(question string, tokens int64) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: model, MaxCompletionTokens: openai.Int(tokens),
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage("You are brief."), openai.UserMessage(question)}}
}

func TestModels(t *testing.T) {
	c := client(server(t))
	page, err := c.Models.List(within(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Data) == 0 || page.Data[0].ID != model {
		t.Fatalf("models %+v", page.Data)
	}
}

func TestCompletion(t *testing.T) {
	c := client(server(t))
	r, err := c.Completions.New(within(t, time.Minute), completion("The sky is", 12), exactly)
	if err != nil {
		t.Fatal(err)
	}
	if x := r.Choices[0]; x.Text == "" || x.FinishReason != openai.CompletionChoiceFinishReasonLength {
		t.Errorf("choice %+v", x)
	}
	if u := r.Usage; u.CompletionTokens != 12 || u.PromptTokens < 1 || u.TotalTokens != u.PromptTokens+12 {
		t.Errorf("usage %+v", u)
	}
}

func TestStreamedCompletion(t *testing.T) {
	c := client(server(t))
	q := completion("The sky is", 20)
	q.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := c.Completions.NewStreaming(within(t, time.Minute), q, exactly)
	text, chunks, used := "", 0, int64(0)
	for stream.Next() {
		x := stream.Current()
		if chunks++; len(x.Choices) > 0 {
			text += x.Choices[0].Text
		}
		used = max(used, x.Usage.CompletionTokens)
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if chunks < 5 || text == "" || used != 20 {
		t.Errorf("%d chunks, text %q, %d tokens", chunks, text, used)
	}
}

func TestChat(t *testing.T) {
	c := client(server(t))
	r, err := c.Chat.Completions.New(within(t, time.Minute), chat("Why is the sky blue?", 15), exactly)
	if err != nil {
		t.Fatal(err)
	}
	if x := r.Choices[0]; x.Message.Content == "" || x.FinishReason != "length" || r.Usage.CompletionTokens != 15 {
		t.Errorf("choice %+v, usage %+v", x, r.Usage)
	}
}

func TestStreamedChat(t *testing.T) {
	c := client(server(t))
	q := chat("Why is the sky blue?", 20)
	q.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := c.Chat.Completions.NewStreaming(within(t, time.Minute), q, exactly)
	all := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		if !all.AddChunk(stream.Current()) {
			t.Fatalf("chunk %+v does not continue the stream", stream.Current())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if x := all.Choices[0]; x.Message.Content == "" || x.Message.Role != "assistant" || all.Usage.CompletionTokens != 20 {
		t.Errorf("choice %+v, usage %+v", x, all.Usage)
	}
}

func TestErrors(t *testing.T) {
	url, key := server(t)
	other, negative := chat("Hello", 5), chat("Hello", -1)
	other.Model = "gpt-9"
	for name, x := range map[string]struct {
		key    string
		params openai.ChatCompletionNewParams
		status int
		says   string
	}{
		"unknown model": {key, other, http.StatusNotFound, "gpt-9"},
		"bad key":       {"wrong", chat("Hello", 5), http.StatusUnauthorized, ""},
		"too long":      {key, chat(strings.Repeat("word ", 9000), 5), http.StatusBadRequest, "4096"},
		"negative":      {key, negative, http.StatusBadRequest, "-1"},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(url, x.key)
			_, err := c.Chat.Completions.New(within(t, time.Minute), x.params)
			var e *openai.Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if e.StatusCode != x.status || e.Message == "" || !strings.Contains(e.Message, x.says) {
				t.Errorf("status %d, message %q", e.StatusCode, e.Message)
			}
		})
	}
}

// TestAbort closes a stream in the middle.
func TestAbort(t *testing.T) {
	url, key := server(t)
	c := client(url, key)
	const aborted = `finished_reason="abort"`
	before := sum(t, url, "vllm:request_success_total", aborted)
	stream := c.Completions.NewStreaming(within(t, time.Minute), completion("x", 4000), exactly)
	for range 3 {
		if !stream.Next() {
			t.Fatal(stream.Err())
		}
	}
	if err := stream.Close(); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if sum(t, url, "vllm:num_requests_running", "") == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if n := sum(t, url, "vllm:num_requests_running", ""); n != 0 {
		t.Errorf("%v requests run after their client left", n)
	}
	if got := sum(t, url, "vllm:request_success_total", aborted); got != before+1 {
		t.Errorf("%v requests aborted, want %v", got, before+1)
	}
}
