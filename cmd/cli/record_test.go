package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"clifftop/cmd/cli"
)

// TestRecord records the requests of a server, ends the proxy as an interrupt does, and simulates the trace.
func TestRecord(t *testing.T) {
	dir := t.TempDir()
	file, recorded := filepath.Join(dir, "scenario.yaml"), filepath.Join(dir, "trace.csv.gz")
	if err := os.WriteFile(file, []byte("model: llama-3.1-8b\nworkload: {output: 40}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	upstream := start(t, "serve", file, "--listen", "127.0.0.1:0")
	proxy := start(t, "record", "--upstream", upstream.urls(t, 1)[0], "--listen", "127.0.0.1:0", "--out", recorded)
	url := proxy.urls(t, 1)[0]
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 3 {
				ask(t, url, `"n": 1`, 40)
			}
		})
	}
	all.Wait()
	if body := get(t, url+"/v1/models"); !strings.Contains(body, "llama-3.1-8b") {
		t.Errorf("models:\n%s", body)
	}
	proxy.end(t, "12 completed")
	upstream.end(t, "the server has ended")
	if n := simulated(t, file, recorded); n != 12 {
		t.Errorf("%d requests completed in the simulation of the trace", n)
	}
	var out, complaints bytes.Buffer
	_ = cli.Run(context.Background(), []string{"verify", file, "--measured", recorded, "--no-causes", "--quiet"}, &out,
		&complaints)
	if !strings.Contains(out.String(), "E2E mean") || complaints.Len() > 0 {
		t.Errorf("%s\n%s", out.String(), complaints.String())
	}
}
