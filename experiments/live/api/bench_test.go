package api

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"clifftop/experiments/live"
	"clifftop/sim/event"
	"clifftop/workload"
)

// memory is a stream whose chunks are all due.
type memory struct{ left int32 }

func (m *memory) Next(context.Context) (live.Chunk, error) {
	if m.left == 0 {
		return live.Chunk{}, io.EOF
	}
	m.left--
	return live.Chunk{Tokens: 1}, nil
}

func (m *memory) Buffered() int        { return 0 } // each chunk is written by itself
func (m *memory) Close()               {}
func (m *memory) Record() event.Record { return event.Record{} }

// discard is a response that is dropped.
type discard struct {
	header http.Header
	writes int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(b []byte) (int, error) { d.writes++; return len(b), nil }
func (d *discard) FlushError() error           { return nil }

// BenchmarkChunk measures a chunk of a stream in the handler, without the network. Each operation is one request of
// 1,000 chunks.
func BenchmarkChunk(b *testing.B) {
	const chunks = 1000
	for name, k := range map[string]struct{ path, body string }{
		"completions": {"/v1/completions", `"prompt": "Hello", "max_tokens": 1000`},
		"chat":        {"/v1/chat/completions", `"messages": [{"role": "user", "content": "a"}], "max_tokens": 1000`},
	} {
		b.Run(name, func(b *testing.B) {
			x := newServer(b, small, 1, nil)
			x.send = func(r workload.Request) stream { return &memory{r.OutputTokens} }
			h := x.Handler(0)
			body := "{" + k.body + `, "ignore_eos": true, "stream": true, "stream_options": {"include_usage": true}}`
			b.ReportAllocs()
			writes := 0
			for b.Loop() {
				r, _ := http.NewRequest("POST", k.path, strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				w := &discard{header: http.Header{}}
				h.ServeHTTP(w, r)
				writes += w.writes
			}
			if writes < chunks*b.N {
				b.Fatalf("%d writes for %d requests", writes, b.N)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/chunks, "ns/chunk")
		})
	}
}
