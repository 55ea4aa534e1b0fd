package trace

import (
	"bytes"
	"math"
	"strconv"

	"clifftop/workload"
)

// own is Clifftop's layout: CSV with the columns arrival_s, input_tokens and output_tokens, and
// optionally session, content, class and priority. Arrivals are seconds from the start of the run.
//
// Content lists the leading segments of the prompt as name:tokens, joined by |. Equal names are equal
// text. The name @out stands for an answer of the same session: the last one in the list is the
// previous answer, the one before it the answer before that. A name of # and 16 hexadecimal digits is
// an identity as it stands, for traces whose texts have no names.
type own struct {
	header
	time, input, output               int
	session, content, class, priority int
	sessions                          map[string]int32
	turns                             []int32 // by session, from 1
	classes                           []string
	classIndex                        map[string]uint16
}

func newOwn(h header) *own {
	return &own{
		header: h, time: h.index("arrival_s"), input: h.index("input_tokens"), output: h.index("output_tokens"),
		session: h.index("session"), content: h.index("content"), class: h.index("class"), priority: h.index("priority"),
		sessions: map[string]int32{}, turns: []int32{0}, classIndex: map[string]uint16{},
	}
}

func (o *own) absolute() bool { return false }

func (o *own) parse(line []byte, r *workload.Request, t *instant) (f *fault) {
	if f := o.split(line); f != nil {
		return f
	}
	if *t, f = decimal(o.fields[o.time], false); f != nil {
		return f
	}
	if r.InputTokens, f = count(o.fields[o.input], o.limit); f != nil {
		return f
	}
	if r.OutputTokens, f = count(o.fields[o.output], o.limit); f != nil {
		return f
	}
	if b := o.field(o.priority); len(b) > 0 {
		p, err := strconv.ParseInt(string(b), 10, 16)
		if err != nil {
			return faulty(Int, b, "is not a priority", "a whole number from -32768 to 32767")
		}
		r.Priority = int16(p)
	}
	if b := o.field(o.class); len(b) > 0 {
		if r.Class, f = o.classOf(b); f != nil {
			return f
		}
	}
	if b := o.field(o.session); len(b) > 0 {
		r.Session = o.sessions[string(b)] // 0 for one that has not been seen
		if r.Session != 0 {
			r.Turn = o.turns[r.Session]
		} else if len(o.sessions) == math.MaxInt32 {
			return faulty(Range, b, "is one session too many", "at most 2147483647 sessions")
		} else {
			r.Session = int32(len(o.sessions)) + 1
		}
	}
	if b := o.field(o.content); len(b) > 0 {
		if r.Content, f = parseContent(b, r, o.limit); f != nil {
			return f
		}
	}
	return nil
}

// accept enters the session and its turn; rows that are dropped do not count.
func (o *own) accept(r *workload.Request) {
	if r.Session == 0 {
		return
	}
	if int(r.Session) == len(o.turns) {
		o.sessions[string(o.field(o.session))] = r.Session
		o.turns = append(o.turns, 0)
	}
	o.turns[r.Session]++
}

func (o *own) classOf(b []byte) (uint16, *fault) {
	if i, ok := o.classIndex[string(b)]; ok {
		return i, nil
	}
	if len(o.classes) == 0 {
		o.classes = []string{""} // requests without a class
	}
	if len(o.classes) > math.MaxUint16 {
		return 0, faulty(Range, b, "is one class too many", "at most 65535 classes")
	}
	i := uint16(len(o.classes))
	o.classes = append(o.classes, string(b))
	o.classIndex[string(b)] = i
	return i, nil
}

const (
	answerName  = "@out"
	contentForm = "name:tokens, joined by |"
)

// parseContent reads the content column of a request whose session and turn are set.
func parseContent(b []byte, r *workload.Request, limit int32) (*workload.Content, *fault) {
	n := bytes.Count(b, []byte{'|'}) + 1
	c := &workload.Content{Segments: make([]workload.Segment, 0, n)}
	answers := int32(bytes.Count(b, []byte(answerName+":")))
	for part := range bytes.SplitSeq(b, []byte{'|'}) {
		colon := bytes.LastIndexByte(part, ':')
		if colon < 1 {
			return nil, faulty(Prefix, part, "is not a segment", contentForm)
		}
		tokens, f := count(part[colon+1:], limit)
		if f != nil {
			return nil, f
		}
		if tokens == 0 {
			return nil, faulty(Prefix, part, "has no tokens", contentForm)
		}
		s := workload.Segment{Tokens: tokens}
		switch name := part[:colon]; {
		case string(name) == answerName:
			turn := r.Turn - answers
			answers--
			if r.Session == 0 || turn < 0 {
				return nil, faulty(Prefix, part, "is an answer that was not given", "no more answers than the session has had")
			}
			s.ID = workload.AnswerID(r.Session, turn)
		case len(name) == 17 && name[0] == '#':
			id, err := strconv.ParseUint(string(name[1:]), 16, 64)
			if err != nil {
				return nil, faulty(Prefix, part, "is not an identity", "# and 16 hexadecimal digits")
			}
			s.ID = id
		default:
			s.ID = workload.SegmentID(string(name))
		}
		c.Segments = append(c.Segments, s)
	}
	if c.Tokens() > int64(r.InputTokens) {
		return nil, faulty(Prefix, b, "covers more than the prompt", "at most input_tokens in all")
	}
	return c, nil
}
