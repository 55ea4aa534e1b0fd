package measured

import "time"

// dynamoFormat are request traces of Dynamo, one event per line. Times are milliseconds since 1970; total_time_ms and
// ttft_ms count from the arrival at the front end.
// Source: ai-dynamo/dynamo lib/llm/src/request_trace/types.rs.
func dynamoFormat() format {
	return format{
		Format: Format{Name: "dynamo-requests", Layout: "JSON lines of Dynamo with DYN_REQUEST_TRACE=1 " +
			"(dynamo.request.trace.v1)",
			Requests: true, Source: "https://github.com/ai-dynamo/dynamo"},
		is: func(f *file) bool {
			return len(f.lines) > 0 && f.lines[0].event().text("schema") == "dynamo.request.trace.v1"
		},
		read: readDynamo,
	}
}

// event is the record in its envelope, or the bare record.
func (o object) event() object {
	if o.has("event") {
		return o.get("event")
	}
	return o
}

func readDynamo(f *file, r *Result) {
	run := Run{Name: "trace"}
	unknown := 0
	for _, l := range f.lines {
		e := l.event()
		if e.text("event_type") != "request_end" {
			continue
		}
		o := e.get("request")
		input, output, total := o.tokens("input_tokens"), o.tokens("output_tokens"), o.number("total_time_ms")
		if input == 0 {
			input = o.get("replay").tokens("input_length")
		}
		if input == 0 || !o.has("output_tokens") {
			unknown++
			continue
		}
		q := Request{Input: input, Output: output, Failed: output < 1,
			TTFT: time.Duration(o.value("ttft_ms") * 1e6), E2E: time.Duration(or(total, 0) * 1e6),
			Session: e.get("agent_context").text("session_id")}
		if at := o.number("request_received_ms"); at != nil {
			q.Arrival, q.Timed = time.Duration(*at*1e6), true
		} else if end := e.number("event_time_unix_ms"); end != nil && total != nil {
			q.Arrival, q.Timed = time.Duration((*end-*total)*1e6), true
		}
		run.Model = o.text("model")
		run.Requests = append(run.Requests, q)
	}
	if unknown > 0 {
		r.note("%d requests without input_tokens or output_tokens are left out", unknown)
	}
	oneTurn(run.Requests)
	r.Runs = []Run{run}
}

// dynamoIterationsFormat are forward-pass traces of Dynamo: the state of an engine at single iterations.
// Source: ai-dynamo/dynamo, documentation of forward pass metrics.
func dynamoIterationsFormat() format {
	return format{
		Format: Format{Name: "dynamo-iterations", Layout: "JSON lines of Dynamo with DYN_FPM_TRACE=1 " +
			"(dynamo.fpm.trace.v1)",
			Series: true, Source: "https://github.com/ai-dynamo/dynamo"},
		is: func(f *file) bool {
			return len(f.lines) > 0 && f.lines[0].event().text("schema") == "dynamo.fpm.trace.v1"
		},
		read: func(f *file, r *Result) {
			run := Run{Name: "iterations"}
			for _, l := range f.lines {
				e := l.event()
				m := e.get("fpm")
				running := m.get("scheduled_requests")
				waiting := m.get("queued_requests")
				s := Sample{At: time.Duration(e.value("observed_at_unix_ms") * 1e6), Replica: m.text("worker_id"),
					Running: sum(running.number("num_prefill_requests"), running.number("num_decode_requests")),
					Waiting: sum(waiting.number("num_prefill_requests"), waiting.number("num_decode_requests"))}
				if wall := m.value("wall_time"); wall > 0 {
					s.PromptTokensPerS = running.scaled(1/wall, "sum_prefill_tokens")
					s.OutputTokensPerS = running.scaled(1/wall, "num_decode_requests")
				}
				run.Series = append(run.Series, s)
			}
			run.sortSeries()
			r.Runs = []Run{run}
		},
	}
}

// sum adds what is known.
func sum(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	x := *a + *b
	return &x
}
