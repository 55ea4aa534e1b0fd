package api

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"clifftop/experiments/live"
	"clifftop/experiments/live/text"
	"clifftop/sim/event"
	"clifftop/workload"
)

// stream is the output of a request in the simulation: a [live.Stream], or one of a test.
type stream interface {
	Next(ctx context.Context) (live.Chunk, error)
	Buffered() int
	Close()
	Record() event.Record
}

type prompt struct {
	text.Prompt
	echo string // its text
}

// call is one HTTP request for outputs. Each of its choices is a request in the simulation.
type call struct {
	server  *Server
	replica int32 // that the client addresses, from 1; 0 leaves the choice to the routers
	p       params
	form    form
	id      string
	began   time.Time
	local   net.Addr // of the port
	prompts []prompt
	choices []choice
}

type choice struct {
	stream stream
	prompt *prompt
	number int64 // of the request in the simulation
	placed text.Placed
	total  int32 // output tokens, if nothing fails
	end    text.Ending
	reason string // why it ends: stop or length
	index  int

	done   int32 // tokens that the client has got
	last   int32 // the first token of the last chunk
	bytes  int   // their text, before the end was cut off
	sent   []byte
	ended  bool // the stream has ended
	cached int32
}

// start submits the requests of a call.
func (c *call) start() error {
	s := c.server
	if total := len(c.prompts) * int(c.p.n); total > maxRequests {
		return bad("n", "%d outputs are too many for one request (want at most %d)", total, maxRequests)
	}
	if err := s.peers.check(c.p.transfer, c.replica); err != nil {
		return err
	}
	for i := range c.prompts {
		if err := c.fits(&c.prompts[i]); err != nil {
			return err
		}
	}
	c.choices = make([]choice, 0, len(c.prompts)*int(c.p.n))
	for i := range c.prompts {
		q := &c.prompts[i]
		for range c.p.n {
			c.choices = append(c.choices, choice{prompt: q, index: len(c.choices)})
			x := &c.choices[len(c.choices)-1]
			s.submit(c, x)
		}
	}
	return nil
}

// fits checks the lengths of a prompt as vLLM does, and truncates it if the request wants that.
func (c *call) fits(q *prompt) error {
	if n := int(c.p.truncate); n > 0 && len(q.Tokens) > n {
		q.Tokens = q.Tokens[len(q.Tokens)-n:]
		q.Images = workload.Images{}
	}
	most, n := int(c.server.context), len(q.Tokens)
	switch {
	case n == 0:
		return bad("prompt", "the prompt is empty (want one token or more)")
	case n >= most:
		return bad("input_tokens", "the maximum context length is %d tokens, but the prompt has %d: shorten the prompt",
			most, n)
	case c.p.asked && n+int(c.p.most) > most:
		return bad("input_tokens", "the maximum context length is %d tokens, but the prompt has %d and the request "+
			"asks for %d output tokens, %d in total: shorten the prompt or lower max_tokens", most, n, c.p.most,
			n+int(c.p.most))
	}
	return nil
}

// submit gives a choice its place among the prompts and its length, and sends it. Requests and sessions get their
// numbers in order of arrival, as a reader of the journal counts them: therefore only one is submitted at a time.
func (s *Server) submit(c *call, x *choice) {
	s.submitting.Lock()
	defer s.submitting.Unlock()
	if x.placed = s.index.Prompt(x.prompt.Tokens, c.p.session); s.hooks.note != nil {
		s.hooks.note(x.placed.Content, x.prompt.Tokens)
	}
	x.number = s.next
	s.next++
	d := s.lengths.draw(x.number, c.p.class, int32(len(x.prompt.Tokens)))
	x.plan(&c.p, s.context, d.output)
	x.end = text.Ending{Tokens: int(x.total), Text: math.MaxInt}
	if len(c.p.stops) > 0 {
		x.end = s.filler.End(x.number, int(x.total), int(c.p.least), c.p.stops, c.p.include)
		if x.end.Stop != "" {
			x.total, x.reason = int32(x.end.Tokens), "stop"
		}
	}
	r := workload.Request{
		InputTokens: int32(len(x.prompt.Tokens)), OutputTokens: x.total, Content: x.placed.Content,
		Session: x.placed.Session, Turn: x.placed.Turn, Class: d.class, Priority: d.priority,
		Adapter: c.p.adapter, Replica: c.replica, Images: x.prompt.Images,
		Transfer: s.peers.transfer(c.p.transfer, c.replica, x.number),
	}
	if c.p.ranked {
		r.Priority = c.p.priority
	}
	x.stream = s.send(r)
	if s.hooks.sent != nil {
		s.hooks.sent(Sent{ID: x.number, Outputs: int(c.p.n), MaxTokens: int(c.p.most), Limited: x.reason == "length"})
	}
}

// plan sets the number of output tokens: that of the header, or the one that the request asks for, or a draw. An output
// that reaches a limit ends with the reason length.
func (x *choice) plan(p *params, context, drawn int32) {
	limit := context - int32(len(x.prompt.Tokens))
	if p.most > 0 && (p.asked || p.header == 0) {
		limit = min(limit, p.most)
	}
	want := max(drawn, p.least)
	switch {
	case p.header > 0:
		want = p.header
	case p.exact:
		want = limit
	}
	x.total, x.reason = max(1, min(want, limit)), "stop"
	if want > limit || p.exact && p.header == 0 {
		x.reason = "length"
	}
}

