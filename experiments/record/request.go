package record

import (
	"encoding/json"

	"clifftop/experiments/live/text"
	"clifftop/workload"
)

// request has the fields that are read from the body of a request.
type request struct {
	prompts  []prompt
	n        int // outputs of each prompt
	most     int // tokens that an output may have; 0 is unknown
	priority int16
	model    string
	session  string
}

type prompt struct {
	text string
	ids  []uint32
	chat *text.Chat
}

// parse reads a body. What it cannot read has a prompt without tokens: the server may know better.
func parse(body []byte, session string) *request {
	var b struct {
		Model     string          `json:"model"`
		Prompt    json.RawMessage `json:"prompt"`
		Messages  []text.Message  `json:"messages"`
		Tools     json.RawMessage `json:"tools"`
		Continue  bool            `json:"continue_final_message"`
		Text      json.RawMessage `json:"text"`      // of /generate
		IDs       json.RawMessage `json:"input_ids"` // of /generate
		N         loose           `json:"n"`
		Tokens    loose           `json:"max_tokens"`
		Completed loose           `json:"max_completion_tokens"`
		Priority  loose           `json:"priority"`
		Session   json.RawMessage `json:"session_id"`
		Sampling  json.RawMessage `json:"sampling_params"` // of /generate
	}
	broken := json.Unmarshal(body, &b) != nil // the other fields are read all the same
	r := &request{model: b.Model, session: session, n: 1, priority: int16(max(-1<<15, min(b.Priority, 1<<15-1)))}
	if len(b.Messages) > 0 && !broken {
		chat := &text.Chat{Messages: b.Messages, Continue: b.Continue}
		_ = json.Unmarshal(b.Tools, &chat.Tools)
		r.prompts = []prompt{{chat: chat}}
	}
	for _, data := range []json.RawMessage{b.Prompt, b.Text, b.IDs} {
		if len(r.prompts) == 0 {
			r.prompts = prompts(data)
		}
	}
	if len(r.prompts) == 0 {
		r.prompts = []prompt{{}}
	}
	var sampling struct {
		N    loose `json:"n"`
		Most loose `json:"max_new_tokens"`
	}
	_ = json.Unmarshal(b.Sampling, &sampling)
	for _, most := range []loose{b.Completed, b.Tokens, sampling.Most} {
		if r.most == 0 && most > 0 {
			r.most = int(min(most, workload.MaxTokens))
		}
	}
	r.n = int(max(1, min(max(b.N, sampling.N), loose(maxChoices/len(r.prompts)))))
	if r.session == "" {
		_ = json.Unmarshal(b.Session, &r.session)
	}
	return r
}

// loose is a number that may be anything else: the server says what is wrong.
type loose int64

// UnmarshalJSON implements [json.Unmarshaler].
func (n *loose) UnmarshalJSON(data []byte) error {
	var x float64
	if json.Unmarshal(data, &x) == nil {
		*n = loose(max(-1<<40, min(x, 1<<40)))
	}
	return nil
}

// prompts reads a string, a list of strings, a list of token IDs or a list of such lists.
func prompts(data json.RawMessage) (out []prompt) {
	if one, ok := as[string](data); ok {
		return []prompt{{text: one}}
	}
	if ids, ok := as[[]uint32](data); ok && len(ids) > 0 {
		return []prompt{{ids: ids}}
	}
	texts, _ := as[[]string](data)
	for _, t := range texts {
		out = append(out, prompt{text: t})
	}
	lists, _ := as[[][]uint32](data)
	for _, l := range lists {
		out = append(out, prompt{ids: l})
	}
	return out[:min(len(out), maxChoices)]
}

func as[T any](data json.RawMessage) (v T, ok bool) {
	if len(data) == 0 || string(data) == "null" || json.Unmarshal(data, &v) != nil {
		var none T
		return none, false
	}
	return v, true
}

func (p *prompt) tokens(t *text.Template) []uint32 {
	switch {
	case p.chat != nil:
		out, err := t.Chat(*p.chat)
		if err != nil {
			return nil
		}
		return out.Tokens
	case p.ids != nil:
		return p.ids
	}
	return t.Text(p.text).Tokens
}
