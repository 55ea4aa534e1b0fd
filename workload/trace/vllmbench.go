package trace

import "fmt"

// vllmBenchFormat is the result of `vllm bench serve --save-result --save-detailed`: one JSON object with a
// list for each property of the requests. Older versions have no start_times, so that a rate must make the
// arrivals. Requests with an error failed.
func vllmBenchFormat() format {
	return format{
		Format:   Format{"vllm-bench", "JSON: input_lens, output_lens and optionally start_times (s), errors, of `vllm bench serve --save-detailed`", "https://docs.vllm.ai/en/latest/cli/bench/serve"},
		need:     [][]string{{"input_lens", "output_lens"}, {"total_input_tokens", "total_output_tokens", "completed"}},
		absolute: true,
		failures: true,
		whole:    readVLLMBench,
	}
}

func readVLLMBench(f *File, d *document) (*records, error) {
	t := &records{timeless: true}
	var lengths [2]int
	found := [2]bool{}
	at := func(i int) (*record, error) {
		if i == maxRecords {
			return nil, tooMany()
		}
		for i >= len(t.list) {
			t.list = append(t.list, record{line: d.number})
		}
		return &t.list[i], nil
	}
	tokens := func(which int, set func(r *record, n int32)) error {
		found[which] = true
		return d.elements(func() error {
			b, err := d.scalar()
			if err != nil {
				return err
			}
			r, err := at(lengths[which])
			if err != nil {
				return err
			}
			lengths[which]++
			n, fault := count(b, f.options.MaxTokens)
			r.note(fault)
			set(r, n)
			return nil
		})
	}
	starts := 0
	err := d.members(func(key string) error {
		switch key {
		case "input_lens":
			return tokens(0, func(r *record, n int32) { r.input = n })
		case "output_lens":
			return tokens(1, func(r *record, n int32) { r.output = n })
		case "start_times":
			return d.elements(func() error {
				b, err := d.scalar()
				if err != nil {
					return err
				}
				r, err := at(starts)
				if err != nil {
					return err
				}
				starts++
				var fault *fault
				r.at, fault = decimal(b, inSeconds)
				r.note(fault)
				return nil
			})
		case "errors":
			i := 0
			return d.elements(func() error {
				r, err := at(i)
				if err != nil {
					return err
				}
				i++
				r.failed, err = d.anything()
				return err
			})
		}
		return d.skip()
	})
	switch {
	case err != nil:
		return nil, err
	case !found[0] || !found[1]:
		return nil, &RowError{Name: f.name, Code: Fields, Problem: "has no requests, only their sums", Want: "a result saved with --save-detailed"}
	case lengths[0] != lengths[1] || starts > 0 && starts != lengths[0] || len(t.list) != lengths[0]:
		return nil, &RowError{Name: f.name, Code: Fields, Problem: fmt.Sprintf("%d input_lens, %d output_lens and %d start_times do not go together", lengths[0], lengths[1], starts), Want: "as many of each"}
	}
	t.timeless = starts == 0
	return t.sorted(), nil
}

func tooMany() error {
	return &misshapen{"", fmt.Sprintf("at most %d requests in one document", maxRecords)}
}

// note keeps the first fault of a record.
func (r *record) note(f *fault) {
	if r.fault == nil {
		r.fault = f
	}
}

// anything takes a value, and says whether it is more than null, false, nothing or empty.
func (d *document) anything() (bool, error) {
	c, err := d.next()
	if err != nil {
		return false, err
	}
	head, _ := d.r.Peek(5)
	nothing := c == '"' && len(head) > 1 && head[1] == '"' || string(head[:min(4, len(head))]) == "null" || string(head) == "false"
	return !nothing, d.skip()
}
