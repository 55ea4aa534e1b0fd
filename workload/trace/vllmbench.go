package trace

import "fmt"

// vllmBenchFormat returns the format of `vllm bench serve --save-result --save-detailed`: one JSON object with a list
// per property of the requests. Older versions have no start_times; a rate must then be set. Requests with an error
// failed.
func vllmBenchFormat() format {
	return format{
		Format: Format{"vllm-bench", "JSON: input_lens, output_lens and optionally start_times (s), errors, of `vllm " +
			"bench serve --save-detailed`", "https://docs.vllm.ai/en/latest/cli/bench/serve"},
		need:     [][]string{{"input_lens", "output_lens"}, {"total_input_tokens", "total_output_tokens", "completed"}},
		absolute: true,
		failures: true,
		whole:    readVLLMBench,
	}
}

func readVLLMBench(f *File, d *document) (*records, error) {
	b := &benchLists{d: d, limit: f.options.MaxTokens}
	err := d.members(func(key string) error {
		switch key {
		case "input_lens":
			b.inputs = 0
			return b.tokens(&b.inputs, func(r *record, n int32) { r.input = n })
		case "output_lens":
			b.outputs = 0
			return b.tokens(&b.outputs, func(r *record, n int32) { r.output = n })
		case "start_times":
			return b.startTimes()
		case "errors":
			return b.errors()
		}
		return d.skip()
	})
	switch {
	case err != nil:
		return nil, err
	case b.inputs == 0 && b.outputs == 0 && !b.listed:
		return nil, &rowError{Name: f.name, Code: Fields, Problem: "has only totals and no requests",
			Want: "a result saved with --save-detailed"}
	case b.inputs != b.outputs || b.starts > 0 && b.starts != b.inputs || len(b.list) != b.inputs:
		return nil, &rowError{Name: f.name, Code: Fields, Problem: fmt.Sprintf("%d input_lens, %d output_lens and "+
			"%d start_times differ in length", b.inputs, b.outputs, b.starts), Want: "lists of equal length"}
	}
	t := &records{list: b.list, timeless: b.starts == 0}
	return t.sorted(), nil
}

// benchLists combines the lists of a result to requests.
type benchLists struct {
	d                       *document
	limit                   int32
	list                    []record
	inputs, outputs, starts int
	listed                  bool // the document has lists of lengths
}

func (b *benchLists) at(i int) (*record, error) {
	if i == maxRecords {
		return nil, tooMany()
	}
	for i >= len(b.list) {
		b.list = append(b.list, record{line: b.d.number})
	}
	return &b.list[i], nil
}

func (b *benchLists) tokens(n *int, set func(r *record, tokens int32)) error {
	b.listed = true
	return b.each(n, func(r *record, value []byte) {
		tokens, fault := count(value, b.limit)
		r.note(fault)
		set(r, tokens)
	})
}

func (b *benchLists) startTimes() error {
	return b.each(&b.starts, func(r *record, value []byte) {
		var fault *fault
		r.at, fault = decimal(value, inSeconds)
		r.note(fault)
	})
}

// each reads a list with one number per request and counts them.
func (b *benchLists) each(n *int, do func(r *record, value []byte)) error {
	return b.d.elements(func() error {
		value, err := b.d.scalar()
		if err != nil {
			return err
		}
		r, err := b.at(*n)
		if err == nil {
			*n++
			do(r, value)
		}
		return err
	})
}

// errors reads which requests failed.
func (b *benchLists) errors() error {
	i := 0
	return b.d.elements(func() error {
		r, err := b.at(i)
		if err != nil {
			return err
		}
		i++
		r.failed, err = b.d.nonEmpty()
		return err
	})
}
