package record

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"clifftop/experiments/live/text"
)

// Options says what is recorded, and where.
type Options struct {
	// Upstream is the server, such as http://10.0.0.7:8000. Its path is put before that of requests.
	Upstream *url.URL
	// Transport carries requests to it; nil is a copy of http.DefaultTransport without limits of connections.
	Transport http.RoundTripper
	// Out gets the trace.
	Out io.Writer
	// Failed, if not nil, is called once if the trace cannot be written. Requests are forwarded all the same.
	Failed func(error)
	// Tokenizer counts the tokens of prompts, and cuts them into the blocks that are hashed; nil is [text.Estimate].
	Tokenizer text.Tokenizer
	// Salt keys the hashes; nil is random.
	Salt []byte
	// MaxBody is the size of a request's body in bytes; 0 is 64 MiB.
	MaxBody int64
	// BodyTimeout is how long a client may take to send it; 0 is a minute.
	BodyTimeout time.Duration
	// Log gets errors of connections; nil drops them.
	Log *log.Logger
}

// Recorder is the handler of the proxy. Call Close at the end.
type Recorder struct {
	options Options
	proxy   *httputil.ReverseProxy

	mu      sync.Mutex
	more    sync.Cond
	begun   time.Time // arrival of the first request
	next    int64     // number of the next request
	queue   []step
	waiting int // bytes of the bodies in queue
	closed  bool
	done    chan struct{}

	running sync.WaitGroup // handlers

	counts counts
	rows   *rows // of the goroutine of write
}

// counts are the numbers of requests by outcome.
type counts struct{ completed, cancelled, rejected, failed, dropped atomic.Int64 }

// step is the arrival or the end of a request.
type step struct {
	number  int64
	body    []byte // of a request that arrived
	session string
	lost    bool      // there is no room for the body
	ended   *exchange // nil at the arrival
}

// Limits of the rows that wait to be written. Requests beyond are forwarded without a row, and counted.
const (
	maxQueue = 1 << 17
	maxBytes = 512 << 20
)

// New returns a recorder. It begins to write.
func New(o Options) (*Recorder, error) {
	o.MaxBody, o.BodyTimeout = cmp.Or(o.MaxBody, 64<<20), cmp.Or(o.BodyTimeout, time.Minute)
	if o.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 1<<14
		t.DisableCompression = true // the body passes as it is
		t.Proxy = nil
		o.Transport = t
	}
	if o.Log == nil {
		o.Log = log.New(io.Discard, "", 0)
	}
	w, err := newRows(&o)
	if err != nil {
		return nil, err
	}
	r := &Recorder{options: o, done: make(chan struct{}), rows: w}
	r.more.L = &r.mu
	r.proxy = &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(o.Upstream)
			// Headers of proxies that the client sent pass; this one adds none.
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if v := p.In.Header[name]; v != nil {
					p.Out.Header[name] = v
				}
			}
		},
		Transport: o.Transport, FlushInterval: -1, ErrorLog: o.Log,
		ModifyResponse: measure, ErrorHandler: unreachable, BufferPool: &buffers{},
	}
	go r.write()
	return r, nil
}

// buffers are those in which responses pass. Events are small.
type buffers struct{ pool sync.Pool }

// Get implements [httputil.BufferPool].
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, 8<<10)
}

// Put implements [httputil.BufferPool].
func (b *buffers) Put(p []byte) { b.pool.Put(&p) }

// recorded reports whether requests to a path ask for output.
func recorded(path string) bool {
	for _, end := range []string{"/v1/completions", "/v1/chat/completions", "/generate"} {
		if strings.HasSuffix(path, end) {
			return true
		}
	}
	return false
}

// exchangeKey is the key of the exchange in the context of a request.
type exchangeKey struct{}

// ServeHTTP implements [http.Handler].
func (r *Recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.Method != http.MethodPost || !recorded(q.URL.Path) {
		r.proxy.ServeHTTP(w, q)
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(r.options.BodyTimeout)) // a test's writer has none
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, r.options.MaxBody))
	_ = control.SetReadDeadline(time.Time{})
	if err != nil {
		status, why := http.StatusBadRequest, "the body ended early"
		if errors.Is(err, os.ErrDeadlineExceeded) {
			status, why = http.StatusRequestTimeout, fmt.Sprintf("the body did not arrive within %v",
				r.options.BodyTimeout)
		}
		if e := (*http.MaxBytesError)(nil); errors.As(err, &e) {
			status = http.StatusRequestEntityTooLarge
			why = fmt.Sprintf("the body is larger than %d bytes, which clifftop record forwards at most", e.Limit)
		}
		fail(w, status, why)
		return
	}
	r.running.Add(1)
	defer r.running.Done()
	x := r.arrive(body, q.Header)
	defer r.end(x, q)
	q = q.WithContext(context.WithValue(q.Context(), exchangeKey{}, x))
	q.Body, q.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.proxy.ServeHTTP(w, q)
	x.whole = true // ServeHTTP panics if the response breaks off
}

