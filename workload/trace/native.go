package trace

import (
	"bytes"
	"strconv"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// native is Clifftop's own layout: CSV with the columns arrival_s, input_tokens and output_tokens, and optionally
// session, content, class, priority, lora, replica, cancel_s, kv and wait_s. Arrivals are seconds from the start of
// the run.
//
// content lists the leading segments of the prompt as name:tokens, joined by |. Equal names mean equal text. The
// name @out stands for an output of the same session: the last one in the list is the previous output, the one
// before it the output before that. A # with 16 hexadecimal digits is a numeric identity.
//
// A row with wait_s is sent that many seconds after the output of the row above it. It has no arrival; session, class,
// priority and lora come from the first row of the conversation.
//
// lora names the LoRA adapter of the request; an empty one is the base model.
//
// replica numbers the replica that the client addresses itself, from 0; an empty one leaves the choice to the router.
// The client cancels the request cancel_s seconds after its arrival if it has not ended.
//
// kv is keep where a prefill replica keeps the KV of the prompt for another request, and REPLICA:REQUEST where a decode
// replica loads the KV that a replica keeps for an earlier request. Requests are numbered from 0 in order of arrival.
type native struct {
	header
	classTable
	sessions                          sessionTable
	time, input, output               int
	session, content, class, priority int
	wait, lora, replica, cancel, kv   int
	adapters                          classTable
	name                              []byte // session of the row
}

// nativeColumns are required columns, nativeExtras optional ones.
var (
	nativeColumns = []string{"arrival_s", "input_tokens", "output_tokens"}
	nativeExtras  = []string{"session", "content", "class", "priority"}
)

// loraColumn is the column of adapters.
const loraColumn = "lora"

// replicaColumn and cancelColumn are the columns of replicas that clients address, and of cancellations.
const (
	replicaColumn = "replica"
	cancelColumn  = "cancel_s"
)

// kvColumn is the column of KV that is kept and loaded, keepsKV its value for the former.
const (
	kvColumn = "kv"
	keepsKV  = "keep"
)

// waitColumn is the column of rows that wait for the output of the row above.
const waitColumn = "wait_s"

func nativeFormat() format {
	return format{
		Format: Format{"clifftop", "CSV: arrival_s,input_tokens,output_tokens and optionally " +
			"session,content,class,priority,lora,replica,cancel_s,kv,wait_s", "Clifftop's own"},
		need: [][]string{nativeColumns},
		may: append(nativeExtras[:len(nativeExtras):len(nativeExtras)], loraColumn, replicaColumn, cancelColumn,
			kvColumn, waitColumn),
		columns: func(_ *File, h header) layout { return newNative(h) },
	}
}

func newNative(h header) *native {
	return &native{
		header: h, time: h.index("arrival_s"), input: h.index("input_tokens"), output: h.index("output_tokens"),
		session: h.index("session"), content: h.index("content"), class: h.index("class"),
		priority: h.index("priority"), wait: h.index(waitColumn), lora: h.index(loraColumn),
		replica: h.index(replicaColumn), cancel: h.index(cancelColumn), kv: h.index(kvColumn),
		sessions: newSessionTable(),
	}
}

func (o *native) parse(line []byte, r *Row, t *instant) (f *fault) {
	if f := o.split(line); f != nil {
		return f
	}
	if b := o.field(o.wait); len(b) > 0 {
		return faulty(Parent, line, "has wait_s but no row above it",
			"a row with an arrival before rows with wait_s")
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
	adapter, f := o.adapters.of(o.field(o.lora))
	if f != nil {
		return f
	}
	r.Adapter = int32(adapter)
	if f = o.client(r); f != nil {
		return f
	}
	o.name = append(o.name[:0], o.field(o.session)...)
	if f = o.sessions.of(o.name, r); f != nil {
		return f
	}
	if b := o.field(o.content); len(b) > 0 {
		if r.Content, f = parseContent(b, &r.Request, o.limit); f != nil {
			return f
		}
	}
	return nil
}

// client reads what the client does: the replica that it addresses, and when it cancels.
func (o *native) client(r *Row) (f *fault) {
	if b := o.field(o.replica); len(b) > 0 {
		if r.Replica, f = count(b, maxReplica); f != nil {
			return faulty(Int, b, "is not a replica", "a whole number from 0")
		}
		r.Replica++
	}
	if f = o.transfer(r); f != nil {
		return f
	}
	b := o.field(o.cancel)
	if len(b) == 0 {
		return nil
	}
	at, f := decimal(b, inSeconds)
	if f != nil {
		return f
	}
	after, ok := at.sub(instant{})
	if !ok || after < 0 {
		return faulty(Time, b, "is out of range", "from 0 s to 100 days")
	}
	// A client that cancels at once leaves in the first picosecond: 0 is no cancellation.
	r.Client = &workload.Client{Cancel: max(1, clock.Duration(after))}
	return nil
}

// transfer reads what happens to the KV of the prompt.
func (o *native) transfer(r *Row) *fault {
	b := o.field(o.kv)
	if len(b) == 0 {
		return nil
	}
	if string(b) == keepsKV {
		r.Transfer = &workload.Transfer{Keeps: true}
		return nil
	}
	from, of, ok := bytes.Cut(b, []byte{':'})
	replica, f := count(from, maxReplica)
	request, err := strconv.ParseInt(string(of), 10, 64)
	if !ok || f != nil || err != nil || request < 0 {
		return faulty(Int, b, "says no KV", "keep, or the numbers REPLICA:REQUEST")
	}
	r.Transfer = &workload.Transfer{From: replica + 1, Of: request}
	return nil
}

// maxReplica is the highest number of a replica.
const maxReplica = 1 << 20

func (o *native) accept(r *Row) { o.sessions.accept(o.name, r) }

func (o *native) chains() bool { return o.wait >= 0 }

func (o *native) follows(line []byte) bool {
	fields, f := columns(trim(line), nil)
	return f == nil && o.wait < len(fields) && len(fields[o.wait]) > 0
}

func (o *native) follow(line []byte, r *Row) *fault {
	if f := o.split(line); f != nil {
		return f
	}
	if b := o.fields[o.time]; len(b) > 0 {
		return faulty(Time, b, "is set together with wait_s", "arrival_s or wait_s")
	}
	if len(o.field(o.replica))+len(o.field(o.cancel))+len(o.field(o.kv)) > 0 {
		return faulty(Parent, line, "has wait_s together with replica, cancel_s or kv", "wait_s alone")
	}
	if b := o.field(o.session); len(b) > 0 && string(b) != string(o.name) || len(o.name) == 0 {
		return faulty(Parent, line, "has wait_s and another session than the row above", "the same session")
	}
	at, f := decimal(o.field(o.wait), inSeconds)
	if f != nil {
		return f
	}
	wait, ok := at.sub(instant{})
	if !ok {
		return faulty(Time, o.field(o.wait), "is out of range", "at most 100 days")
	}
	var x Row
	x.Session, x.Turn = r.Session, r.Turn+int32(len(r.Then))+1
	if f := o.lengths(&x, o.input, o.output); f != nil {
		return f
	}
	if x.InputTokens == 0 || x.OutputTokens == 0 {
		return faulty(Range, line, "has wait_s and an empty prompt or output", "1 token or more of each")
	}
	if b := o.field(o.content); len(b) > 0 {
		if x.Content, f = parseContent(b, &x.Request, o.limit); f != nil {
			return f
		}
	}
	r.Then = append(r.Then, Turn{Wait: clock.Duration(wait), InputTokens: x.InputTokens, OutputTokens: x.OutputTokens,
		Content: x.Content})
	return nil
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
				return nil, faulty(Prefix, part, "refers to an output that does not exist",
					"at most as many @out as earlier turns")
			}
			s.ID = workload.OutputID(r.Session, turn)
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
		return nil, faulty(Prefix, b, "covers more than the prompt", "at most input_tokens in total")
	}
	return c, nil
}
