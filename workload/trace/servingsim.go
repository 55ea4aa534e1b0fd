package trace

import (
	"bytes"
	"math/bits"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// servingSim is the layout of LLMServingSim: JSON lines of two kinds, which may be mixed. A flat line is a request
// with input_toks, output_toks, arrival_time_ns and optionally the token IDs. A line with sub_requests is an
// agent's session: each part is sent when the previous one is complete and its tool has run for
// tool_duration_ns. Prompts share their common leading tokens in blocks.
type servingSim struct {
	request  requestReader
	sessions sessionTable
	session  []byte // of the row
	block    int32
	domain   uint64
	tokens   []uint64
}

func servingSimFormat() format {
	return format{
		Format: Format{"llmservingsim", "JSON lines: input_toks, output_toks, arrival_time_ns and optionally " +
			"input_tok_ids; or session_id, arrival_time_ns, sub_requests",
			"https://github.com/casys-kaist/LLMServingSim"},
		need: [][]string{{"input_toks", "output_toks", "arrival_time_ns"}, {"arrival_time_ns", "sub_requests"}},
		may:  []string{"input_tok_ids", "output_tok_ids", "session_id"},
		objects: func(f *File) layout {
			s := &servingSim{
				request:  newRequestReader(f, "arrival_time_ns", "input_toks", "output_toks", inNanos),
				sessions: newSessionTable(), block: f.options.BlockTokens,
				domain: workload.Hash(workload.SegmentID("llmservingsim"), f.options.Domain),
			}
			if s.block == 0 {
				s.block = 16
			}
			return s
		},
	}
}

func (s *servingSim) accept(r *Row) { s.sessions.accept(s.session, r) }

// servingKeys are the further values of a flat line or of a part.
type servingKeys struct{ ids, wait, session, parts []byte }

// read reads a line or a part; it returns false if that is not an object.
func (s *servingSim) read(line []byte) (k servingKeys, ok bool) {
	s.request.clear()
	ok = walkObject(line, func(key, value []byte) {
		switch string(key) {
		case "input_tok_ids":
			k.ids = value
		case "tool_duration_ns":
			k.wait = value
		case "session_id":
			k.session = value
		case "sub_requests":
			k.parts = value
		default:
			s.request.take(key, value)
		}
	})
	return k, ok
}

func (s *servingSim) parse(line []byte, r *Row, t *instant) *fault {
	k, ok := s.read(line)
	if !ok {
		return notObject(line)
	}
	s.session = k.session
	if k.parts != nil {
		return s.agentSession(line, &k, r, t)
	}
	f := s.request.read(line, r, t)
	if f != nil {
		return f
	}
	if f = s.sessions.of(k.session, r); f != nil {
		return f
	}
	r.Content, f = s.content(k.ids, r.InputTokens)
	return f
}

// agentSession reads a session of several parts.
func (s *servingSim) agentSession(line []byte, k *servingKeys, r *Row, t *instant) (f *fault) {
	const want = "objects with input_toks, output_toks and tool_duration_ns"
	n, wait := 0, clock.Duration(0)
	arrival := s.request.arrival.value
	ok := elements(k.parts, func(part []byte) bool {
		var x Row
		p, ok := s.read(part)
		if !ok {
			f = faulty(Syntax, part, "is not a part of a session", want)
			return false
		}
		s.request.arrival.value = arrival
		if f = s.request.read(part, &x, t); f != nil {
			return false
		}
		if x.Content, f = s.content(p.ids, x.InputTokens); f != nil {
			return false
		}
		if n++; n == 1 {
			r.InputTokens, r.OutputTokens, r.Content = x.InputTokens, x.OutputTokens, x.Content
		} else if x.InputTokens == 0 || x.OutputTokens == 0 {
			f = faulty(Range, part, "has an empty prompt or output", "1 token or more of each")
			return false
		} else {
			r.Then = append(r.Then, Turn{Wait: wait, InputTokens: x.InputTokens, OutputTokens: x.OutputTokens,
				Content: x.Content})
		}
		wait, f = s.tool(p.wait)
		return f == nil
	})
	switch {
	case f != nil:
		return f
	case !ok:
		return faulty(Syntax, k.parts, "is not a list", want)
	case n == 0:
		return faulty(Fields, line, "is a session without requests", "at least one in sub_requests")
	}
	if f = s.sessions.of(k.session, r); f == nil && len(k.session) == 0 {
		f = required(line, member{"session_id", nil})
	}
	return f
}

// tool reads how long a tool runs; a missing key means no tool.
func (s *servingSim) tool(b []byte) (clock.Duration, *fault) {
	if b == nil || string(b) == "null" {
		return 0, nil
	}
	t, f := decimal(b, inNanos)
	if f != nil {
		return 0, f
	}
	d, ok := t.sub(instant{})
	if !ok {
		return 0, faulty(Time, b, "is out of range", "at most 100 days")
	}
	return clock.Duration(d), nil
}

// content makes segments of whole blocks of tokens; the rest of a prompt is not shared.
func (s *servingSim) content(ids []byte, input int32) (*workload.Content, *fault) {
	if ids == nil {
		return nil, nil
	}
	var ok bool
	if s.tokens, ok = numbers(ids, append(s.tokens[:0], 0)[:0]); !ok {
		return nil, faulty(Int, ids, "is not a list of tokens", "whole numbers, 0 or more")
	}
	full := min(int(input), len(s.tokens)) / int(s.block)
	if full == 0 {
		return nil, nil
	}
	c := &workload.Content{Segments: make([]workload.Segment, full)}
	for i := range c.Segments {
		h := s.domain
		for _, token := range s.tokens[i*int(s.block) : (i+1)*int(s.block)] {
			h = workload.Hash(bits.RotateLeft64(h, 23), token)
		}
		c.Segments[i] = workload.Segment{ID: h, Tokens: s.block}
	}
	return c, nil
}

// elements walks over the objects of a JSON list until do returns false.
func elements(list []byte, do func(object []byte) bool) bool {
	rest := skipBlanks(list)
	if len(rest) < 2 || rest[0] != '[' || rest[len(rest)-1] != ']' {
		return false
	}
	rest = skipBlanks(rest[1 : len(rest)-1])
	for len(rest) > 0 {
		n := valueLen(rest)
		if n == 0 {
			return false
		}
		if !do(bytes.TrimRight(rest[:n], blanks)) {
			return false
		}
		if rest = rest[n:]; len(rest) > 0 {
			rest = skipBlanks(rest[1:]) // the comma
		}
	}
	return true
}
