// Package e2e tries clifftop serve with clients in Go and with Prometheus. CLIFFTOP_SERVER is the server's address and
// CLIFFTOP_API_KEY its key; try.sh starts it.
package e2e

import (
	"context"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// model is that of scenario.yaml.
const model = "llama-3.1-8b"

// server returns the address and the key of the server.
func server(t *testing.T) (url, key string) {
	t.Helper()
	url, key = os.Getenv("CLIFFTOP_SERVER"), os.Getenv("CLIFFTOP_API_KEY")
	if url == "" || key == "" {
		t.Fatal("want CLIFFTOP_SERVER and CLIFFTOP_API_KEY: see try.sh")
	}
	return url, key
}

// within returns a context for a test.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// sum returns the sum of a metric over the lines that have a label.
func sum(t *testing.T, url, name, label string) (total float64) {
	t.Helper()
	r, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, name+"{") && strings.Contains(line, label) {
			v, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			if err != nil {
				t.Fatal(err)
			}
			total, found = total+v, true
		}
	}
	if !found {
		t.Fatalf("no metric %s with %s", name, label)
	}
	return total
}
