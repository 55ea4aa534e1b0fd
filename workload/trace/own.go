package trace

import (
	"bytes"
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
	classTable
	sessions                          sessionTable
	time, input, output               int
	session, content, class, priority int
}

// ownColumns are those that every trace of Clifftop's has, and ownExtras those that it may have.
var (
	ownColumns = []string{"arrival_s", "input_tokens", "output_tokens"}
	ownExtras  = []string{"session", "content", "class", "priority"}
)

func ownFormat() format {
	return format{
		Format:  Format{"clifftop", "CSV: arrival_s,input_tokens,output_tokens and optionally session,content,class,priority", "Clifftop's own"},
		need:    [][]string{ownColumns},
		may:     ownExtras,
		columns: func(_ *File, h header) layout { return newOwn(h) },
	}
}

func newOwn(h header) *own {
	return &own{
		header: h, time: h.index("arrival_s"), input: h.index("input_tokens"), output: h.index("output_tokens"),
		session: h.index("session"), content: h.index("content"), class: h.index("class"), priority: h.index("priority"),
		sessions: newSessionTable(),
	}
}

func (o *own) parse(line []byte, r *Row, t *instant) (f *fault) {
	if f := o.split(line); f != nil {
		return f
	}
	if *t, f = decimal(o.fields[o.time], inSeconds); f != nil {
		return f
	}
	if f = o.lengths(r, o.input, o.output); f != nil {
		return f
	}
	if b := o.field(o.priority); len(b) > 0 {
		p, err := strconv.ParseInt(string(b), 10, 16)
		if err != nil {
			return faulty(Int, b, "is not a priority", "a whole number from -32768 to 32767")
		}
		r.Priority = int16(p)
	}
	if r.Class, f = o.of(o.field(o.class)); f != nil {
		return f
	}
	if f = o.sessions.of(o.field(o.session), r); f != nil {
		return f
	}
	if b := o.field(o.content); len(b) > 0 {
		if r.Content, f = parseContent(b, &r.Request, o.limit); f != nil {
			return f
		}
	}
	return nil
}

func (o *own) accept(r *Row) { o.sessions.accept(o.field(o.session), r) }

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
