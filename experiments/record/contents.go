package record

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"time"

	"clifftop/experiments/live/text"
	"clifftop/workload"
)

// output is one output of a request, with its prompt.
type output struct {
	text.Placed
	id       uint64 // names its tokens in the contents of later prompts, until they are written
	estimate int    // tokens of the prompt by the tokenizer
	input    int    // tokens of the prompt, 0 if there are none
	received int    // tokens of the output
	asked    int    // tokens of the output in the row
	encoded  int    // tokens of the output by the tokenizer
	counted  string
	chunks   []time.Duration
	written  uint64 // its name in the trace; 0 before
}

// contents finds what prompts share, and names it in the trace. Names are keyed hashes.
//
// The tokenizer here is not always that of the server, which counts other numbers of tokens. A prompt that continues
// a conversation therefore gets the content of the earlier request with the server's counts of the prompt and of the
// output, and its own tokens after them. The prompt ends with tokens of its own, or is cut, to have the server's count.
type contents struct {
	index    *text.Index
	salt     hash.Hash
	outputs  map[uint64]*output // by id, of requests that have ended
	order    []uint64           // their ids; the oldest first
	bytes    int                // of them
	sessions map[int32]*session // by the index's number
	numbered int32              // sessions
	unique   uint64
}

// session is a conversation in the trace.
type session struct {
	number, next int32 // next is the next turn
	kept         int   // outputs in contents
}

// maxKept is the memory of earlier requests, in bytes.
const maxKept = 256 << 20

func newContents(salt []byte) (*contents, error) {
	if len(salt) == 0 {
		salt = make([]byte, sha256.Size)
		if _, err := rand.Read(salt); err != nil {
			return nil, err
		}
	}
	return &contents{index: text.NewIndex(0), salt: hmac.New(sha256.New, salt), outputs: map[uint64]*output{},
		sessions: map[int32]*session{}}, nil
}

// place places the prompt of a request that arrived.
func (c *contents) place(tokens []uint32, key string) *output {
	o := &output{Placed: c.index.Prompt(tokens, key), estimate: len(tokens)}
	o.id = workload.OutputID(o.Session, o.Turn)
	return o
}

// ended sets the tokens of a prompt, 0 if only the tokenizer knows, and notes the tokens of the output.
func (c *contents) ended(o *output, input int, tokens []uint32) {
	c.index.Output(o.Session, o.Turn, tokens)
	o.encoded = len(tokens)
	o.Content = c.fit(o, input)
	o.input = int(o.Content.Tokens())
	c.outputs[o.id] = o
	c.order = append(c.order, o.id)
	c.bytes += o.bytes()
	for c.bytes > maxKept && len(c.order) > 1 {
		c.forget(c.order[0])
		c.order = c.order[1:]
	}
}

// bytes estimates the memory of an output.
func (o *output) bytes() int { return 256 + 16*len(o.Content.Segments) }

// forget drops an output.
func (c *contents) forget(id uint64) {
	o := c.outputs[id]
	c.bytes -= o.bytes()
	delete(c.outputs, id)
	if s := c.sessions[o.Session]; s != nil && o.written != 0 {
		if s.kept--; s.kept == 0 {
			delete(c.sessions, o.Session)
		}
	}
}

// fit returns the content of a prompt with input tokens in total; 0 is as many as it has.
func (c *contents) fit(o *output, input int) *workload.Content {
	from := o.Content.Segments
	to := &workload.Content{}
	for i := len(from) - 1; i >= 0; i-- {
		if before := c.outputs[from[i].ID]; before != nil {
			to.Segments = append(to.Segments, before.Content.Segments...)
			n := before.received
			if int(from[i].Tokens) < before.encoded {
				n = min(n, int(from[i].Tokens))
			}
			if n > 0 {
				to.Segments = append(to.Segments, workload.Segment{ID: before.id, Tokens: int32(n)})
			}
			from = from[i+1:]
			break
		}
	}
	for _, s := range from {
		to.Segments = append(to.Segments, workload.Segment{ID: c.hash(s.ID), Tokens: s.Tokens})
	}
	total := int(to.Tokens())
	if input == 0 {
		return to
	}
	for total > input {
		last := &to.Segments[len(to.Segments)-1]
		cut := min(total-input, int(last.Tokens))
		if last.Tokens -= int32(cut); last.Tokens == 0 {
			to.Segments = to.Segments[:len(to.Segments)-1]
		}
		total -= cut
	}
	if total < input {
		c.unique++
		to.Segments = append(to.Segments, workload.Segment{ID: c.hash(^c.unique), Tokens: int32(input - total)})
	}
	return to
}

// hash returns the name of a segment in the trace.
func (c *contents) hash(id uint64) uint64 {
	var data [8]byte
	binary.LittleEndian.PutUint64(data[:], id)
	c.salt.Reset()
	c.salt.Write(data[:]) // never fails
	var sum [sha256.Size]byte
	return binary.LittleEndian.Uint64(c.salt.Sum(sum[:0]))
}

// number sets the session and the content of a request that is written. Sessions count from 1 in order of the trace.
func (c *contents) number(o *output, r *workload.Request) {
	s := c.sessions[o.Session]
	if s == nil {
		c.numbered++
		s = &session{number: c.numbered}
		c.sessions[o.Session] = s
	}
	if c.outputs[o.id] == o {
		s.kept++
	}
	r.Session, r.Turn = s.number, s.next
	s.next++
	o.written = workload.OutputID(r.Session, r.Turn)
	r.Content = &workload.Content{Segments: make([]workload.Segment, len(o.Content.Segments))}
	for i, p := range o.Content.Segments {
		if before := c.outputs[p.ID]; before != nil && before.written != 0 {
			p.ID = before.written
		}
		r.Content.Segments[i] = p
	}
}
