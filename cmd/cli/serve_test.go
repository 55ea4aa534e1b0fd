package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

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
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	out, in := io.Pipe()
	var log bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		status := cli.Run(ctx, []string{"serve", file, "--listen", "127.0.0.1:0", "--speed", "100", "--journal", journal}, in, &log)
		in.Close()
		ended <- status
	}()
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "http://127.0.0.1:") {
		t.Fatalf("printed %q", lines.Text())
	}
	url := lines.Text()
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
	stop()
	if status := <-ended; status != 0 || !strings.Contains(log.String(), "the server has ended") {
		t.Fatalf("status %d: %s", status, log.String())
	}
	var summary struct {
		Requests struct{ Completed int }
	}
	var result, complaints bytes.Buffer
	status := cli.Run(context.Background(), []string{"run", file, "--trace", journal, "--format", "json", "--quiet"}, &result,
		&complaints)
	if err := json.Unmarshal(result.Bytes(), &summary); status != 0 || err != nil || summary.Requests.Completed != 41 {
		t.Errorf("status %d, %v, %s\n%.600s", status, err, complaints.String(), result.String())
	}
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
