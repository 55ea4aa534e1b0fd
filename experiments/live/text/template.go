package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"clifftop/workload"
)

// DefaultImageTokens is the number of tokens of an image if the model's record has none: LLaVA-1.5 makes 24 × 24
// patches of an image of 336 × 336 pixels (Liu et al., 2023, "Improved Baselines with Visual Instruction Tuning").
const DefaultImageTokens = 576

// Chat is a conversation to which the model replies: the part of OpenAI's chat completion request that makes the
// prompt.
type Chat struct {
	Messages []Message         `json:"messages"`
	Tools    []json.RawMessage `json:"tools,omitempty"`
	// Continue makes the model continue the last message, without the end of its turn.
	Continue bool `json:"continue_final_message,omitempty"`
}

// Message is a turn of a conversation.
type Message struct {
	Role      string     `json:"role"`
	Name      string     `json:"name,omitempty"`
	Content   Content    `json:"content,omitempty"`
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
}

// ToolCall is a call of a function by the assistant.
type ToolCall struct {
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// Content is the content of a message. In JSON it is a string, a list of parts, or null.
type Content []Part

// Part is text or an image.
type Part struct {
	// Text is the text of a part that is no image.
	Text string
	// Image is the URL of an image, which may contain the image itself; empty for text.
	Image string
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Content) UnmarshalJSON(data []byte) error {
	*c = nil
	var text *string
	if json.Unmarshal(data, &text) == nil {
		if text != nil {
			*c = Content{{Text: *text}}
		}
		return nil
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Refusal  string          `json:"refusal"`
		ImageURL json.RawMessage `json:"image_url"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return fmt.Errorf("content: want a string or a list of parts, such as [{\"type\": \"text\", \"text\": \"Hi\"}]")
	}
	for i, p := range parts {
		switch p.Type {
		case "text", "input_text", "output_text":
			*c = append(*c, Part{Text: p.Text})
		case "refusal":
			*c = append(*c, Part{Text: p.Refusal})
		case "image_url", "input_image":
			url := imageURL(p.ImageURL)
			if url == "" {
				return fmt.Errorf("content[%d]: an image has no URL (want {\"image_url\": {\"url\": \"…\"}})", i)
			}
			*c = append(*c, Part{Image: url})
		default:
			return fmt.Errorf("content[%d]: type %.40q is not supported (want text or image_url)", i, p.Type)
		}
	}
	return nil
}

// imageURL reads the URL of an image: a string, or an object with a url.
func imageURL(data json.RawMessage) (url string) {
	if json.Unmarshal(data, &url) == nil {
		return url
	}
	var object struct {
		URL string `json:"url"`
	}
	if json.Unmarshal(data, &object) != nil {
		return ""
	}
	return object.URL
}

// Prompt is the prompt of a request.
type Prompt struct {
	Tokens []uint32
	// Images are the images among the tokens. They count as neighbours from the first one on.
	Images workload.Images
}

// Template makes prompts. A turn is a header with the role, the content, and the end of the turn. The borders are
// special tokens, and the content between them is encoded by itself. A prompt ends with the header of the assistant's
// turn. A conversation that adds the output as the assistant's message, and another message, therefore begins with
// exactly the tokens of the prompt and the output.
//
// The form depends on the special tokens that the tokenizer has:
//
//	ChatML (Qwen and others; also of the estimate)  <|im_start|>user⏎…<|im_end|>⏎
//	Llama 3                                         <|start_header_id|>user<|end_header_id|>⏎⏎…<|eot_id|>
//	Gemma                                           <start_of_turn>user⏎…<end_of_turn>⏎
//
// A tokenizer with none of them gets ChatML as plain text. Tools are JSON at the end of the first system turn, which
// is added if there is none. Calls of tools follow the content of the message. The templates of models differ from
// this by some tokens in each turn, and by their texts around tools.
type Template struct {
	tokens      Tokenizer
	form        form
	imageTokens int32
}

// form are the tokens around the roles and turns of a conversation.
type form struct {
	begin, open, header, end []uint32 // at the start; before a role, after it, after a turn
	assistant                string   // the name of this role
}

// NewTemplate makes a template. imageTokens is the number of tokens of an image; 0 is [DefaultImageTokens].
func NewTemplate(t Tokenizer, imageTokens int32) *Template {
	if imageTokens <= 0 {
		imageTokens = DefaultImageTokens
	}
	return &Template{tokens: t, form: formOf(t), imageTokens: imageTokens}
}

func formOf(t Tokenizer) form {
	special := func(names ...string) (ids []uint32, all bool) {
		for _, name := range names {
			id, ok := t.Special(name)
			if !ok {
				return nil, false
			}
			ids = append(ids, id)
		}
		return ids, true
	}
	optional := func(name string) []uint32 { ids, _ := special(name); return ids }
	newline := t.Encode("\n")
	if ids, ok := special("<|im_start|>", "<|im_end|>"); ok {
		return form{nil, ids[:1:1], newline, append(ids[1:2:2], newline...), "assistant"}
	}
	if ids, ok := special("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"); ok {
		return form{optional("<|begin_of_text|>"), ids[:1:1], append(ids[1:2:2], t.Encode("\n\n")...),
			ids[2:], "assistant"}
	}
	if ids, ok := special("<start_of_turn>", "<end_of_turn>"); ok {
		return form{optional("<bos>"), ids[:1:1], newline, append(ids[1:2:2], newline...), "model"}
	}
	return form{t.Begin(), t.Encode("<|im_start|>"), newline, t.Encode("<|im_end|>\n"), "assistant"}
}

// Text returns the prompt of a completion without a conversation.
func (t *Template) Text(prompt string) Prompt {
	return Prompt{Tokens: slices.Concat(t.tokens.Begin(), t.tokens.Encode(prompt))}
}

// Chat returns the prompt of a conversation.
func (t *Template) Chat(c Chat) (Prompt, error) {
	if len(c.Messages) == 0 {
		return Prompt{}, fmt.Errorf("messages is empty (want one or more)")
	}
	p := Prompt{Tokens: append([]uint32(nil), t.form.begin...)}
	tools := c.Tools
	if len(tools) > 0 && !systemRole(c.Messages[0].Role) {
		t.header(&p, "system", "")
		t.tools(&p, tools)
		p.Tokens = append(p.Tokens, t.form.end...)
		tools = nil
	}
	for i, m := range c.Messages {
		if m.Role == "" {
			return Prompt{}, fmt.Errorf("messages[%d] has no role (want system, user, assistant or tool)", i)
		}
		t.header(&p, m.Role, m.Name)
		t.content(&p, m.Content)
		for _, call := range m.ToolCalls {
			t.text(&p, "\n<tool_call>\n{\"name\": "+quote(call.Function.Name)+", \"arguments\": "+
				call.Function.Arguments+"}\n</tool_call>")
		}
		if len(tools) > 0 {
			t.tools(&p, tools)
			tools = nil
		}
		if c.Continue && i == len(c.Messages)-1 {
			return p, nil
		}
		p.Tokens = append(p.Tokens, t.form.end...)
	}
	t.header(&p, "assistant", "")
	return p, nil
}

// systemRole reports whether a role gives instructions to the model.
func systemRole(role string) bool { return role == "system" || role == "developer" }

func (t *Template) header(p *Prompt, role, name string) {
	if role == "assistant" {
		role = t.form.assistant
	}
	if name != "" {
		role += " " + name
	}
	p.Tokens = append(p.Tokens, t.form.open...)
	t.text(p, role)
	p.Tokens = append(p.Tokens, t.form.header...)
}

func (t *Template) text(p *Prompt, s string) { p.Tokens = append(p.Tokens, t.tokens.Encode(s)...) }

func (t *Template) content(p *Prompt, c Content) {
	for _, part := range c {
		if part.Image == "" {
			t.text(p, part.Text)
			continue
		}
		if p.Images.Count == 0 {
			p.Images = workload.Images{Tokens: t.imageTokens, At: int32(len(p.Tokens))}
		}
		p.Images.Count++
		id := mix(uint64(pieceID(part.Image)) ^ uint64(len(part.Image))<<32)
		for range t.imageTokens {
			id = mix(id + 0x9e3779b97f4a7c15)
			p.Tokens = append(p.Tokens, imageID|uint32(id))
		}
	}
}

// imageID marks the token IDs of images. No vocabulary has such IDs.
const imageID = 1 << 31

// tools appends the JSON of tools, without the white space of its layout.
func (t *Template) tools(p *Prompt, tools []json.RawMessage) {
	t.text(p, "\n\nTools:\n")
	for _, tool := range tools {
		var compact bytes.Buffer
		if json.Compact(&compact, tool) != nil {
			compact.Write(tool)
		}
		compact.WriteByte('\n')
		t.text(p, compact.String())
	}
}

func quote(s string) string {
	b, _ := json.Marshal(s) // a string has no error
	return string(b)
}
