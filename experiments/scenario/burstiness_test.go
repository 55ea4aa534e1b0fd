package scenario

import (
	"strings"
	"testing"
)

// Burstiness is the shape of gamma gaps: their squared coefficient of variation is its inverse. The rate stays, wherever
// it comes from, and nothing of the process before.
func TestBurstiness(t *testing.T) {
	for _, c := range []struct {
		file string
		sets []Setting
	}{
		{"workload: {arrivals: {process: poisson, rate: 8}}", []Setting{{Key: "burstiness", Value: "0.25"}}},
		{"workload: {arrivals: {process: cox, rate: 8, sigma: 0.2, rho: 0.8, step: 1m}}",
			[]Setting{{Key: "burstiness", Value: "0.25"}}},
		{"", []Setting{{Key: "rate", Value: "8"}, {Key: "burstiness", Value: "0.25"}}},
		{"model: llama-3.1-8b", []Setting{{Key: "burstiness", Value: "0.25"}, {Key: "rate", Value: "8"}}},
	} {
		s, err := Parse("s.yaml", []byte(c.file+"\ngpu: h100\n"), c.sets...)
		if err != nil {
			t.Fatal(err)
		}
		u, err := s.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		if a := u.Traffic.Spec.Arrivals[0]; a.Process != "gamma" || a.Rate != 8 || a.CV != 2 || a.Sigma != 0 {
			t.Errorf("%s: %+v", c.file, a)
		}
	}
	for _, c := range []struct{ file, value, want string }{
		{"workload: {arrivals: {rate: 8}}", "0", "0 is not allowed (want 0.0001 to 10000; 1 is Poisson"},
		{"workload: {arrivals: {rate: 8}}", "high", "high is not allowed"},
		{"workload: {arrivals: {users: 8}}", "1", "a closed loop has users instead of a rate"},
		{"workload: {trace: {file: t.csv}}", "1", "a trace has its own arrivals"},
		{"workload: {arrivals: [{rate: 8, duration: 5s}, {rate: 9}]}", "1", "a list of phases"},
		{"", "1", "rate is missing"},
	} {
		_, err := Parse("s.yaml", []byte(c.file+"\ngpu: h100\n"), Setting{Key: "burstiness", Value: c.value})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v, want %q", c.file, c.value, err, c.want)
		}
	}
}
