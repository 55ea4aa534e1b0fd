package trace

// mooncake is the layout of the Mooncake traces: JSON lines with timestamp (milliseconds from the start),
// input_length, output_length and hash_ids, the IDs of blocks of 512 tokens.
type mooncake struct {
	lengths requestReader
	blocks  *blocks
}

func mooncakeFormat() format {
	return format{
		Format: Format{"mooncake", "JSON lines: timestamp (ms), input_length, output_length, hash_ids",
			"https://github.com/kvcache-ai/Mooncake"},
		need: [][]string{{"timestamp", "input_length", "output_length", "hash_ids"}},
		not:  []string{"chat_id"},
		objects: func(f *File) layout {
			return &mooncake{requestReader{limit: f.options.MaxTokens}, newBlocks(f, "mooncake", 512)}
		},
	}
}

func (m *mooncake) accept(*Row)   {}
func (m *mooncake) ended(f *File) { m.blocks.ended(f) }

func (m *mooncake) parse(line []byte, r *Row, t *instant) *fault {
	var at, input, output, ids []byte
	ok := m.blocks.object(line, func(key, value []byte) {
		switch string(key) {
		case "timestamp":
			at = value
		case "input_length":
			input = value
		case "output_length":
			output = value
		case "hash_ids":
			ids = value
		}
	})
	if !ok {
		return notObject(line)
	}
	if f := m.lengths.read(line, member{"timestamp", at}, member{"input_length", input},
		member{"output_length", output}, inMillis, r, t); f != nil {
		return f
	}
	return m.blocks.read(ids, r)
}

// requestReader reads the common keys of JSON lines: an arrival and two lengths.
type requestReader struct{ limit int32 }

// member is a key of an object and its value; nil if the key is missing.
type member struct {
	key   string
	value []byte
}

func notObject(line []byte) *fault {
	return faulty(Syntax, line, "is not a JSON object", "one object per line")
}

func missing(line []byte, key string) *fault {
	return faulty(Fields, line, "has no "+key, "the keys of the first line")
}

func (k requestReader) read(line []byte, at, input, output member, u unit, r *Row, t *instant) (f *fault) {
	for _, m := range [...]member{at, input, output} {
		if m.value == nil {
			return missing(line, m.key)
		}
	}
	if *t, f = decimal(at.value, u); f != nil {
		return f
	}
	if r.InputTokens, f = count(input.value, k.limit); f != nil {
		return f
	}
	r.OutputTokens, f = count(output.value, k.limit)
	return f
}
