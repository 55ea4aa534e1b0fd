package api

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"clifftop/workload"
)

// params are the parameters of a request for its output.
type params struct {
	model   string // as the request names it
	adapter int32
	n       int32 // outputs for each prompt
	// most is the largest number of output tokens, 0 without a limit; least the smallest.
	most, least int32
	// asked means that the request gave most itself.
	asked bool
	// exact means that the output has as many tokens as most says.
	exact bool
	// header is the number of output tokens that the header gives, or 0.
	header   int32
	class    int // index of the class of the output lengths; -1 is a draw
	priority int16
	ranked   bool // the request gave the priority
	stops    []string
	include  bool // of the stop string
	stream   bool
	usage    bool // a last chunk with the usage
	always   bool // usage in every chunk
	ids      bool // return token IDs
	echo     bool
	session  string
	truncate int32 // the prompt to its last tokens; 0 is no limit
	transfer *transferParams
}

// common are the fields that completions and chat completions share. Fields that are not here have no effect.
type common struct {
	Model         *string `json:"model"`
	N             number  `json:"n"`
	MaxTokens     number  `json:"max_tokens"`
	MinTokens     number  `json:"min_tokens"`
	IgnoreEOS     *bool   `json:"ignore_eos"`
	Stop          stops   `json:"stop"`
	IncludeStop   *bool   `json:"include_stop_str_in_output"`
	Stream        *bool   `json:"stream"`
	StreamOptions *struct {
		IncludeUsage *bool `json:"include_usage"`
		Continuous   *bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
	Priority       number          `json:"priority"`
	Session        *string         `json:"session_id"`
	ReturnTokenIDs *bool           `json:"return_token_ids"`
	Truncate       number          `json:"truncate_prompt_tokens"`
	BeamSearch     *bool           `json:"use_beam_search"`
	Transfer       *transferParams `json:"kv_transfer_params"`
	PromptLogprobs json.RawMessage `json:"prompt_logprobs"`
}

// Limits of one request.
const (
	maxChoices     = 128
	maxRequests    = 2048 // prompts times n
	maxSessionName = 256
)

func is(b *bool) bool { return b != nil && *b }

// given reports whether a field has a value that asks for something.
func given(data json.RawMessage) bool {
	s := string(data)
	return s != "" && s != "null" && s != "false"
}

// params reads the common fields. fallback is the limit of output tokens if the request gives none; 0 is no limit.
func (s *Server) params(c *common, r *http.Request, fallback int32) (p params, err error) {
	if c.Model != nil {
		p.model = *c.Model
	}
	if p.adapter, err = s.names.find(c.Model); err != nil {
		return p, err
	}
	if is(c.BeamSearch) {
		return p, bad("use_beam_search", "use_beam_search is not supported (want false)")
	}
	if given(c.PromptLogprobs) {
		return p, bad("prompt_logprobs", "prompt_logprobs is not supported: the output is filler (want null)")
	}
	var f fields
	p.n = int32(f.in(c.N, "n", 1, maxChoices, 1))
	p.asked = c.MaxTokens.Number != nil
	p.most = int32(f.in(c.MaxTokens, "max_tokens", 1, workload.MaxTokens, int64(fallback)))
	p.least = int32(f.in(c.MinTokens, "min_tokens", 0, workload.MaxTokens, 0))
	p.priority = int16(f.in(c.Priority, "priority", math.MinInt16, math.MaxInt16, 0))
	p.ranked = c.Priority.Number != nil
	switch n := f.in(c.Truncate, "truncate_prompt_tokens", -1, workload.MaxTokens, 0); {
	case n < 0:
		p.truncate = s.context
	default:
		p.truncate = int32(n)
	}
	if f.err != nil {
		return p, f.err
	}
	p.stops, p.include, p.ids = c.Stop, is(c.IncludeStop), is(c.ReturnTokenIDs)
	p.stream, p.transfer = is(c.Stream), c.Transfer
	if o := c.StreamOptions; o != nil {
		if !p.stream {
			return p, bad("stream_options", "stream_options needs stream: true")
		}
		p.usage = o.IncludeUsage == nil || *o.IncludeUsage
		p.always = p.usage && is(o.Continuous)
	}
	if c.Session != nil {
		if p.session = *c.Session; len(p.session) > maxSessionName {
			return p, bad("session_id", "session_id has %d bytes (want at most %d)", len(p.session), maxSessionName)
		}
	}
	if p.most > 0 && p.least > p.most {
		return p, bad("min_tokens", "min_tokens %d exceeds max_tokens %d", p.least, p.most)
	}
	p.exact = p.most > 0 && (is(c.IgnoreEOS) || p.least == p.most)
	return p, s.headers(&p, r.Header)
}

// Headers of requests and responses.
const (
	// OutputHeader gives the number of output tokens of a request.
	OutputHeader = "X-Clifftop-Output-Tokens"
	// ClassHeader names the class of a request, of the scenario's classes of traffic.
	ClassHeader = "X-Clifftop-Class"
	// RequestHeader has the number of the request in the journal.
	RequestHeader = "X-Clifftop-Request"
)

// headers reads Clifftop's own headers.
func (s *Server) headers(p *params, h http.Header) error {
	p.class = -1
	if v := h.Get(OutputHeader); v != "" {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil || n < 1 || n > workload.MaxTokens {
			return bad(OutputHeader, "%s: %s is not allowed (want 1 to %d)", OutputHeader, nameOf(v),
				workload.MaxTokens)
		}
		p.header = int32(n)
	}
	if v := h.Get(ClassHeader); v != "" {
		if p.class = s.lengths.classOf(v); p.class < 0 {
			return bad(ClassHeader, "%s: the scenario has no class %s", ClassHeader, nameOf(v))
		}
	}
	return nil
}

// fields reads several numbers and keeps the first error.
type fields struct{ err error }

func (f *fields) in(n number, name string, least, most, fallback int64) int64 {
	i, err := n.in(name, least, most, fallback)
	if f.err == nil {
		f.err = err
	}
	return i
}
