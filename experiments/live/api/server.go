package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"mime"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"clifftop/experiments/live/text"
	"clifftop/workload"
)

// Server answers requests over HTTP.
type Server struct {
	limits      Limits
	names       names
	context     int32 // the longest sequence, in tokens
	template    *text.Template
	filler      *text.Filler
	index       *text.Index
	tokenizer   text.Tokenizer
	lengths     *lengths
	replicas    *Replicas
	peers       peers
	send        func(workload.Request) stream
	busy        int // the status of requests that exceed an admission limit
	incremental bool
	fingerprint string
	info        serverInfo
	guard       guard
	hooks       hooks
	log         *log.Logger

	submitting sync.Mutex
	next       int64 // number of the next request

	session  string // begins the IDs of responses
	calls    atomic.Uint64
	active   atomic.Int64 // calls that are being answered
	draining atomic.Bool
}

// hooks are the functions of [Options] with the same names.
type hooks struct {
	note  func(*workload.Content, []uint32)
	sent  func(Sent)
	mount func(replica int32) map[string]http.Handler
}

// New returns the server of a scenario.
func New(o Options) (*Server, error) {
	u := o.Live.Setup()
	tokens := o.Tokenizer
	if tokens == nil {
		tokens = text.Estimate{}
	}
	s := &Server{
		limits: o.Limits, names: newNames(u, o.Models), context: u.LongestSequence(), tokenizer: tokens,
		template: text.NewTemplate(tokens, int32(u.Pools[0].Deployment.LLM.Encoder.TokensPerImage)),
		index:    text.NewIndex(o.IndexBytes), replicas: o.Replicas, peers: newPeers(u),
		hooks: hooks{o.Note, o.Sent, o.Mount}, incremental: o.Incremental,
		busy: o.BusyStatus, info: infoOf(u, o.Version), guard: newGuard(o.Keys, o.AllowOrigins),
		send: func(r workload.Request) stream { return o.Live.Submit(r) }, log: o.Log,
	}
	s.limits.fill()
	if s.log == nil {
		s.log = log.New(io.Discard, "", 0)
	}
	switch s.busy {
	case 0:
		s.busy = http.StatusTooManyRequests
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		return nil, fmt.Errorf("the status of a full queue is %d (want 429 or 503)", s.busy)
	}
	var err error
	if s.filler, err = text.NewFiller(tokens, u.Scenario.Run.Seed); err != nil {
		return nil, err
	}
	if s.lengths, err = newLengths(u); err != nil {
		return nil, err
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	s.session = hex.EncodeToString(random[:])
	sum := fnv.New64a()
	machine, err := json.Marshal(u.Pools[0].Deployment)
	if err != nil {
		return nil, err
	}
	fmt.Fprint(sum, s.names.models, o.Version, u.Scenario.Run.Seed, string(machine))
	s.fingerprint = fmt.Sprintf("fp_%010x", sum.Sum64()>>24)
	return s, nil
}

// Output returns token k of the output of a request, by its number in the simulation.
func (s *Server) Output(request int64, k int) uint32 {
	id, _ := s.filler.Token(request, k)
	return id
}

// AdapterName returns the name of a LoRA adapter by its number, from 1.
func (s *Server) AdapterName(number int32) string { return s.names.adapter(number) }

// endpoint answers a request to a replica by its number from 1, or 0, which leaves the choice to the routers.
type endpoint func(w http.ResponseWriter, r *http.Request, replica int32) error

// route is an endpoint and where it is.
type route struct {
	methods, path string
	answer        endpoint
	open          bool // it needs no key
}

// routes returns the endpoints. docs/serve.md lists them.
func (s *Server) routes() []route {
	return []route{
		{"POST", "/v1/completions", s.completions, false},
		{"POST", "/v1/chat/completions", s.chat, false},
		{"GET", "/v1/models", s.models, false},
		{"GET", "/v1/models/{name...}", s.model, false},
		{"POST", "/tokenize", s.tokenize, false},
		{"POST", "/detokenize", s.detokenize, false},
		{"POST", "/generate", s.generate, false},
		{"GET", "/get_server_info", s.serverInfo, false},
		{"GET", "/server_info", s.serverInfo, false},
		{"GET", "/get_model_info", s.modelInfo, false},
		{"GET", "/model_info", s.modelInfo, false},
		{"GET POST", "/health", s.health, true},
		{"GET POST", "/ping", s.health, true},
		{"GET POST", "/health_generate", s.health, true},
		{"GET", "/version", s.version, true},
		{"GET", "/load", s.load, true},
	}
}

// Handler returns the handler of a port. Requests go to the replica with a number from 1; with 0 they go through the
// scenario's routers.
func (s *Server) Handler(replica int32) http.Handler {
	mux := http.NewServeMux()
	for _, x := range s.routes() {
		f, allowed := x.answer, strings.Fields(x.methods)
		if !x.open {
			f = s.guard.locked(f)
		}
		for _, method := range allowed {
			mux.Handle(method+" "+x.path, s.answer(f, replica))
		}
		mux.Handle(x.path, s.answer(notAllowed(allowed), replica))
	}
	var more map[string]http.Handler
	if s.hooks.mount != nil {
		more = s.hooks.mount(replica)
	}
	for pattern, h := range more {
		mux.Handle(pattern, h)
	}
	if more["/"] == nil {
		mux.Handle("/", s.answer(notFound, replica))
	}
	return s.guard.wrap(mux)
}

func notFound(_ http.ResponseWriter, r *http.Request, _ int32) error {
	return &failure{status: http.StatusNotFound, message: "there is no " + nameOf(r.URL.Path)}
}

func notAllowed(methods []string) endpoint {
	return func(w http.ResponseWriter, r *http.Request, _ int32) error {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		return &failure{status: http.StatusMethodNotAllowed,
			message: nameOf(r.Method) + " is not allowed here (want " + strings.Join(methods, " or ") + ")"}
	}
}

func (s *Server) answer(f endpoint, replica int32) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := f(w, r, replica)
		switch {
		case err == nil, errors.Is(err, errGone):
		case errors.Is(err, errCut):
			panic(http.ErrAbortHandler)
		default:
			asFailure(err).write(w)
		}
	})
}

