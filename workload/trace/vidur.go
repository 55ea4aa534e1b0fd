package trace

// vidur is the layout of the traces of vidur and sarathi-serve: CSV with num_prefill_tokens and num_decode_tokens,
// and optionally the arrival in seconds.
type vidur struct {
	header
	time, input, output int
}

func vidurFormat() format {
	return format{
		Format: Format{"vidur", "CSV: num_prefill_tokens,num_decode_tokens and optionally arrived_at (s); without " +
			"it a rate makes the arrivals", "https://github.com/microsoft/vidur"},
		need: [][]string{{"num_prefill_tokens", "num_decode_tokens"}},
		may:  []string{"arrived_at", "num_total_tokens", "pd_ratio"},
		columns: func(_ *File, h header) layout {
			return &vidur{header: h, time: h.index("arrived_at"), input: h.index("num_prefill_tokens"),
				output: h.index("num_decode_tokens")}
		},
	}
}

func (v *vidur) isTimeless() bool { return v.time < 0 }

func (v *vidur) parse(line []byte, r *Row, t *instant) (f *fault) {
	if f := v.split(line); f != nil {
		return f
	}
	*t = instant{}
	if v.time >= 0 {
		if *t, f = decimal(v.fields[v.time], inSeconds); f != nil {
			return f
		}
	}
	return v.lengths(r, v.input, v.output)
}
