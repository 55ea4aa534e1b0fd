package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// generateRequest is the body of SGLang's /generate.
type generateRequest struct {
	Text          prompts         `json:"text"`
	InputIDs      prompts         `json:"input_ids"`
	InputEmbeds   json.RawMessage `json:"input_embeds"`
	Params        samplingParams  `json:"sampling_params"`
	Stream        *bool           `json:"stream"`
	LoRA          *string         `json:"lora_path"`
	Priority      number          `json:"priority"`
	ReturnLogprob json.RawMessage `json:"return_logprob"`
	ID            json.RawMessage `json:"rid"`
}

// samplingParams are the parameters of SGLang's outputs that have an effect.
type samplingParams struct {
	N         number `json:"n"`
	MaxTokens number `json:"max_new_tokens"`
	MinTokens number `json:"min_new_tokens"`
	IgnoreEOS *bool  `json:"ignore_eos"`
	Stop      stops  `json:"stop"`
	NoTrim    *bool  `json:"no_stop_trim"`
}

// defaultNewTokens is SGLang's limit of output tokens if the request gives none.
const defaultNewTokens = 128

// generate answers SGLang's /generate.
func (s *Server) generate(w http.ResponseWriter, r *http.Request, replica int32) error {
	var q generateRequest
	if err := s.body(w, r, &q); err != nil {
		return err
	}
	switch {
	case given(q.ReturnLogprob):
		return bad("return_logprob", "return_logprob is not supported: the output is filler (want false)")
	case given(q.InputEmbeds):
		return bad("input_embeds", "input_embeds is not supported (want text or input_ids)")
	case q.Text.len() > 0 && q.InputIDs.len() > 0:
		return bad("input_ids", "text and input_ids are given together (want one of them)")
	case len(q.InputIDs.texts) > 0:
		return bad("input_ids", "input_ids: found string (want token IDs)")
	case len(q.Text.ids) > 0:
		return bad("text", "text: found token IDs (want input_ids for them)")
	}
	list := &q.Text
	if q.InputIDs.len() > 0 {
		list = &q.InputIDs
	}
	k := &q.Params
	p, err := s.params(&common{Model: q.LoRA, N: k.N, MaxTokens: k.MaxTokens, MinTokens: k.MinTokens,
		IgnoreEOS: k.IgnoreEOS, Stop: k.Stop, IncludeStop: k.NoTrim, Stream: q.Stream, Priority: q.Priority,
	}, r, defaultNewTokens)
	if err != nil {
		return err
	}
	c := s.newCall(&p, r, replica, "")
	var id string
	if json.Unmarshal(q.ID, &id) == nil && id != "" && len(id) <= 128 {
		c.id = id
	}
	if c.prompts, err = s.read(list, false); err != nil {
		return bad("text", "text or input_ids is missing or empty")
	}
	c.form = &generation{list: list.batch || p.n > 1}
	return c.serve(w, r)
}

// generation is the form of SGLang's /generate.
type generation struct{ list bool }

func (f *generation) open(b []byte, _ *call, _ *choice) []byte { return b }

func (f *generation) chunk(b []byte, c *call, x *choice, from int32) []byte {
	b = append(b, "data: "...)
	if c.server.incremental {
		b = f.output(b, c, x, from, c.server.appendText(x.sent[:0], x, from, x.done))
	} else {
		x.sent = c.server.appendText(x.sent, x, from, x.done)
		b = f.output(b, c, x, 0, x.sent)
	}
	return append(b, "\n\n"...)
}

// output appends an output with a text and the tokens from…x.done.
func (f *generation) output(b []byte, c *call, x *choice, from int32, text []byte) []byte {
	over := x.done >= x.total
	b = append(b, `{"text":"`...)
	b = append(b, text...)
	b = append(b, `","output_ids":[`...)
	for k := from; k < x.done; k++ {
		if k > from {
			b = append(b, ',')
		}
		id, _ := c.server.filler.Token(x.number, int(k))
		b = strconv.AppendUint(b, uint64(id), 10)
	}
	b = append(b, `],"meta_info":{"id":`...)
	b = appendQuoted(b, c.id)
	b = append(b, `,"finish_reason":`...)
	b = f.reason(b, x, over)
	b = append(b, `,"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(len(x.prompt.Tokens)), 10)
	b = append(b, `,"weight_version":"default","total_retractions":0,"completion_tokens":`...)
	b = strconv.AppendInt(b, int64(x.done), 10)
	b = append(b, `,"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(x.cached), 10)
	if over {
		b = append(b, `,"e2e_latency":`...)
		b = strconv.AppendFloat(b, time.Since(c.began).Seconds(), 'f', 6, 64)
	}
	b = append(b, '}')
	if f.list {
		b = append(b, `,"index":`...)
		b = strconv.AppendInt(b, int64(x.index), 10)
	}
	return append(b, '}')
}

// reason appends why an output ended.
func (f *generation) reason(b []byte, x *choice, over bool) []byte {
	switch {
	case !over:
		return append(b, "null"...)
	case x.reason == "length":
		b = append(b, `{"type":"length","length":`...)
		return append(strconv.AppendInt(b, int64(x.done), 10), '}')
	case x.end.Stop != "":
		b = append(b, `{"type":"stop","matched":`...)
		return append(appendQuoted(b, x.end.Stop), '}')
	}
	return append(b, `{"type":"stop","matched":null}`...)
}

func (f *generation) done(b []byte, _ *call) []byte { return b }

func (f *generation) whole(b []byte, c *call) []byte {
	if f.list {
		b = append(b, '[')
	}
	for i := range c.choices {
		x := &c.choices[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = f.output(b, c, x, 0, c.server.appendText(nil, x, 0, x.done))
	}
	if f.list {
		b = append(b, ']')
	}
	return b
}
