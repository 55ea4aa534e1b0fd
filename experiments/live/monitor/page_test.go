package monitor_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"clifftop/experiments"
	"clifftop/experiments/live"
	"clifftop/experiments/live/monitor"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// served is a live server under a monitor that sends the state a hundred times a second, until the test ends.
func served(t testing.TB, text string, o monitor.Options) (*monitor.Monitor, *live.Server, context.Context) {
	t.Helper()
	u := resolved(t, text)
	m := monitor.New(u, o)
	monitor.Quicken(m)
	s, err := live.New(u, live.Options{Speed: o.Speed, Observers: []event.Observer{m.Observer()}})
	if err != nil {
		t.Fatal(err)
	}
	m.Follow(s)
	ctx, stop := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := s.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	wait.Go(func() { m.Run(ctx) })
	t.Cleanup(func() { stop(); wait.Wait() })
	return m, s, ctx
}

// send sends a request whose client reads its output until ctx is done.
func send(ctx context.Context, s *live.Server, input, output int32) {
	stream := s.Submit(workload.Request{InputTokens: input, OutputTokens: output})
	go func() {
		for {
			if _, err := stream.Next(ctx); err != nil {
				stream.Close()
				return
			}
		}
	}()
}

// message is a server-sent event.
type message struct {
	kind string
	data []byte
}

// next reads the next event of a stream.
func next(t testing.TB, r *bufio.Reader) (m message) {
	t.Helper()
	for {
		text, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		text = strings.TrimSuffix(text, "\n")
		if kind, ok := strings.CutPrefix(text, "event: "); ok {
			m.kind = kind
		} else if data, ok := strings.CutPrefix(text, "data: "); ok {
			m.data = []byte(data)
		} else if text == "" {
			return m
		}
	}
}

// web is a server of a handler, until the test ends and all streams from it are closed.
func web(t testing.TB, h http.Handler) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// open opens the stream of events of a replica.
func open(t testing.TB, url string) *bufio.Reader {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Body.Close() })
	if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s, %v", r.Status, r.Header)
	}
	return bufio.NewReader(r.Body)
}

// snapshot is a part of what a page gets.
type snapshot struct {
	Running, Waiting, Used, Blocks int
	Tokens                         float64
	Latencies                      struct{ TTFT, TPOT, ITL []float64 }
	Replicas                       []struct {
		State                  string
		Running, Waiting, Used int
	}
	Batch struct {
		Replica          int
		Running, Waiting [][7]float64
		More, Behind     int
	}
}

// TestEvents shows the batch, the queue and the rates of the replica that a page asks for.
func TestEvents(t *testing.T) {
	m, s, ctx := served(t, "gpu: h100\nmodel: llama-3.1-8b\nengine: {max_num_seqs: 4}\n"+
		"deployment: {replicas: 2, router: round-robin}", monitor.Options{Speed: 4})
	web := web(t, m.Events())
	send(ctx, s, 100, 2)
	send(ctx, s, 100, 2)
	for range 12 { // six to each replica: four run and two wait
		send(ctx, s, 100, 2000)
	}
	r := open(t, web.URL+"?replica=1")
	if hello := next(t, r); hello.kind != "hello" || !bytes.Contains(hello.data, []byte(`"name":"replica 2"`)) {
		t.Errorf("the first event is %s %s", hello.kind, hello.data)
	}
	var got snapshot
	points := 0
	for range 600 { // six seconds at most
		e := next(t, r)
		if e.kind == "point" {
			points++
		}
		if e.kind != "state" {
			continue
		}
		got = snapshot{}
		if err := json.Unmarshal(e.data, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Batch.Running) == 4 && got.Batch.Running[0][5] > 3 && points > 0 && got.Tokens > 0 {
			break
		}
	}
	if got.Running != 8 || got.Waiting != 4 || got.Tokens <= 0 || points == 0 || got.Used == 0 || got.Blocks <= got.Used {
		t.Errorf("%d run, %d wait, %v tokens/s, %d points, %d of %d blocks", got.Running, got.Waiting, got.Tokens, points,
			got.Used, got.Blocks)
	}
	for name, values := range map[string][]float64{"TTFT": got.Latencies.TTFT, "TPOT": got.Latencies.TPOT,
		"ITL": got.Latencies.ITL} {
		if len(values) != 3 || values[0] <= 0 || values[2] < values[0] {
			t.Errorf("%s is %v", name, values)
		}
	}
	b := got.Batch
	if b.Replica != 1 || len(b.Running) != 4 || len(b.Waiting) != 2 {
		t.Fatalf("the batch is %+v", b)
	}
	for _, q := range b.Running {
		if int(q[0])%2 != 1 || q[1] != 100 || q[3] != 100 || q[4] != 2000 || q[5] < 1 || q[6] <= 0 {
			t.Errorf("a running sequence is %v", q)
		}
	}
	for _, q := range b.Waiting {
		if q[1] != 100 || q[3] != 0 || q[5] != 0 {
			t.Errorf("a waiting sequence is %v", q)
		}
	}
	if p := got.Replicas[1]; p.State != "ready" || p.Running != 4 || p.Waiting != 2 || p.Used == 0 {
		t.Errorf("the replica is %+v", p)
	}
}

