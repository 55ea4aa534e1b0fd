package report

import (
	"strings"
	"testing"

	"clifftop/sim/clock"
)

func TestParseSLO(t *testing.T) {
	slo, err := ParseSLO(map[string]string{
		"tpot_p99_9": "80ms", "ttft_p95": "0.8s", "e2e_mean": "1m", "queue_p50": "5us", "itl_p75": "20 ms",
		"attainment": "0.95", "wait_probability": "0.1",
	})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, o := range slo.Objectives {
		keys = append(keys, o.Key())
	}
	if got := strings.Join(keys, " "); got != "ttft_p95 tpot_p99_9 itl_p75 e2e_mean queue_p50" {
		t.Errorf("keys %s", got)
	}
	if o := slo.Objectives[0]; o.Quantile != .95 || o.Limit != 800*clock.Millisecond {
		t.Errorf("%+v", o)
	}
	if q := slo.Objectives[1].Quantile; q < .99899 || q > .99901 {
		t.Errorf("p99_9 is %v", q)
	}
	if slo.Attainment != .95 || *slo.WaitProbability != .1 {
		t.Errorf("%+v", slo)
	}
	l := slo.limits()
	if l.tpot != 20*clock.Millisecond || l.e2e != clock.Minute {
		t.Errorf("%+v", l)
	}
	for key, value := range map[string]string{
		"ttft": "1s", "ttft_p": "1s", "ttft_p100": "1s", "ttft_p0": "1s", "ttft_p9e1": "1s", "speed_p50": "1s", "ttft_max": "1s",
		"ttft_p50": "800", "tpot_p50": "-1ms", "e2e_p50": "fast", "queue_p50": "NaNs", "attainment": "95", "wait_probability": "x",
	} {
		if _, err := ParseSLO(map[string]string{key: value}); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %s gives %v", key, value, err)
		}
	}
	_, err = ParseSLO(map[string]string{"a": "1", "b": "2"})
	if err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("not all faults are told: %v", err)
	}
	for _, list := range []string{"", "ttft_p95", "ttft_p95=1s,ttft_p95=2s"} {
		if _, err := ParseSLOList(list); err == nil {
			t.Errorf("%q is taken", list)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]clock.Duration{
		"0": 0, "1ns": clock.Nanosecond, "1.5us": 1500 * clock.Nanosecond, "2µs": 2 * clock.Microsecond, "800ms": 800 * clock.Millisecond,
		"3 s": 3 * clock.Second, "2m": 2 * clock.Minute, "1h": clock.Hour,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "s", "1d", "-1s", "1e99h", "Infs", "1s2"} {
		if d, err := ParseDuration(text); err == nil {
			t.Errorf("%q is %v", text, d)
		}
	}
}
