package trace

// mooncake is the layout of the Mooncake traces: JSON lines with timestamp (milliseconds from the start),
// input_length, output_length and hash_ids, the IDs of blocks of 512 tokens.
type mooncake struct {
	request requestReader
	blocks  *blocks
}

func mooncakeFormat() format {
	return format{
		Format: Format{"mooncake", "JSON lines: timestamp (ms), input_length, output_length, hash_ids",
			"https://github.com/kvcache-ai/Mooncake"},
		need: [][]string{{"timestamp", "input_length", "output_length", "hash_ids"}},
		not:  []string{"chat_id"},
		objects: func(f *File) layout {
			return &mooncake{newRequestReader(f, "timestamp", "input_length", "output_length", inMillis),
				newBlocks(f, "mooncake", 512)}
		},
	}
}

func (m *mooncake) accept(*Row)   {}
func (m *mooncake) ended(f *File) { m.blocks.ended(f) }

func (m *mooncake) parse(line []byte, r *Row, t *instant) *fault {
	var ids []byte
	m.request.clear()
	ok := m.blocks.object(line, func(key, value []byte) {
		if !m.request.take(key, value) && string(key) == "hash_ids" {
			ids = value
		}
	})
	if !ok {
		return notObject(line)
	}
	if f := m.request.read(line, r, t); f != nil {
		return f
	}
	return m.blocks.read(ids, r)
}