// lists compares the batch and the queue of each replica with the levels that the simulation reports.
type lists struct {
	event.Ignore
	m              *monitor.Monitor
	off, all, most int
}

func (l *lists) OfReplica(i int) event.Observer { return listsOf{l: l, i: i} }

type listsOf struct {
	event.Ignore
	l *lists
	i int
}

func (o listsOf) Levels(_ clock.Time, levels *event.Levels) {
	running, waiting, _, _ := monitor.Lists(o.l.m, o.i)
	off := max(running-levels.Running, levels.Running-running) + max(waiting-levels.Waiting, levels.Waiting-waiting)
	o.l.off += off
	o.l.all += levels.Running + levels.Waiting
	o.l.most = max(o.l.most, off)
}

// TestLists has those requests in a batch and a queue that are there. A few differ for a moment: records are reported
// up to two iterations before their end, steps when they are scheduled, and a prompt's KV is sent before its request
// waits for decode.
func TestLists(t *testing.T) {
	for name, text := range scenarios {
		t.Run(name, func(t *testing.T) {
			u := resolved(t, text)
			m := monitor.New(u, monitor.Options{})
			l := &lists{m: m}
			if _, err := experiments.RunSetup(context.Background(), u, experiments.RunOptions{
				Observers: []event.Observer{m.Observer(), l}}); err != nil {
				t.Fatal(err)
			}
			if l.all < 1000 || float64(l.off) > 0.1*float64(l.all) {
				t.Errorf("%d of %d requests are not where they are, %d at most", l.off, l.all, l.most)
			}
			for i := range len(u.StandingFleet(false).Replicas) {
				if running, waiting, _, _ := monitor.Lists(m, i); running+waiting > 0 {
					t.Errorf("at the end %d run and %d wait at replica %d", running, waiting, i)
				}
			}
			t.Logf("%d of %d, %d at most", l.off, l.all, l.most)
		})
	}
}

// stuck is a viewer that takes nothing.
type stuck struct {
	http.ResponseWriter
	came, release chan struct{}
}

func (s *stuck) Header() http.Header { return http.Header{} }
func (s *stuck) WriteHeader(int)     {}
func (s *stuck) Write(p []byte) (int, error) {
	close(s.came)
	<-s.release
	return 0, io.ErrClosedPipe
}

// TestViewers takes so many viewers, drops those that are too slow, and lets the others be.
func TestViewers(t *testing.T) {
	m, _, ctx := served(t, "run: {requests: 1}", monitor.Options{Viewers: 2})
	events := m.Events()
	web := web(t, events)
	slow := &stuck{came: make(chan struct{}), release: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		events.ServeHTTP(slow, httptest.NewRequestWithContext(ctx, "GET", "/live/events", nil))
		close(ended)
	}()
	<-slow.came
	quick := open(t, web.URL)
	next(t, quick)
	status := func() int {
		r, err := http.Get(web.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		return r.StatusCode
	}
	if got := status(); got != http.StatusServiceUnavailable {
		t.Errorf("a third viewer gets %d", got)
	}
	got := 0
	for range 1000 { // until the slow one is dropped
		next(t, quick)
		if got = status(); got == http.StatusOK {
			break
		}
	}
	if got != http.StatusOK {
		t.Errorf("the slow viewer is not dropped")
	}
	close(slow.release)
	<-ended
}

// TestEnd closes the streams of pages when the server ends.
func TestEnd(t *testing.T) {
	m := monitor.New(resolved(t, "run: {requests: 1}"), monitor.Options{})
	m.Follow(&behind{})
	monitor.Quicken(m)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		m.Run(ctx)
		close(ended)
	}()
	web := web(t, m.Events())
	r := open(t, web.URL)
	next(t, r)
	stop()
	<-ended
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Errorf("the stream ends with %v", err)
	}
	if r, err := http.Get(web.URL); err != nil || r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a new page gets %v, %v", r, err)
	} else {
		_ = r.Body.Close()
	}
}

