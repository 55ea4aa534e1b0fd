package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"clifftop/cmd/cli"
)

// TestServe serves a fleet, sends requests, ends the server as an interrupt does, and simulates the journal.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "fleet.yaml")
	text := "model: llama-3.1-8b\ngpu: h100\ndeployment: {replicas: 2, router: session}\nworkload: {output: 40}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	journal := filepath.Join(dir, "journal.csv.gz")
	x := start(t, "serve", file, "--listen", "127.0.0.1:0", "--speed", "100", "--journal", journal)
	url := x.urls(t, 1)[0]
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				ask(t, url, `"n": 1`, 40)
			}
		})
	}
	all.Wait()
	ask(t, url, `"max_tokens": 30`, 30)
	for reason, want := range map[string]string{"stop": "40", "length": "1"} {
		if body := get(t, url+"/metrics"); successes(body, reason) != want {
			t.Errorf("metrics: want %s successes with the reason %s\n%s", want, reason, body)
		}
	}
	if body := get(t, url); !strings.Contains(body, "<title>") || !strings.Contains(body, "clifftop serve") {
		t.Errorf("the page is %.300s", body)
	}
	events, err := http.Get(url + "/live/events?replica=1")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	x.end(t, "the server has ended")
	if body, err := io.ReadAll(events.Body); err != nil || !bytes.HasPrefix(body, []byte("event: hello\ndata: {")) {
		t.Errorf("the events are %.300s, %v", body, err)
	}
	if n := simulated(t, file, journal); n != 41 {
		t.Errorf("%d requests completed in the simulation of the journal", n)
	}
}

// server is a command that serves until it is interrupted.
type server struct {
	stop  func()
	lines *bufio.Scanner // of its output
	log   bytes.Buffer
	ended chan int // its status
}

// start runs a command that serves.
func start(t *testing.T, args ...string) *server {
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	out, in := io.Pipe()
	x := &server{stop: stop, lines: bufio.NewScanner(out), ended: make(chan int, 1)}
	go func() {
		status := cli.Run(ctx, args, in, &x.log)
		in.Close()
		x.ended <- status
	}()
	return x
}

// urls returns the addresses that the server prints.
func (x *server) urls(t *testing.T, n int) (list []string) {
	for len(list) < n {
		if !x.lines.Scan() || !strings.HasPrefix(x.lines.Text(), "http://127.0.0.1:") {
			t.Fatalf("printed %q; %s", x.lines.Text(), x.log.String())
		}
		list = append(list, x.lines.Text())
	}
	return list
}

// end ends the server as an interrupt does. Its log must have a text.
func (x *server) end(t *testing.T, want string) {
	x.stop()
	if status := <-x.ended; status != 0 || !strings.Contains(x.log.String(), want) {
		t.Fatalf("status %d: %s", status, x.log.String())
	}
}

// TestServePrefillAndDecode plays a proxy that sends prompts to a prefill replica and then to a decode replica, each at
// a port of its own, and simulates the journal.
func TestServePrefillAndDecode(t *testing.T) {
	dir := t.TempDir()
	file, journal := filepath.Join(dir, "pd.yaml"), filepath.Join(dir, "journal.csv")
	const scenario = "model: llama-3.1-8b\ngpu: h100\npools: [{name: p, role: prefill, replicas: 1}, " +
		"{name: d, role: decode, replicas: 1}]\ndisaggregation: {link_gb_per_s: 1}\n"
	if err := os.WriteFile(file, []byte(scenario), 0o644); err != nil {
		t.Fatal(err)
	}
	var x *server
	var urls []string
	for range 20 { // until two ports in a row are free
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		first := free.Addr().(*net.TCPAddr).Port
		free.Close()
		x = start(t, "serve", file, "--ports", fmt.Sprintf("%d-%d", first, first+1), "--speed", "5", "--journal", journal)
		if x.lines.Scan() {
			urls = append([]string{x.lines.Text()}, x.urls(t, 1)...)
			break
		}
	}
	prompt := strings.Repeat("word ", 4000)
	kv := complete(t, urls[0], prompt, `"max_tokens": 1, "kv_transfer_params": {"do_remote_decode": true}`, 1)
	began := time.Now()
	complete(t, urls[1], prompt, fmt.Sprintf(`"max_tokens": 9, "ignore_eos": true, "kv_transfer_params": %s`, kv), 9)
	// 4,000 tokens have 524 MB of KV, which a link of 1 GB/s carries in a tenth of a second at five times the speed.
	if took := time.Since(began); took < 104*time.Millisecond {
		t.Errorf("the decode took %v", took)
	}
	x.end(t, "the server has ended")
	if want := "ports of prefill replicas: 1, followed by 1 of decode replicas"; !strings.Contains(x.log.String(), want) {
		t.Errorf("no %q in %s", want, x.log.String())
	}
	if n := simulated(t, file, journal); n != 2 {
		t.Errorf("%d requests completed in the simulation of the journal", n)
	}
}

// complete sends a prompt with more fields, expects a number of output tokens, and returns kv_transfer_params.
func complete(t *testing.T, url, prompt, fields string, tokens int) json.RawMessage {
	body := fmt.Sprintf(`{"prompt": %q, %s}`, prompt, fields)
	r, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var answer struct {
		KV    json.RawMessage `json:"kv_transfer_params"`
		Usage struct {
			Completion int `json:"completion_tokens"`
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || answer.Usage.Completion != tokens {
		t.Fatalf("%v: %+v, want %d tokens", err, answer, tokens)
	}
	return answer.KV
}

// successes returns the number of requests that ended for a reason, over the replicas.
func successes(metrics, reason string) string {
	sum := 0
	for line := range strings.SplitSeq(metrics, "\n") {
		if strings.HasPrefix(line, "vllm:request_success_total{") && strings.Contains(line, `finished_reason="`+reason+`"`) {
			n, _ := strconv.Atoi(line[strings.LastIndexByte(line, ' ')+1:])
			sum += n
		}
	}
	return strconv.Itoa(sum)
}

// ask sends a chat with a field, and expects a number of output tokens.
func ask(t *testing.T, url, field string, tokens int) {
	body := `{"model": "llama-3.1-8b", "messages": [{"role": "user", "content": "Where is north?"}], ` + field + `}`
	r, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	defer r.Body.Close()
	var answer struct {
		Usage struct {
			Completion int `json:"completion_tokens"`
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || answer.Usage.Completion != tokens {
		t.Errorf("%v: %+v, want %d tokens", err, answer, tokens)
	}
}

func get(t *testing.T, url string) string {
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// simulated replays a trace, and returns how many requests completed.
func simulated(t *testing.T, file, trace string) int {
	t.Helper()
	var summary struct {
		Requests struct{ Completed int }
	}
	var result, complaints bytes.Buffer
	status := cli.Run(context.Background(), []string{"run", file, "--trace", trace, "--format", "json", "--quiet"},
		&result, &complaints)
	if err := json.Unmarshal(result.Bytes(), &summary); status != 0 || err != nil {
		t.Errorf("status %d, %v, %s\n%.600s", status, err, complaints.String(), result.String())
	}
	return summary.Requests.Completed
}
