package report

import "math"

// A Profile names what ranges of latency feel like to the reader of an answer.
type Profile struct {
	Name       string
	TTFT, TPOT Bands
}

// Bands divide the latencies from 0 up. Each ends below its Below, in milliseconds; the last has none.
type Bands []Band

// Band is a range of latency up to, not including, Below.
type Band struct {
	Below float64
	Name  string
}

// Name is the name of the band that holds ms.
func (b Bands) Name(ms float64) string {
	for _, band := range b {
		if ms < band.Below {
			return band.Name
		}
	}
	return ""
}

var beyond = math.Inf(1)

// DefaultProfile has the bands that are usual for chat; ranges that no source names are "marginal".
func DefaultProfile() Profile {
	return Profile{
		Name: "default",
		TTFT: Bands{{200, "excellent"}, {800, "acceptable"}, {1000, "marginal"}, {beyond, "poor"}},
		TPOT: Bands{{30, "excellent"}, {80, "acceptable"}, {100, "marginal"}, {beyond, "poor"}},
	}
}
