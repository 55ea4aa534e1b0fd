package trace

import "clifftop/workload"

// azure is the layout of the Azure LLM inference traces of 2023, 2024 and (without images) 2025:
// CSV with the columns TIMESTAMP, ContextTokens and GeneratedTokens. Stamps are calendar times with or
// without fraction and zone, mixed in one file; arrivals count from the first row.
type azure struct {
	header
	stamps              stamps
	time, input, output int
}

func newAzure(h header) *azure {
	return &azure{header: h, time: h.index("timestamp"), input: h.index("contexttokens"), output: h.index("generatedtokens")}
}

func (a *azure) absolute() bool { return true }

func (a *azure) parse(line []byte, r *workload.Request, t *instant) (f *fault) {
	if f := a.split(line); f != nil {
		return f
	}
	if *t, f = a.stamps.parse(a.fields[a.time]); f != nil {
		return f
	}
	if r.InputTokens, f = count(a.fields[a.input], a.limit); f != nil {
		return f
	}
	r.OutputTokens, f = count(a.fields[a.output], a.limit)
	return f
}
