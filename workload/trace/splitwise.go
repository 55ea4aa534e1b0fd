package trace

// splitwise is the layout of splitwise-sim: CSV with request_id, request_type, application_id, arrival_timestamp
// (seconds), batch_size, prompt_size and token_size. The application is the class.
type splitwise struct {
	header
	classTable
	time, input, output, application, batch int
}

func splitwiseFormat() format {
	return format{
		Format: Format{"splitwise", "CSV: request_id,request_type,application_id,arrival_timestamp " +
			"(s),batch_size,prompt_size,token_size", "https://github.com/Mutinifni/splitwise-sim"},
		need: [][]string{{"arrival_timestamp", "prompt_size", "token_size"}},
		may:  []string{"request_id", "request_type", "application_id", "batch_size"},
		columns: func(_ *File, h header) layout {
			return &splitwise{
				header: h, time: h.index("arrival_timestamp"), input: h.index("prompt_size"),
				output:      h.index("token_size"),
				application: h.index("application_id"), batch: h.index("batch_size"),
			}
		},
	}
}

func (s *splitwise) parse(line []byte, r *Row, t *instant) (f *fault) {
	if f := s.split(line); f != nil {
		return f
	}
	if *t, f = decimal(s.fields[s.time], inSeconds); f != nil {
		return f
	}
	if f = s.lengths(r, s.input, s.output); f != nil {
		return f
	}
	if b := s.field(s.batch); b != nil && string(b) != "1" {
		return faulty(Range, b, "is a batch of requests", "a batch_size of 1")
	}
	r.Class, f = s.of(s.field(s.application))
	return f
}
