package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"clifftop/experiments/live"
	"clifftop/experiments/scenario"
	"clifftop/sim/event"
)

// small is a scenario with known output lengths.
const small = "model: llama-3.1-8b\ngpu: h100\nengine: {max_model_len: 4096}\n" +
	"workload: {output: {distribution: uniform, min: 20, max: 40}}"

// site is a scenario that is served.
type site struct {
	*Server
	url     string
	records chan event.Record
	stop    context.CancelFunc
	served  chan error
}

// recorder keeps the records of a simulation.
type recorder struct {
	event.Ignore
	to chan event.Record
}

func (r recorder) Finished(rec *event.Record) { r.to <- *rec }

// newServer runs a scenario and returns the API on it.
func newServer(t testing.TB, text string, speed float64, change func(*Options)) *site {
	t.Helper()
	s, err := scenario.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.ResolveServed()
	if err != nil {
		t.Fatal(err)
	}
	x := &site{records: make(chan event.Record, 1<<16)}
	replicas := NewReplicas(u)
	l, err := live.New(u, live.Options{Speed: speed, Observers: []event.Observer{recorder{to: x.records}, replicas}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	o := Options{Live: l, Version: "1.2.3", Replicas: replicas}
	if change != nil {
		change(&o)
	}
	if x.Server, err = New(o); err != nil {
		t.Fatal(err)
	}
	return x
}

// serve serves a scenario on a free port.
func serve(t testing.TB, text string, speed float64, change func(*Options)) *site {
	t.Helper()
	x := newServer(t, text, speed, change)
	ports, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x.url = "http://" + ports[0].Addr().String()
	var ctx context.Context
	ctx, x.stop = context.WithCancel(context.Background())
	x.served = make(chan error, 1)
	go func() {
		x.served <- x.Serve(ctx, ports)
		close(x.served)
	}()
	t.Cleanup(func() {
		x.stop()
		<-x.served
	})
	return x
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request; a body is sent as JSON. Headers are pairs of name and value.
func (x *site) do(t testing.TB, method, path, body string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequest(method, x.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{a.StatusCode, a.Header, string(b)}
}

// object is JSON.
type object = map[string]any

// at returns the value at a path such as choices.0.text.
func at(t testing.TB, v any, path string) any {
	t.Helper()
	for key := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case object:
			v = x[key]
		case []any:
			i := int(key[0] - '0')
			if i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// read decodes JSON.
func read(t testing.TB, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %.300s", err, text)
	}
	return v
}

// events splits a stream into its events, and checks that it ends with [DONE].
func events(t testing.TB, body string) (list []any) {
	t.Helper()
	s := bufio.NewScanner(strings.NewReader(body))
	s.Buffer(nil, 1<<24)
	done := false
	for s.Scan() {
		line := s.Text()
		if line == "" {
			continue
		}
		text, ok := strings.CutPrefix(line, "data: ")
		if !ok || done {
			t.Fatalf("line %q", line)
		}
		if done = text == "[DONE]"; !done {
			list = append(list, read(t, text))
		}
	}
	if !done {
		t.Fatalf("the stream has no end: %.300q", body)
	}
	return list
}

// joined joins the texts at a path of all events.
func joined(t testing.TB, list []any, path string) string {
	var b bytes.Buffer
	for _, e := range list {
		s, _ := at(t, e, path).(string)
		b.WriteString(s)
	}
	return b.String()
}

// record returns the next record of the simulation.
func (x *site) record(t testing.TB) event.Record {
	t.Helper()
	select {
	case r := <-x.records:
		return r
	case <-time.After(20 * time.Second):
		t.Fatal("no request has ended")
	}
	panic("unreachable")
}
