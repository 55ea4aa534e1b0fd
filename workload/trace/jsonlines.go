package trace

import "clifftop/internal/duplicate"

// requestReader collects and reads the members that all JSON lines have: an arrival and two lengths.
type requestReader struct {
	arrival, input, output member
	unit                   unit // of the arrival
	limit                  int32
}

// member is a key of an object and its value; nil if the key is missing.
type member struct {
	key   string
	value []byte
}

func newRequestReader(f *File, arrival, input, output string, u unit) requestReader {
	return requestReader{
		arrival: member{key: arrival}, input: member{key: input}, output: member{key: output}, unit: u,
		limit: f.options.MaxTokens,
	}
}

// clear forgets the values of the last line.
func (q *requestReader) clear() { q.arrival.value, q.input.value, q.output.value = nil, nil, nil }

// take keeps the value of a member; it returns false if the key is none of the three.
func (q *requestReader) take(key, value []byte) bool {
	switch string(key) {
	case q.arrival.key:
		q.arrival.value = value
	case q.input.key:
		q.input.value = value
	case q.output.key:
		q.output.value = value
	default:
		return false
	}
	return true
}

func (q *requestReader) read(line []byte, r *Row, t *instant) (f *fault) {
	if f = required(line, q.arrival, q.input, q.output); f != nil {
		return f
	}
	if *t, f = decimal(q.arrival.value, q.unit); f != nil {
		return f
	}
	if r.InputTokens, f = count(q.input.value, q.limit); f != nil {
		return f
	}
	r.OutputTokens, f = count(q.output.value, q.limit)
	return f
}

// required reports the first missing member.
func required(line []byte, members ...member) *fault {
	for _, m := range members {
		if m.value == nil {
			return faulty(Fields, line, "has no "+m.key, "the keys of the first line")
		}
	}
	return nil
}

// notObject is the fault of a line that walkObject refuses.
func notObject(line []byte) *fault {
	if key, _, twice := duplicate.Key(line); twice {
		return faulty(Syntax, []byte(key), "is given twice in the object", "each key once")
	}
	return faulty(Syntax, line, "is not a JSON object", "one object per line")
}
