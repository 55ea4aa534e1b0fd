package trace

import "bytes"

// bailian is the layout of the Qwen-Bailian usage traces: JSON lines with chat_id, parent_chat_id (-1 for the first
// turn of a conversation), timestamp (seconds), input_length, output_length, type, turn and hash_ids, the IDs of
// blocks of 16 tokens. A turn may lack the thinking of the turn before.
type bailian struct {
	classTable
	request  requestReader
	blocks   *blocks
	fix      bool
	fixed    func(Code)
	sessions map[string]int32 // of each accepted chat
	turns    []int32          // by session
	chat     []byte           // of the row
}

func bailianFormat() format {
	return format{
		Format: Format{"bailian", "JSON lines: chat_id, parent_chat_id, timestamp (s), input_length, output_length, " +
			"type, turn, hash_ids", "https://github.com/alibaba-edu/qwen-bailian-usagetraces-anon"},
		need: [][]string{{"chat_id", "parent_chat_id", "timestamp", "input_length", "output_length", "hash_ids"}},
		may:  []string{"type", "turn"},
		objects: func(f *File) layout {
			b := newBlocks(f, "bailian", 16)
			b.floor = true
			return &bailian{
				request: newRequestReader(f, "timestamp", "input_length", "output_length", inSeconds), blocks: b,
				fix: f.options.Mode == Fix, fixed: f.countFixed, sessions: map[string]int32{}, turns: []int32{0},
			}
		},
	}
}

func (b *bailian) ended(f *File) { b.blocks.ended(f) }

func (b *bailian) parse(line []byte, r *Row, t *instant) *fault {
	var kind, parent, ids []byte
	b.chat = nil
	b.request.clear()
	ok := b.blocks.object(line, func(key, value []byte) {
		switch string(key) {
		case "type":
			kind = value
		case "chat_id":
			b.chat = value
		case "parent_chat_id":
			parent = value
		case "hash_ids":
			ids = value
		default:
			b.request.take(key, value)
		}
	})
	if !ok {
		return notObject(line)
	}
	f := required(line, member{"chat_id", b.chat}, member{"parent_chat_id", parent})
	if f != nil {
		return f
	}
	if f = b.request.read(line, r, t); f != nil {
		return f
	}
	if f = b.blocks.read(ids, r); f != nil {
		return f
	}
	if r.Class, f = b.of(bytes.Trim(kind, `"`)); f != nil {
		return f
	}
	return b.session(parent, r)
}

// session assigns the row to the conversation of its parent.
func (b *bailian) session(parent []byte, r *Row) *fault {
	if string(parent) != "-1" && string(parent) != "null" {
		if r.Session = b.sessions[string(parent)]; r.Session != 0 {
			r.Turn = b.turns[r.Session]
			return nil
		}
		if !b.fix {
			return faulty(Parent, parent, "is an unknown chat", "the chat_id of an earlier row, -1, or mode fix")
		}
		b.fixed(Parent)
	}
	if len(b.turns) == 1<<31-1 {
		return faulty(Range, b.chat, "exceeds the number of sessions", "at most 2147483646 sessions")
	}
	r.Session = int32(len(b.turns))
	return nil
}

func (b *bailian) accept(r *Row) {
	if int(r.Session) == len(b.turns) {
		b.turns = append(b.turns, 0)
	}
	b.turns[r.Session]++
	b.sessions[string(b.chat)] = r.Session
}
