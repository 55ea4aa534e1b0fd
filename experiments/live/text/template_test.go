package text

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"clifftop/workload"
)

func chat(t *testing.T, document string) Chat {
	t.Helper()
	var c Chat
	if err := json.Unmarshal([]byte(document), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// plain is a tokenizer with readable tokens: one for each byte, and special ones.
type plain struct{ special []string }

func (plain) Encode(s string) (ids []uint32) {
	for i := range len(s) {
		ids = append(ids, uint32(s[i]))
	}
	return ids
}

func (plain) Count(s string) int { return len(s) }

func (plain) Begin() []uint32 { return nil }

func (p plain) Special(name string) (uint32, bool) {
	i := slices.Index(p.special, name)
	return uint32(1000 + i), i >= 0
}

func (p plain) decode(ids []uint32) string {
	var s strings.Builder
	for _, id := range ids {
		switch {
		case id >= imageID:
			s.WriteByte('#')
		case id >= 1000:
			s.WriteString(p.special[id-1000])
		default:
			s.WriteByte(byte(id))
		}
	}
	return s.String()
}

func TestTemplateForms(t *testing.T) {
	const document = `{"messages": [
		{"role": "system", "content": "S"}, {"role": "user", "name": "ann", "content": "Hi"},
		{"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": "{\"x\":1}"}}]},
		{"role": "tool", "content": [{"type": "text", "text": "1"}, {"type": "image_url", "image_url": {"url": "u"}}]}],
		"tools": [{"type": "function",  "function": {"name": "f"}}]}`
	for _, c := range []struct {
		special []string
		want    string
	}{
		{[]string{"<|im_start|>", "<|im_end|>"}, `<|im_start|>system
S

Tools:
{"type":"function","function":{"name":"f"}}
<|im_end|>
<|im_start|>user ann
Hi<|im_end|>
<|im_start|>assistant

<tool_call>
{"name": "f", "arguments": {"x":1}}
</tool_call><|im_end|>
<|im_start|>tool
1##<|im_end|>
<|im_start|>assistant
`},
		{[]string{"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
			`<|begin_of_text|><|start_header_id|>system<|end_header_id|>

S

Tools:
{"type":"function","function":{"name":"f"}}
<|eot_id|><|start_header_id|>user ann<|end_header_id|>

Hi<|eot_id|><|start_header_id|>assistant<|end_header_id|>


<tool_call>
{"name": "f", "arguments": {"x":1}}
</tool_call><|eot_id|><|start_header_id|>tool<|end_header_id|>

1##<|eot_id|><|start_header_id|>assistant<|end_header_id|>

`},
		{[]string{"<start_of_turn>", "<end_of_turn>"}, `<start_of_turn>system
S

Tools:
{"type":"function","function":{"name":"f"}}
<end_of_turn>
<start_of_turn>user ann
Hi<end_of_turn>
<start_of_turn>model

<tool_call>
{"name": "f", "arguments": {"x":1}}
</tool_call><end_of_turn>
<start_of_turn>tool
1##<end_of_turn>
<start_of_turn>model
`},
	} {
		tokens := plain{c.special}
		p, err := NewTemplate(tokens, 2).Chat(chat(t, document))
		if err != nil {
			t.Fatal(err)
		}
		if got := tokens.decode(p.Tokens); got != c.want {
			t.Errorf("prompt:\n%s\nwant:\n%s", got, c.want)
		}
		if want := (workload.Images{Count: 1, Tokens: 2, At: int32(slices.IndexFunc(p.Tokens, func(id uint32) bool {
			return id >= imageID
		}))}); p.Images != want {
			t.Errorf("images %v, want %v", p.Images, want)
		}
	}
}

// TestTemplateNextTurn: a conversation that goes on repeats the tokens of the prompt and the output.
func TestTemplateNextTurn(t *testing.T) {
	testNextTurn(t, Estimate{})
}

func testNextTurn(t *testing.T, tokens Tokenizer) {
	t.Helper()
	f, err := NewFiller(tokens, 3)
	if err != nil {
		t.Fatal(err)
	}
	m, x := NewTemplate(tokens, 0), NewIndex(0)
	c := Chat{
		Messages: []Message{{Role: "user", Content: Content{{Text: "Why is the sky blue?"}, {Image: "data:image/png"}}}},
		Tools:    []json.RawMessage{[]byte(`{"type": "function"}`)},
	}
	for turn := range int64(6) {
		p, err := m.Chat(c)
		if err != nil {
			t.Fatal(err)
		}
		placed := x.Prompt(p.Tokens, "")
		if placed.Session != 1 || placed.Turn != int32(turn) {
			t.Fatalf("turn %d is turn %d of session %d", turn, placed.Turn, placed.Session)
		}
		ids, text := f.Output(turn, 37+int(turn))
		x.Output(placed.Session, placed.Turn, ids)
		c.Messages = append(c.Messages, Message{Role: "assistant", Content: Content{{Text: text}}},
			Message{Role: "user", Content: Content{{Text: " And " + string(rune('a'+turn)) + "?"}}})
	}
}

func TestTemplateContinue(t *testing.T) {
	c := chat(t, `{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "So"}],
		"continue_final_message": true}`)
	tokens := plain{[]string{"<|im_start|>", "<|im_end|>"}}
	p, err := NewTemplate(tokens, 0).Chat(c)
	if got, want := tokens.decode(p.Tokens), "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nSo"; got != want ||
		err != nil {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestTemplateFaults(t *testing.T) {
	for _, c := range []struct{ document, want string }{
		{`{"messages": []}`, "messages is empty"},
		{`{"messages": [{"content": "x"}]}`, "messages[0] has no role"},
		{`{"messages": [{"role": "user", "content": 7}]}`, "want a string or a list of parts"},
		{`{"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}`, `content[0]: type "input_audio"`},
		{`{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}`, "has no URL"},
	} {
		var chat Chat
		err := json.Unmarshal([]byte(c.document), &chat)
		if err == nil {
			_, err = NewTemplate(Estimate{}, 0).Chat(chat)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.document, err, c.want)
		}
	}
}