// TestPage has a policy that allows its own script and style, and no text that is not escaped.
func TestPage(t *testing.T) {
	m := monitor.New(resolved(t, "name: <script>alert(1)</script>\nrun: {requests: 1}"), monitor.Options{})
	w := httptest.NewRecorder()
	m.Page(-1).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	text := w.Body.String()
	if w.Code != 200 || strings.Contains(text, "<script>alert") || !strings.Contains(text, "&lt;script&gt;alert") {
		t.Errorf("%d: the name is not escaped", w.Code)
	}
	if n := strings.Count(w.Header().Get("Content-Security-Policy"), "'sha256-"); n != 2 {
		t.Errorf("the policy is %q", w.Header().Get("Content-Security-Policy"))
	}
	if found := regexp.MustCompile(`(?:src|href)="(?:https?:)?//`).FindString(text); found != "" {
		t.Errorf("the page needs another host: %s", found)
	}
}

// TestStatus writes a line that fits, and lines of a log above it.
func TestStatus(t *testing.T) {
	m, s, ctx := served(t, "engine: {max_num_seqs: 2}\ngpu: h100", monitor.Options{})
	for range 3 {
		send(ctx, s, 100, 3000)
	}
	r, w := io.Pipe()
	status := m.NewStatus(w, monitor.StatusLine)
	monitor.QuickenStatus(status)
	part, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		status.Run(part)
		_ = w.Close()
	}()
	var text strings.Builder
	var buffer [4096]byte
	shows := regexp.MustCompile(`2 running · 1 waiting · KV [^\r]* TTFT p50`)
	for logged := false; ; {
		n, err := r.Read(buffer[:])
		text.Write(buffer[:n])
		if err != nil {
			break
		}
		if !logged && shows.MatchString(text.String()) {
			logged = true
			go func() {
				fmt.Fprintln(status, "a warning")
				stop()
			}()
		}
	}
	for _, want := range []string{"2 running · 1 waiting", "tok/s", "\r\x1b[Ka warning\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q lacks %q", text.String(), want)
		}
	}
	last := text.String()[strings.LastIndexByte(text.String(), '\n')+1:]
	if last != "" && !strings.HasSuffix(last, "\r\x1b[K") {
		t.Errorf("the last line stays: %q", last)
	}
	for line := range strings.SplitSeq(text.String(), "\r") {
		if n := len([]rune(strings.TrimSuffix(line, "\x1b[K"))); n >= 80 {
			t.Errorf("%q has %d columns", line, n)
		}
	}
	if n, _ := total(scrape(t, m, -1)["vllm:num_requests_running"]); n != 2 {
		t.Errorf("%v requests run, want 2", n)
	}
}

// TestPlain writes lines of a log while requests are there or end, and none otherwise.
func TestPlain(t *testing.T) {
	u := resolved(t, "workload: {arrivals: {process: poisson, rate: 12}}\nrun: {requests: 50}")
	m := monitor.New(u, monitor.Options{})
	var b bytes.Buffer
	status := m.NewStatus(&b, monitor.StatusPlain)
	monitor.WriteStatus(status, 0)
	if b.Len() > 0 {
		t.Errorf("it writes %q of nothing", b.String())
	}
	if _, err := experiments.RunSetup(context.Background(), u, experiments.RunOptions{
		Observers: []event.Observer{m.Observer()}}); err != nil {
		t.Fatal(err)
	}
	monitor.WriteStatus(status, 0)
	monitor.WriteStatus(status, 0)
	line := regexp.MustCompile(`^clifftop: 0 running · 0 waiting · KV \d+ % · [^\n]+ · TTFT p50 \S+ m?s p99 [^\n]+\n$`)
	if !line.Match(b.Bytes()) {
		t.Errorf("it writes %q", b.String())
	}
}