func (r *Recorder) arrive(body []byte, h http.Header) *exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := &exchange{number: r.next, wall: time.Now()}
	if r.next == 0 {
		r.begun = x.wall
	}
	x.at = x.wall.Sub(r.begun)
	r.next++
	if r.closed {
		return x
	}
	if len(r.queue) >= maxQueue || r.waiting+len(body) > maxBytes {
		r.put(step{number: x.number, lost: true})
		return x
	}
	r.waiting += len(body)
	r.put(step{number: x.number, body: body, session: h.Get("X-Session-ID")})
	return x
}

func (r *Recorder) put(s step) {
	r.queue = append(r.queue, s)
	r.more.Signal()
}

// end hands an exchange that has ended to the writer.
func (r *Recorder) end(x *exchange, q *http.Request) {
	x.took = time.Since(x.wall)
	x.left = q.Context().Err() != nil && !x.complete()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.put(step{number: x.number, ended: x})
	}
}

// write writes requests, until Close.
func (r *Recorder) write() {
	defer close(r.done)
	flush := time.NewTicker(time.Second)
	defer flush.Stop()
	go func() { // wakes the loop once a second
		for {
			select {
			case <-flush.C:
				r.more.Signal()
			case <-r.done:
				return
			}
		}
	}()
	var list []step
	flushed := time.Now()
	for {
		r.mu.Lock()
		if len(r.queue) == 0 && !r.closed {
			r.more.Wait()
		}
		list, r.queue = r.queue, list[:0]
		r.waiting = 0
		closed := r.closed
		r.mu.Unlock()
		for i := range list {
			r.step(&list[i])
			list[i] = step{}
		}
		if closed {
			r.rows.close()
			return
		}
		if now := time.Now(); now.Sub(flushed) >= time.Second {
			r.rows.flush()
			flushed = now
		}
	}
}

func (r *Recorder) step(s *step) {
	switch {
	case s.lost:
		r.rows.arrive(s.number, nil)
		return
	case s.ended == nil:
		r.rows.arrive(s.number, parse(s.body, s.session))
		return
	}
	s.ended.answer.finish(s.ended.took)
	if r.rows.end(s.ended) {
		r.count(s.ended)
	} else {
		r.counts.dropped.Add(1)
	}
}

func (r *Recorder) count(x *exchange) {
	switch x.outcome() {
	case completed:
		r.counts.completed.Add(1)
	case cancelled:
		r.counts.cancelled.Add(1)
	case rejected:
		r.counts.rejected.Add(1)
	default:
		r.counts.failed.Add(1)
	}
}

// Close waits for the requests that are forwarded, and writes their rows. No further ones may begin.
func (r *Recorder) Close() {
	r.running.Wait()
	r.mu.Lock()
	r.closed = true
	r.more.Signal()
	r.mu.Unlock()
	<-r.done
}

// Failed reports whether the trace could not be written. Call it after Close.
func (r *Recorder) Failed() bool { return r.rows.broken }

// Summary says in words how many requests there were, such as "12 completed, 1 cancelled".
func (r *Recorder) Summary() string {
	var parts []string
	for _, c := range []struct {
		n    int64
		what string
	}{{r.counts.completed.Load(), "completed"}, {r.counts.cancelled.Load(), "cancelled by clients"},
		{r.counts.rejected.Load(), "rejected"}, {r.counts.failed.Load(), "failed"},
		{r.counts.dropped.Load(), "without a row, because they could not be kept or read"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if len(parts) == 0 {
		return "no requests"
	}
	return strings.Join(parts, ", ")
}

// measure puts a meter around the response of a recorded request.
func measure(r *http.Response) error {
	x, ok := r.Request.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil
	}
	r.Body = newMeter(x, r)
	return nil
}

// unreachable answers a request that did not reach the server, or whose client has gone.
func unreachable(w http.ResponseWriter, q *http.Request, err error) {
	if x, ok := q.Context().Value(exchangeKey{}).(*exchange); ok {
		x.status = http.StatusBadGateway
	}
	fail(w, http.StatusBadGateway, "clifftop record cannot reach the server: "+err.Error())
}

// fail answers with OpenAI's form of errors.
func fail(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"message":%q,"type":"proxy_error","param":null,"code":%d}}`, why, status)
}