func (s *Server) body(w http.ResponseWriter, r *http.Request, to any) error {
	// Web pages of other origins may send other types without being asked, so vLLM allows only this one, too.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &failure{status: http.StatusUnsupportedMediaType,
			message: "the Content-Type is not application/json"}
	}
	tooLarge := &failure{status: http.StatusRequestEntityTooLarge,
		message: fmt.Sprintf("the body is too large (want at most %d bytes)", s.limits.Body)}
	if r.ContentLength > s.limits.Body {
		return tooLarge
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(s.limits.BodyTimeout)) // a writer of a test has none
	data := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), 1<<20)+bytes.MinRead))
	_, err := data.ReadFrom(http.MaxBytesReader(w, r.Body, s.limits.Body)) // to its end, so that a close is noticed
	if err != nil {
		if e := (*http.MaxBytesError)(nil); errors.As(err, &e) {
			return tooLarge
		}
		w.Header().Set("Connection", "close")
		return &failure{status: http.StatusRequestTimeout, message: "the body ended early or came too slowly"}
	}
	_ = control.SetReadDeadline(time.Time{})
	return decode(data.Bytes(), to)
}

// newCall returns a call without prompts.
func (s *Server) newCall(p *params, r *http.Request, replica int32, prefix string) *call {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return &call{server: s, replica: replica, p: *p, id: s.identify(prefix, r.Header), began: time.Now(), local: local}
}

// serve sends the requests of a call and answers it.
func (c *call) serve(w http.ResponseWriter, r *http.Request) error {
	if c.server.draining.Load() {
		return &failure{status: http.StatusServiceUnavailable, message: "the server is shutting down"}
	}
	c.server.active.Add(1)
	defer c.server.active.Add(-1)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if err := c.start(); err != nil {
		return err
	}
	defer c.finish()
	if c.p.stream {
		return c.stream(ctx, w)
	}
	return c.whole(ctx, w)
}
