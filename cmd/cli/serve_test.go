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
				ask(t, url)
			}
		})
	}
	all.Wait()
	if body := get(t, url+"/metrics"); !strings.Contains(body, "vllm:request_success_total") {
		t.Errorf("metrics:\n%s", body)
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
	if err := json.Unmarshal(result.Bytes(), &summary); status != 0 || err != nil || summary.Requests.Completed != 40 {
		t.Errorf("status %d, %v, %s\n%.600s", status, err, complaints.String(), result.String())
	}
}

// ask sends a chat and reads its output.
func ask(t *testing.T, url string) {
	const body = `{"model": "llama-3.1-8b", "messages": [{"role": "user", "content": "Where is north?"}]}`
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
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || answer.Usage.Completion != 40 {
		t.Errorf("%v: %+v, want 40 tokens", err, answer)
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
