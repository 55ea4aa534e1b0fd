package api

import (
	"encoding/json"
	"net/http"
	"strconv"

	"clifftop/experiments/live/text"
)

// chatRequest is the body of /v1/chat/completions.
type chatRequest struct {
	common
	Messages            []text.Message    `json:"messages"`
	Tools               []json.RawMessage `json:"tools"`
	Continue            *bool             `json:"continue_final_message"`
	MaxCompletionTokens number            `json:"max_completion_tokens"`
	Logprobs            json.RawMessage   `json:"logprobs"`
}

// chat answers /v1/chat/completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request, replica int32) error {
	var q chatRequest
	if err := s.body(w, r, &q); err != nil {
		return err
	}
	if given(q.Logprobs) {
		return bad("logprobs", "logprobs is not supported: the output is filler (want false)")
	}
	if q.MaxCompletionTokens.Number != nil {
		if _, err := q.MaxCompletionTokens.in("max_completion_tokens", 1, maxTokenID, 0); err != nil {
			return err
		}
		q.MaxTokens = q.MaxCompletionTokens
	}
	p, err := s.params(&q.common, r, 0)
	if err != nil {
		return err
	}
	c := s.newCall(&p, r, replica, "chatcmpl-")
	made, err := s.conversation(q.Messages, q.Tools, is(q.Continue))
	if err != nil {
		return err
	}
	c.prompts = []prompt{{Prompt: made}}
	c.form = newChatForm(c)
	return c.serve(w, r)
}

func (s *Server) conversation(m []text.Message, tools []json.RawMessage, goOn bool) (text.Prompt, error) {
	p, err := s.template.Chat(text.Chat{Messages: m, Tools: tools, Continue: goOn})
	if err != nil {
		return p, bad("messages", "%s", err)
	}
	return p, nil
}

// chatForm is the form of /v1/chat/completions.
type chatForm struct{ head, whole0 string }

func newChatForm(c *call) *chatForm {
	tail := `,"created":` + strconv.FormatInt(c.began.Unix(), 10) +
		`,"model":` + string(appendQuoted(nil, c.server.names.answer(&c.p))) + `,"choices":[`
	return &chatForm{
		head:   `{"id":"` + c.id + `","object":"chat.completion.chunk"` + tail,
		whole0: `{"id":"` + c.id + `","object":"chat.completion"` + tail,
	}
}

// begin appends the beginning of an event with a choice.
func (f *chatForm) begin(b []byte, x *choice) []byte {
	b = append(b, "data: "...)
	b = append(b, f.head...)
	b = append(b, `{"index":`...)
	return strconv.AppendInt(b, int64(x.index), 10)
}

// end appends the end of an event with a choice.
func (f *chatForm) end(b []byte, c *call, x *choice, done int32) []byte {
	if c.p.always {
		b = append(b, `,"usage":`...)
		b = appendUsage(b, len(x.prompt.Tokens), done)
	}
	return append(b, "}\n\n"...)
}

func (f *chatForm) open(b []byte, c *call, x *choice) []byte {
	b = f.begin(b, x)
	b = append(b, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
	if c.p.ids {
		b = append(b, `,"prompt_token_ids":`...)
		b = appendIDs(b, x.prompt.Tokens)
	}
	return f.end(b, c, x, 0)
}

func (f *chatForm) chunk(b []byte, c *call, x *choice, from int32) []byte {
	b = f.begin(b, x)
	b = append(b, `,"delta":{"content":"`...)
	b = c.server.appendText(b, x, from, x.done)
	over := x.done >= x.total
	b = append(b, `"},"logprobs":null,`...)
	b = appendReason(b, x, over)
	b = f.ids(b, c, x, from)
	b = append(b, "}]"...)
	if over && !c.p.usage {
		b = c.server.appendFingerprint(b)
	}
	return f.end(b, c, x, x.done)
}

// ids appends the token IDs of a choice, or null.
func (f *chatForm) ids(b []byte, c *call, x *choice, from int32) []byte {
	b = append(b, `,"token_ids":`...)
	if !c.p.ids {
		return append(b, "null"...)
	}
	return appendIDs(b, c.server.tokens(nil, x, from, x.done))
}

func (f *chatForm) done(b []byte, c *call) []byte {
	if !c.p.usage {
		return b
	}
	b = append(b, "data: "...)
	b = append(b, f.head...)
	b = append(b, `],"usage":`...)
	b = c.server.appendFingerprint(c.usage(b))
	return append(b, "}\n\n"...)
}

func (f *chatForm) whole(b []byte, c *call) []byte {
	b = append(b, f.whole0...)
	for i := range c.choices {
		x := &c.choices[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"index":`...)
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, `,"message":{"role":"assistant","content":"`...)
		b = c.server.appendText(b, x, 0, x.done)
		b = append(b, `","refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null},`...)
		b = append(b, `"logprobs":null,`...)
		b = appendReason(b, x, true)
		b = append(f.ids(b, c, x, 0), '}')
	}
	b = append(b, `],"service_tier":null,"usage":`...)
	b = c.server.appendFingerprint(c.usage(b))
	b = append(b, `,"prompt_logprobs":null,"prompt_token_ids":`...)
	if c.p.ids {
		b = appendIDs(b, c.prompts[0].Tokens)
	} else {
		b = append(b, "null"...)
	}
	return append(c.kept(append(b, `,"kv_transfer_params":`...)), '}')
}
