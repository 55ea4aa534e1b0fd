package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// client sends requests to a server.
type client struct {
	url   string
	http  *http.Client
	begun time.Time
}

// newClient returns a client. Its instants are durations since the call.
func newClient(url string) *client {
	t := &http.Transport{MaxIdleConns: 1 << 16, MaxIdleConnsPerHost: 1 << 16, DisableCompression: true,
		WriteBufferSize: 1 << 10, ReadBufferSize: 1 << 10}
	return &client{url: url, http: &http.Client{Transport: t}, begun: time.Now()}
}

// call is a request and the measurements of its client.
type call struct {
	number int64         // in the journal; -1 before an answer
	sent   time.Duration // when the last byte was sent
	chunks []chunk
	err    error
}

// chunk is output that arrived at once.
type chunk struct {
	at     time.Duration
	tokens int32 // of the whole output so far
}

// body is the JSON of a request for completions.
type body struct {
	Prompt    []uint32 `json:"prompt"`
	MaxTokens int      `json:"max_tokens"`
	IgnoreEOS bool     `json:"ignore_eos"`
	Stream    bool     `json:"stream"`
	Options   *usage   `json:"stream_options,omitempty"`
}

// usage asks for the number of tokens in each chunk.
type usage struct {
	Include    bool `json:"include_usage"`
	Continuous bool `json:"continuous_usage_stats"`
}

// stamped is the body of a request that notes when its last byte was taken to be sent.
type stamped struct {
	bytes.Reader
	c    *client
	last time.Duration
}

// Read implements [io.Reader].
func (s *stamped) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if s.Len() == 0 && s.last == 0 {
		s.last = time.Since(s.c.begun)
	}
	return n, err
}

// WriteTo implements [io.WriterTo], which the embedded reader has, by Read.
func (s *stamped) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, struct{ io.Reader }{s}) }

// do sends a request with a random prompt and reads the answer.
func (c *client) do(ctx context.Context, prompt []uint32, tokens int, stream bool) *call {
	x := &call{number: -1}
	b := body{Prompt: prompt, MaxTokens: tokens, IgnoreEOS: true, Stream: stream}
	if stream {
		b.Options = &usage{true, true}
	}
	data, _ := json.Marshal(&b) // numbers have no error
	s := &stamped{c: c}
	s.Reset(data)
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/v1/completions", s)
	if err != nil {
		x.err = err
		return x
	}
	q.ContentLength = int64(len(data))
	q.Header.Set("Content-Type", "application/json")
	r, err := c.http.Do(q)
	if err != nil {
		x.err = err
		return x
	}
	defer func() { _ = r.Body.Close() }()
	x.sent = s.last
	if r.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(r.Body, 1000))
		x.err = fmt.Errorf("%s: %s", r.Status, text)
		return x
	}
	if x.number, x.err = strconv.ParseInt(r.Header.Get("X-Clifftop-Request"), 10, 64); x.err != nil {
		return x
	}
	if stream {
		x.chunks = make([]chunk, 0, tokens)
		x.err = x.events(c, r.Body)
	} else {
		x.err = x.whole(c, r.Body)
	}
	return x
}

// counted is the text before the number of output tokens.
var counted = []byte(`"completion_tokens":`)

// tokensIn returns the number of output tokens that a part of a response reports, or -1.
func tokensIn(text []byte) int32 {
	at := bytes.LastIndex(text, counted)
	if at < 0 {
		return -1
	}
	n := int32(0)
	for _, c := range bytes.TrimLeft(text[at+len(counted):], " ") {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int32(c-'0')
	}
	return n
}

// whole reads a response that is not a stream.
func (x *call) whole(c *client, r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	x.chunks = []chunk{{time.Since(c.begun), tokensIn(text)}}
	return nil
}

// events reads the events of a stream. The instant of an event is that at which its last byte was read.
func (x *call) events(c *client, r io.Reader) error {
	buffer := make([]byte, 4<<10)
	have, known := 0, int32(0)
	for {
		if have == len(buffer) {
			return errors.New("an event is longer than 4 KiB")
		}
		n, err := r.Read(buffer[have:])
		now := time.Since(c.begun)
		have += n
		rest := buffer[:have]
		for {
			event, after, ok := bytes.Cut(rest, []byte("\n\n"))
			if !ok {
				break
			}
			rest = after
			if bytes.Equal(event, []byte("data: [DONE]")) {
				return nil
			}
			if t := tokensIn(event); t > known {
				known = t
				x.chunks = append(x.chunks, chunk{now, t})
			} else if t < 0 {
				return fmt.Errorf("unexpected event %.200q", event)
			}
		}
		have = copy(buffer, rest)
		if err != nil {
			return fmt.Errorf("the stream ended early: %w", err)
		}
	}
}

// lag returns what the server reports about its own lag.
func (c *client) lag(ctx context.Context) (lines []string) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/metrics", nil)
	if err != nil {
		return nil
	}
	r, err := c.http.Do(q)
	if err != nil {
		return nil
	}
	defer func() { _ = r.Body.Close() }()
	for s := bufio.NewScanner(r.Body); s.Scan(); {
		if t := s.Text(); strings.HasPrefix(t, "clifftop") && strings.Contains(t, "lag") {
			lines = append(lines, t)
		}
	}
	return lines
}