// TestBehind says first in the line that the machine is too slow, and has it in the state.
func TestBehind(t *testing.T) {
	m := monitor.New(resolved(t, "run: {requests: 1}"), monitor.Options{})
	m.Follow(&behind{lag: 1234 * time.Millisecond})
	var b bytes.Buffer
	monitor.WriteStatus(m.NewStatus(&b, monitor.StatusLine), 30)
	if b.String() != "\r1.2 s behind the clock\x1b[K" {
		t.Errorf("the line is %q", b.String())
	}
}

// TestNarrow cuts the line to the width of the terminal.
func TestNarrow(t *testing.T) {
	for _, width := range []int{0, 1, 12, 30, 60, 200} {
		m := monitor.New(resolved(t, "run: {requests: 1}"), monitor.Options{})
		var b bytes.Buffer
		status := m.NewStatus(&b, monitor.StatusLine)
		monitor.WriteStatus(status, width)
		text := strings.TrimSuffix(strings.TrimPrefix(b.String(), "\r"), "\x1b[K")
		if len([]rune(text)) > max(0, width-1) {
			t.Errorf("%q is wider than %d", text, width)
		}
		if width > 20 && !strings.Contains(text, "0 running") {
			t.Errorf("at %d: %q", width, text)
		}
	}
}

// taker is a viewer that takes all at once.
type taker struct{ http.ResponseWriter }

func (taker) Header() http.Header         { return http.Header{} }
func (taker) Write(p []byte) (int, error) { return len(p), nil }
func (taker) WriteHeader(int)             {}
func (taker) Flush()                      {}

// BenchmarkTick is what pages cost in a second, for so many of them: four states and a point. The batch has 512
// sequences, and the queue 10,000. The simulation runs beside it.
func BenchmarkTick(b *testing.B) {
	u := resolved(b, "gpu: h100\nengine: {max_num_seqs: 512}")
	m := monitor.New(u, monitor.Options{})
	s, err := live.New(u, live.Options{Observers: []event.Observer{m.Observer()}})
	if err != nil {
		b.Fatal(err)
	}
	m.Follow(s)
	ctx, stop := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { _ = s.Run(ctx) })
	for range 10_512 {
		send(ctx, s, 100, 2000)
	}
	for running := 0; running < 512; running, _, _, _ = monitor.Lists(m, 0) {
		time.Sleep(time.Millisecond)
	}
	for _, viewers := range []int{0, 1, 32} {
		b.Run(fmt.Sprint(viewers), func(b *testing.B) {
			var wait sync.WaitGroup
			ctx, stop := context.WithCancel(context.Background())
			for range viewers {
				wait.Go(func() { m.Events().ServeHTTP(taker{}, httptest.NewRequestWithContext(ctx, "GET", "/", nil)) })
			}
			for b.Loop() {
				for k := range 4 {
					for monitor.Unread(m, viewers) {
						runtime.Gosched()
					}
					monitor.Tick(m, k == 0)
				}
			}
			stop()
			wait.Wait()
		})
	}
	stop()
	wait.Wait()
}

// BenchmarkObserver is a run under a monitor; compare with BenchmarkAlone, which has as many steps and chunks.
func BenchmarkObserver(b *testing.B) { benchmark(b, true) }
func BenchmarkAlone(b *testing.B)    { benchmark(b, false) }

// alone gets steps and chunks, and does nothing.
type alone struct{ event.Ignore }

func (alone) Step(*event.Step)  {}
func (alone) Chunk(event.Chunk) {}

func benchmark(b *testing.B, observed bool) {
	u := resolved(b, "gpu: h100\nengine: {max_num_seqs: 512}\nworkload: {arrivals: {process: closed, users: 512}}\n"+
		"run: {requests: 3000}")
	var tokens int
	for b.Loop() {
		var o event.Observer = alone{}
		if observed {
			o = monitor.New(u, monitor.Options{}).Observer()
		}
		tokens = 0
		if _, err := experiments.RunSetup(context.Background(), u, experiments.RunOptions{Observers: []event.Observer{o},
			Finished: func(rec *event.Record) { tokens += int(rec.Tokens) }}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(tokens), "ns/token")
}
