package e2e

import (
	"net/http"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// TestVegeta sends completions at a constant rate with the load tester vegeta.
func TestVegeta(t *testing.T) {
	url, key := server(t)
	target := vegeta.NewStaticTargeter(vegeta.Target{Method: http.MethodPost, URL: url + "/v1/completions",
		Header: http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + key}},
		Body:   []byte(`{"model": "` + model + `", "prompt": "Hello", "max_tokens": 10, "ignore_eos": true}`)})
	var m vegeta.Metrics
	rate := vegeta.Rate{Freq: 50, Per: time.Second}
	for r := range vegeta.NewAttacker(vegeta.Timeout(20*time.Second)).Attack(target, rate, 5*time.Second, "completions") {
		m.Add(r)
	}
	m.Close()
	t.Logf("%d requests, status %v, latencies p50 %v, p99 %v", m.Requests, m.StatusCodes, m.Latencies.P50, m.Latencies.P99)
	if m.Requests != 250 || m.Success != 1 {
		t.Errorf("%d requests, %v successful, errors %v", m.Requests, m.Success, m.Errors)
	}
	// An H100 needs about 50 ms for ten tokens of this model. The upper threshold leaves room for a busy machine.
	if m.Latencies.P50 < 30*time.Millisecond || m.Latencies.P99 > 2*time.Second {
		t.Errorf("latencies p50 %v, p99 %v", m.Latencies.P50, m.Latencies.P99)
	}
}
