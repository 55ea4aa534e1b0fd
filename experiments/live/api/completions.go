package api

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// completionRequest is the body of /v1/completions.
type completionRequest struct {
	common
	Prompt       prompts         `json:"prompt"`
	PromptEmbeds json.RawMessage `json:"prompt_embeds"`
	Echo         *bool           `json:"echo"`
	Logprobs     json.RawMessage `json:"logprobs"`
}

// defaultTokens is the limit of output tokens of completions, in vLLM as in OpenAI's API.
const defaultTokens = 16

// completions answers /v1/completions.
func (s *Server) completions(w http.ResponseWriter, r *http.Request, replica int32) error {
	var q completionRequest
	if err := s.body(w, r, &q); err != nil {
		return err
	}
	if given(q.PromptEmbeds) {
		return bad("prompt_embeds", "prompt_embeds is not supported (want prompt)")
	}
	if given(q.Logprobs) {
		return bad("logprobs", "logprobs is not supported: the output is filler (want null)")
	}
	silent := is(q.Echo) && q.MaxTokens.Number != nil && *q.MaxTokens.Number == "0" // the prompt only
	if silent {
		q.MaxTokens = number{}
	}
	p, err := s.params(&q.common, r, defaultTokens)
	if err != nil {
		return err
	}
	if p.echo = is(q.Echo); silent {
		p.most, p.exact, p.header, p.asked = 1, true, 0, true
	}
	c := s.newCall(&p, r, replica, "cmpl-")
	if c.prompts, err = s.read(&q.Prompt, p.echo); err != nil {
		return err
	}
	c.form = newCompletion(c, silent)
	return c.serve(w, r)
}

func (s *Server) read(list *prompts, echo bool) (all []prompt, err error) {
	if list.len() == 0 {
		return nil, bad("prompt", "prompt is missing or empty")
	}
	for _, t := range list.texts {
		all = append(all, prompt{Prompt: s.template.Text(t), echo: t})
	}
	for _, ids := range list.ids {
		q := prompt{}
		q.Tokens = ids
		if echo {
			if q.echo, err = s.decode(ids); err != nil {
				return nil, bad("echo", "echo: %s", err)
			}
		}
		all = append(all, q)
	}
	return all, nil
}

// completion is the form of /v1/completions. Its strings are parts of events.
type completion struct {
	head   string
	silent bool // the output has no text
}

func newCompletion(c *call, silent bool) *completion {
	head := `{"id":"` + c.id + `","object":"text_completion","created":` + strconv.FormatInt(c.began.Unix(), 10) +
		`,"model":` + string(appendQuoted(nil, c.server.names.answer(&c.p))) + `,"choices":[`
	return &completion{head: head, silent: silent}
}

func (f *completion) open(b []byte, _ *call, _ *choice) []byte { return b }

func (f *completion) chunk(b []byte, c *call, x *choice, from int32) []byte {
	over := x.done >= x.total
	b = append(b, "data: "...)
	b = append(b, f.head...)
	b = f.choice(b, c, x, from, over)
	b = append(b, ']')
	if c.p.always {
		b = append(b, `,"usage":`...)
		b = appendUsage(b, len(x.prompt.Tokens), x.done)
	}
	if over && !c.p.usage {
		b = c.server.appendFingerprint(b)
	}
	return append(b, "}\n\n"...)
}

// choice appends a choice with the tokens from…x.done.
func (f *completion) choice(b []byte, c *call, x *choice, from int32, over bool) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, int64(x.index), 10)
	b = append(b, `,"text":"`...)
	if c.p.echo && from == 0 {
		b = appendEscaped(b, x.prompt.echo)
	}
	if !f.silent {
		b = c.server.appendText(b, x, from, x.done)
	}
	b = append(b, `","logprobs":null,`...)
	b = appendReason(b, x, over)
	if !c.p.ids {
		return append(b, `,"prompt_token_ids":null,"token_ids":null}`...)
	}
	b = append(b, `,"prompt_token_ids":`...)
	if from == 0 {
		b = appendIDs(b, x.prompt.Tokens)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"token_ids":`...)
	return append(appendIDs(b, c.server.tokens(nil, x, from, x.done)), '}')
}

func (f *completion) done(b []byte, c *call) []byte {
	if !c.p.usage {
		return b
	}
	b = append(b, "data: "...)
	b = append(b, f.head...)
	b = append(b, `],"usage":`...)
	b = c.server.appendFingerprint(c.usage(b))
	return append(b, "}\n\n"...)
}

func (f *completion) whole(b []byte, c *call) []byte {
	b = append(b, f.head...)
	for i := range c.choices {
		if i > 0 {
			b = append(b, ',')
		}
		b = f.choice(b, c, &c.choices[i], 0, true)
	}
	b = append(b, `],"service_tier":null,"usage":`...)
	b = c.server.appendFingerprint(c.usage(b))
	return append(c.kept(append(b, `,"kv_transfer_params":`...)), '}')
}

// appendFingerprint appends the field that identifies the server's configuration.
func (s *Server) appendFingerprint(b []byte) []byte {
	b = append(b, `,"system_fingerprint":"`...)
	b = append(b, s.fingerprint...)
	return append(b, '"')
}