// finish closes the streams that have not ended, and notes the outputs.
func (c *call) finish() {
	for i := range c.choices {
		x := &c.choices[i]
		if !x.ended {
			x.stream.Close()
		}
		if x.done == 0 {
			c.server.index.Ended(x.placed.Session, x.placed.Turn)
			continue
		}
		c.server.index.Output(x.placed.Session, x.placed.Turn, c.server.tokens(nil, x, 0, x.done))
	}
}

// tokens appends the output tokens from…to of a choice.
func (s *Server) tokens(ids []uint32, x *choice, from, to int32) []uint32 {
	for k := from; k < to; k++ {
		id, _ := s.filler.Token(x.number, int(k))
		ids = append(ids, id)
	}
	return ids
}

// news is a chunk of a choice, or how it ended.
type news struct {
	of    *choice
	chunk live.Chunk
	err   error
}

// feed returns what happens to the choices of a call, in order of time.
type feed struct {
	one  *choice   // the only one
	many chan news // of several
}

func (c *call) listen(ctx context.Context) *feed {
	if len(c.choices) == 1 {
		return &feed{one: &c.choices[0]}
	}
	f := &feed{many: make(chan news, 4*len(c.choices))}
	for i := range c.choices {
		x := &c.choices[i]
		go func() {
			for {
				n := news{of: x}
				n.chunk, n.err = x.stream.Next(ctx)
				select {
				case f.many <- n:
				case <-ctx.Done():
					return
				}
				if n.err != nil {
					return
				}
			}
		}()
	}
	return f
}

// next waits for the next chunk or end.
func (f *feed) next(ctx context.Context) (n news) {
	if f.one != nil {
		n.of = f.one
		n.chunk, n.err = f.one.stream.Next(ctx)
		return n
	}
	select {
	case n = <-f.many:
		return n
	case <-ctx.Done():
		return news{err: ctx.Err()}
	}
}

// more reports whether next returns at once.
func (f *feed) more() bool {
	if f.one != nil {
		return f.one.stream.Buffered() > 0
	}
	return len(f.many) > 0
}

// whole waits for all outputs and writes one response.
func (c *call) whole(ctx context.Context, w http.ResponseWriter) error {
	f := c.listen(ctx)
	for open := len(c.choices); open > 0; {
		n := f.next(ctx)
		switch {
		case n.err == nil:
			n.of.done += n.chunk.Tokens
		case errors.Is(n.err, io.EOF):
			n.of.close()
			if n.of.done < n.of.total { // cut at the context length of a pool
				n.of.total, n.of.reason = n.of.done, "length"
			}
			open--
		default:
			return c.broken(n)
		}
	}
	c.label(w.Header())
	writeJSON(w, http.StatusOK, c.form.whole(nil, c))
	return nil
}

func (x *choice) close() {
	x.ended = true
	rec := x.stream.Record()
	x.cached = rec.CachedTokens + rec.LoadedTokens
	if !rec.HandedOver { // a request that the routers hand over pulls what its prefill replica had cached or computed
		x.cached += rec.PulledTokens
	}
}

// errGone means that the client has gone. Nothing is written any more.
var errGone = errors.New("the client has gone")

// errCut means that the connection must break, as it does when a server fails.
var errCut = errors.New("the connection is cut")

// broken returns the error of a call whose choice did not complete.
func (c *call) broken(n news) error {
	if errors.Is(n.err, context.Canceled) || errors.Is(n.err, context.DeadlineExceeded) {
		return errGone
	}
	n.of.ended = true
	f := c.server.ended(n.err)
	if f.status == http.StatusBadGateway && c.replica > 0 {
		if rec, _ := live.IsEnded(n.err); c.lost(rec) {
			return errNoKV
		}
		return errCut // there is no gateway
	}
	return f
}

func (c *call) label(h http.Header) { h.Set(RequestHeader, strconv.FormatInt(c.choices[0].number, 10)) }

func (c *call) usage(b []byte) []byte {
	prompt, done, cached := 0, int32(0), int32(0)
	for i := range c.prompts {
		prompt += len(c.prompts[i].Tokens)
		cached += c.choices[i*int(c.p.n)].cached
	}
	for i := range c.choices {
		done += c.choices[i].done
	}
	b = appendUsage(b, prompt, done)
	b = append(b[:len(b)-1], `,"prompt_tokens_details":{"cached_tokens":`...)
	return append(strconv.AppendInt(b, int64(cached), 10), "}}"...)
}

func appendUsage(b []byte, prompt int, done int32) []byte {
	b = append(b, `{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(prompt), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(prompt)+int64(done), 10)
	b = append(b, `,"completion_tokens":`...)
	b = strconv.AppendInt(b, int64(done), 10)
	return append(b, '}')
}

// identify returns the ID of a response: the client's X-Request-Id, if it is plain, or one of its own.
func (s *Server) identify(prefix string, h http.Header) string {
	if id := h.Get("X-Request-Id"); id != "" && len(id) <= 128 && strings.Trim(id, plain) == "" {
		return prefix + id
	}
	return prefix + s.session + strconv.FormatUint(s.calls.Add(1)|1<<63, 16)
}

// plain are the characters of an ID that is not changed in JSON.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:"
