package record

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

// Outcomes of requests.
const (
	completed = "completed"
	cancelled = "cancelled"
	rejected  = "rejected"
	failed    = "failed"
)

// exchange is a request with the measurements of its response.
type exchange struct {
	number   int64         // in order of arrival
	wall     time.Time     // its arrival
	at       time.Duration // the same, from the first request
	status   int           // of the response; 0 if there was none
	took     time.Duration // from the arrival to the end
	whole    bool          // the response was forwarded to its end
	upstream bool          // the server answered
	left     bool          // the client went before
	answer   answer
}

// answer is the recorded part of a response.
type answer struct {
	stream  bool
	choices []choice
	usage   *usage
	failed  bool   // an event had an error
	done    bool   // the last event of a stream has passed
	single  []byte // the body of a response that is no stream
	packed  bool   // it is gzipped
}

// choice is one output of a request.
type choice struct {
	chunks []time.Duration // when chunks with output passed, from the arrival
	text   []byte          // the output, until the row is written
	sglang usage           // SGLang counts each output by itself
}

// maxChoices is the largest number of outputs that are read of one request.
const maxChoices = 1 << 11

// choice returns a choice by its index; nil if there are too many.
func (a *answer) choice(i int) *choice {
	if i < 0 || i >= maxChoices {
		return nil
	}
	for len(a.choices) <= i {
		a.choices = append(a.choices, choice{})
	}
	return &a.choices[i]
}

// usage is the count of the server.
type usage struct {
	Prompt     int      `json:"prompt_tokens"`
	Completion int      `json:"completion_tokens"`
	Details    *details `json:"prompt_tokens_details"`
}

// details are parts of a usage.
type details struct {
	Cached int `json:"cached_tokens"`
}

// complete reports whether the whole response has passed. A client may leave at once after the last event of a stream.
func (x *exchange) complete() bool {
	if x.answer.stream {
		return x.answer.done
	}
	return x.upstream && x.whole
}

// outcome returns how the request ended.
func (x *exchange) outcome() string {
	switch {
	case x.left:
		return cancelled
	case x.status == http.StatusTooManyRequests || x.status == http.StatusServiceUnavailable:
		return rejected
	case x.status != http.StatusOK || !x.complete() || x.answer.failed:
		return failed
	}
	return completed
}

// Limits of the recorded part of responses. The client always gets the whole response.
const (
	maxLine = 4 << 20 // of an event
	maxBody = 8 << 20 // of a response that is no stream, and of the text of a choice
)

// meter reads a response while it passes.
type meter struct {
	io.ReadCloser
	x    *exchange
	line []byte // the event that has begun
	skip bool   // it is too long
}

func newMeter(x *exchange, r *http.Response) *meter {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	x.upstream, x.status = true, r.StatusCode
	x.answer.stream = kind == "text/event-stream"
	x.answer.packed = strings.EqualFold(r.Header.Get("Content-Encoding"), "gzip")
	return &meter{ReadCloser: r.Body, x: x}
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	switch a := &m.x.answer; {
	case n == 0:
	case a.stream:
		m.events(p[:n], time.Since(m.x.wall))
	case len(a.single)+n <= maxBody:
		a.single = append(a.single, p[:n]...)
	}
	return n, err
}

// events reads the part of a stream that passes at an instant.
func (m *meter) events(p []byte, at time.Duration) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		part := p
		if end >= 0 {
			part = p[:end]
		}
		if m.skip = m.skip || len(m.line)+len(part) > maxLine; !m.skip {
			m.line = append(m.line, part...)
		}
		if end < 0 {
			return
		}
		if data, ok := bytes.CutPrefix(m.line, []byte("data:")); ok && !m.skip {
			m.x.answer.event(bytes.TrimSpace(data), at)
		}
		m.line, m.skip, p = m.line[:0], false, p[end+1:]
	}
}

// message has the fields that are read from a chunk or a response, of OpenAI's API or of SGLang's.
type message struct {
	Choices []struct {
		Index   int    `json:"index"`
		Text    string `json:"text"`
		Delta   part   `json:"delta"`
		Message part   `json:"message"`
	} `json:"choices"`
	Usage *usage          `json:"usage"`
	Error json.RawMessage `json:"error"`
	// SGLang's /generate: the text so far of the output with an index.
	Index int    `json:"index"`
	Text  string `json:"text"`
	Meta  *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Cached     int `json:"cached_tokens"`
	} `json:"meta_info"`
}

// part is a piece of a message.
type part struct {
	Content   *string `json:"content"`
	Reasoning *string `json:"reasoning_content"`
	Thought   *string `json:"reasoning"`
	Calls     []struct {
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func (a *answer) event(data []byte, at time.Duration) {
	if string(data) == "[DONE]" {
		a.done = true
		return
	}
	var m message
	if json.Unmarshal(data, &m) == nil {
		a.read(&m, at)
	}
}

// read adds what a message has, which passed at an instant.
func (a *answer) read(m *message, at time.Duration) {
	for i := range m.Choices {
		c := &m.Choices[i]
		parts := []string{c.Text}
		for _, p := range []*part{&c.Delta, &c.Message} {
			for _, s := range []*string{p.Reasoning, p.Thought, p.Content} {
				if s != nil {
					parts = append(parts, *s)
				}
			}
			for _, f := range p.Calls {
				parts = append(parts, f.Function.Name, f.Function.Arguments)
			}
		}
		a.add(c.Index, at, parts...)
	}
	if m.Usage != nil {
		a.usage = m.Usage
	}
	if m.Meta != nil {
		a.generated(m, at)
	}
	a.failed = a.failed || len(m.Error) > 0 && string(m.Error) != "null"
}

// add adds a chunk to a choice, if it has text.
func (a *answer) add(i int, at time.Duration, parts ...string) {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if size == 0 {
		return
	}
	c := a.choice(i)
	if c == nil {
		return
	}
	c.chunks = append(c.chunks, at)
	if len(c.text)+size <= maxBody {
		for _, p := range parts {
			c.text = append(c.text, p...)
		}
	}
}

// generated reads a message of /generate. Each repeats the text so far.
func (a *answer) generated(m *message, at time.Duration) {
	c := a.choice(m.Index)
	if c == nil {
		return
	}
	if n := len(c.text); len(m.Text) > n {
		a.add(m.Index, at, m.Text[n:])
	}
	c.sglang = usage{Prompt: m.Meta.Prompt, Completion: m.Meta.Completion, Details: &details{m.Meta.Cached}}
}

// finish reads the body of a response that is no stream.
func (a *answer) finish(at time.Duration) {
	data := a.single
	a.single = nil
	if a.stream || len(data) == 0 {
		return
	}
	if a.packed {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return
		}
		if data, err = io.ReadAll(io.LimitReader(z, 8*maxBody)); err != nil {
			return
		}
	}
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '[' { // /generate with several prompts
		var list []message
		if json.Unmarshal(data, &list) != nil {
			return
		}
		for i := range list {
			list[i].Index = i
			a.read(&list[i], at)
		}
		return
	}
	var m message
	if json.Unmarshal(data, &m) == nil {
		a.read(&m, at)
	}
}
