package trace

import "bytes"

// burstGPT is the layout of BurstGPT: CSV with Timestamp (seconds from midnight of the first day), Model, Request
// tokens, Response tokens, Total tokens and Log Type; the third file also has Session ID and Elapsed time. Model
// and log type form the class. A request without response failed. Equal rows are different requests because the
// clock ticks in seconds.
type burstGPT struct {
	header
	classTable
	sessions                                        sessionTable
	file                                            *File
	name                                            []byte // of the row's class
	time, model, input, output, total, log, session int
}

func burstGPTFormat() format {
	return format{
		Format: Format{"burstgpt", "CSV: Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type and " +
			"optionally Session ID,Elapsed time", "https://github.com/HPMLL/BurstGPT"},
		need:     [][]string{{"timestamp", "model", "request tokens", "response tokens", "total tokens", "log type"}},
		may:      []string{"session id", "elapsed time"},
		absolute: true,
		failures: true,
		columns: func(f *File, h header) layout {
			return &burstGPT{
				header: h, file: f, sessions: newSessionTable(),
				time: h.index("timestamp"), model: h.index("model"), input: h.index("request tokens"),
				output: h.index("response tokens"),
				total:  h.index("total tokens"), log: h.index("log type"), session: h.index("session id"),
			}
		},
	}
}

func (b *burstGPT) parse(line []byte, r *Row, t *instant) (f *fault) {
	if f := b.split(line); f != nil {
		return f
	}
	if *t, f = decimal(b.fields[b.time], inSeconds); f != nil {
		return f
	}
	if f = b.lengths(r, b.input, b.output); f != nil {
		return f
	}
	total, f := count(b.fields[b.total], 1<<31-1)
	if f != nil {
		return f
	}
	if total != r.InputTokens+r.OutputTokens {
		b.file.countNoted(Total)
	}
	if f = b.class(r); f != nil {
		return f
	}
	return b.sessions.of(b.field(b.session), r)
}

func (b *burstGPT) class(r *Row) (f *fault) {
	model, log := b.fields[b.model], b.fields[b.log]
	known := (string(model) == "ChatGPT" || string(model) == "GPT-4") &&
		(string(log) == "Conversation log" || string(log) == "API log")
	b.name = append(append(append(b.name[:0], model...), ' '), log...)
	if !known {
		if b.file.options.Mode != Fix {
			return faulty(Class, b.name, "is an unknown kind of request",
				"ChatGPT or GPT-4 with Conversation log or API log, or mode fix")
		}
		b.file.countFixed(Class)
	}
	r.Class, f = b.of(bytes.TrimSpace(b.name))
	return f
}

func (b *burstGPT) accept(r *Row) { b.sessions.accept(b.field(b.session), r) }
