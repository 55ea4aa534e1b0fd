package api

import (
	"cmp"
	"log"
	"net/http"
	"time"

	"clifftop/experiments/live"
	"clifftop/experiments/live/text"
	"clifftop/workload"
)

// Options says what is served, to whom, and within which limits. Only Live is required.
type Options struct {
	// Live runs the scenario. It must run until [Server.Serve] has returned.
	Live *live.Server
	// Tokenizer turns text into tokens; nil is [text.Estimate].
	Tokenizer text.Tokenizer
	// IndexBytes is the memory for earlier prompts; 0 is [text.DefaultIndexBytes].
	IndexBytes int64
	// Models are the names of the model. The first one is that in responses. Empty means the scenario's name of the
	// model; its aliases are accepted too.
	Models []string
	// Version is the answer of /version.
	Version string
	// Keys are the API keys; without any, requests need none.
	Keys []string
	// AllowOrigins are the origins of web pages that may read responses, or "*" for all; empty allows none.
	AllowOrigins []string
	// Mount, if not nil, returns more handlers of a port by their [http.ServeMux] patterns, such as "GET /metrics".
	// They need no key. The replica is the number of the one that the port serves, from 1, or 0.
	Mount func(replica int32) map[string]http.Handler
	// Replicas knows which replicas are ready, for /health; nil means that all are. It must be among the observers of
	// Live.
	Replicas *Replicas
	// Note, if not nil, is called with each prompt before its request is submitted. The tokens do not change after it.
	Note func(c *workload.Content, prompt []uint32)
	// Sent, if not nil, is called for each request after it was submitted, in order of their numbers.
	Sent func(Sent)
	// BusyStatus is the HTTP status of requests that exceed an admission limit: 429, also if 0, or 503.
	BusyStatus int
	// Incremental makes chunks of SGLang's /generate hold new text and tokens only, as its
	// --incremental-streaming-output does; otherwise each chunk repeats the whole output so far.
	Incremental bool
	// Log gets the errors of connections; nil drops them.
	Log *log.Logger
	Limits
}

// Sent is a request that was submitted.
type Sent struct {
	// ID is its number in the simulation.
	ID int64
	// Outputs is the number of outputs that the HTTP request asks for, for each prompt.
	Outputs int
	// MaxTokens is the limit of the output in tokens; 0 for none but the context length.
	MaxTokens int
	// Limited means that the output ends at a limit, not by itself.
	Limited bool
}

// Limits protect the server. A limit that is 0 has its default.
type Limits struct {
	// Body is the size of a request's body in bytes; the default is 64 MiB.
	Body int64
	// Header is the size of a request's header in bytes; the default is 64 KiB.
	Header int
	// Connections is the number of connections at a time, over all ports; the default is 16,384. Others get 503.
	Connections int
	// HeaderTimeout and BodyTimeout are how long a client may take to send the header, by default 10 s, and the body,
	// by default 60 s.
	HeaderTimeout, BodyTimeout time.Duration
	// WriteTimeout is how long a client may leave a chunk unread when its buffers are full; the default is 30 s. The
	// request is aborted then.
	WriteTimeout time.Duration
	// IdleTimeout closes a connection without requests; the default is 2 minutes.
	IdleTimeout time.Duration
	// Grace is how long requests may go on after the end of the server began; the default is 15 s.
	Grace time.Duration
	// Hold is how long the header of a stream waits for the first chunk, so that a rejection has a status of its own;
	// the default is 1 s.
	Hold time.Duration
}

func (l *Limits) fill() {
	l.Body = cmp.Or(l.Body, 64<<20)
	l.Header = cmp.Or(l.Header, 64<<10)
	l.Connections = cmp.Or(l.Connections, 16<<10)
	l.HeaderTimeout = cmp.Or(l.HeaderTimeout, 10*time.Second)
	l.BodyTimeout = cmp.Or(l.BodyTimeout, 60*time.Second)
	l.WriteTimeout = cmp.Or(l.WriteTimeout, 30*time.Second)
	l.IdleTimeout = cmp.Or(l.IdleTimeout, 2*time.Minute)
	l.Grace = cmp.Or(l.Grace, 15*time.Second)
	l.Hold = cmp.Or(l.Hold, time.Second)
}
