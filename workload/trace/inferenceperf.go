package trace

// inferencePerfFormat returns the format of per_request_lifecycle_metrics.json of inference-perf: a JSON list of
// requests with start_time (seconds), info and error, in the order in which they ended. Requests with an error failed.
func inferencePerfFormat() format {
	return format{
		Format: Format{"inference-perf", "JSON: a list of requests with start_time (s), info.input_tokens, " +
			"info.output_tokens, error", "https://github.com/kubernetes-sigs/inference-perf"},
		// long prompts may precede info
		need:     [][]string{{"start_time", "end_time", "info"}, {"start_time", "end_time"}},
		absolute: true,
		failures: true,
		whole:    readInferencePerf,
	}
}

func readInferencePerf(f *File, d *document) (*records, error) {
	t := &records{}
	err := d.elements(func() error {
		if _, err := d.next(); err != nil {
			return err
		}
		if len(t.list) == maxRecords {
			return tooMany()
		}
		r := record{line: d.number}
		timed := false
		err := d.members(func(key string) error {
			switch key {
			case "start_time":
				b, err := d.scalar()
				if err != nil {
					return err
				}
				var fault *fault
				r.at, fault = decimal(b, inSeconds)
				r.note(fault)
				timed = true
				return nil
			case "info":
				return d.optionalMembers(func(key string) error { return r.info(f, d, key) })
			case "error":
				failed, err := d.nonEmpty()
				r.failed = failed
				return err
			}
			return d.skip()
		})
		if err == nil && !timed {
			r.note(faulty(Fields, nil, "has no start_time", "the keys of the first request"))
		}
		t.list = append(t.list, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return t.sorted(), nil
}

// info reads a member of info, or of its parts in newer versions.
func (r *record) info(f *File, d *document, key string) error {
	tokens := func(to *int32) error {
		b, err := d.scalar()
		if err != nil || string(b) == "null" {
			return err
		}
		n, fault := count(b, f.options.MaxTokens)
		r.note(fault)
		*to = n
		return nil
	}
	switch key {
	case "input_tokens":
		return tokens(&r.input)
	case "output_tokens":
		return tokens(&r.output)
	case "response_metrics":
		return d.optionalMembers(func(key string) error {
			if key == "output_tokens" {
				return tokens(&r.output)
			}
			return d.skip()
		})
	}
	return d.skip()
}
