package workload

import "testing"

func chat() Spec {
	return Spec{
		Arrivals: []Phase{{Process: "poisson", Rate: 1000}},
		Input:    LengthsSpec{Distribution: "lognormal", Mean: 512, CV: 0.8, Max: 8192},
		Output:   LengthsSpec{Distribution: "lognormal", Mean: 250, CV: 0.7, Max: 2048},
	}
}

// BenchmarkSynthetic measures the cost of one request of Poisson traffic with two lognormal lengths.
func BenchmarkSynthetic(b *testing.B) {
	src, err := New(chat(), 1)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var sum int64
	for b.Loop() {
		r := src.Next()
		sum += int64(r.InputTokens)
	}
	if sum == 0 {
		b.Fatal("no tokens")
	}
}

// BenchmarkClosed measures the cost of one turn of one of a thousand users.
func BenchmarkClosed(b *testing.B) {
	s := chat()
	s.Arrivals = []Phase{{Process: "closed", Users: 1000, ThinkTime: Delay{Distribution: "exponential", Mean: 1e12}}}
	src, err := New(s, 1)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r := src.Next()
		src.Done(&r, End{At: r.Arrival + 1e12})
	}
}
