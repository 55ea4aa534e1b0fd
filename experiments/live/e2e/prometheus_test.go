package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestPrometheus lets Prometheus scrape the server while requests run, and asks it for a rate and a percentile.
func TestPrometheus(t *testing.T) {
	address, key := server(t)
	at := prometheus(t, strings.TrimPrefix(address, "http://"))
	c := client(address, key)
	for range 200 { // the first scrape comes some seconds after the start
		if len(query(t, at, "up")) > 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	for begun := time.Now(); time.Since(begun) < 6*time.Second; {
		if _, err := c.Completions.New(within(t, time.Minute), completion("Hello", 20), exactly); err != nil {
			t.Fatal(err)
		}
	}
	for q, in := range map[string][2]float64{
		`up{job="clifftop"}`:                          {1, 1},
		`sum(rate(vllm:generation_tokens_total[5s]))`: {20, 1000},
		`histogram_quantile(0.95, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[5s])))`: {0.001, 0.5},
		`histogram_quantile(0.5, sum by (le) (rate(vllm:e2e_request_latency_seconds_bucket[5s])))`:  {0.01, 2},
	} {
		values := query(t, at, q)
		if len(values) != 1 {
			t.Errorf("%s has the values %v", q, values)
			continue
		}
		v := values[0]
		t.Logf("%s = %g", q, v)
		if !(v >= in[0] && v <= in[1]) {
			t.Errorf("%s = %g, want %g to %g", q, v, in[0], in[1])
		}
	}
}

// prometheus starts Prometheus, which scrapes an address every second, and returns its own.
func prometheus(t *testing.T, scraped string) string {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s}\n"+
		"scrape_configs: [{job_name: clifftop, static_configs: [{targets: [%q]}]}]\n", scraped)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	said := new(strings.Builder)
	cmd := exec.CommandContext(within(t, time.Minute), "prometheus", "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+listen)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said)
		}
	})
	for range 100 {
		if r, err := http.Get("http://" + listen + "/-/ready"); err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return "http://" + listen
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("Prometheus is not ready after 10 s")
	return ""
}

// query returns the values that a query gives.
func query(t *testing.T, at, text string) (values []float64) {
	t.Helper()
	r, err := http.Get(at + "/api/v1/query?query=" + url.QueryEscape(text))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Status string
		Data   struct {
			Result []struct {
				Value [2]any // instant and value
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %s", text, body)
	}
	for _, x := range answer.Data.Result {
		v, err := strconv.ParseFloat(fmt.Sprint(x.Value[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	return values
}
