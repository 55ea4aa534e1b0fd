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

// Profiles are the known profiles; the first is the default. Ranges that no source names are "marginal".
func Profiles() []Profile {
	return []Profile{{
		Name: "default", // what is usual for chat
		TTFT: Bands{{200, "excellent"}, {800, "acceptable"}, {1000, "marginal"}, {beyond, "poor"}},
		TPOT: Bands{{30, "excellent"}, {80, "acceptable"}, {100, "marginal"}, {beyond, "poor"}},
	}, {
		Name: "chat-strict", // impatient readers: beyond two seconds they leave
		TTFT: Bands{{100, "instant"}, {300, "acceptable"}, {1000, "marginal"}, {2000, "doubtful"}, {beyond, "abandoned"}},
		TPOT: Bands{{100, "smooth"}, {150, "marginal"}, {beyond, "stuttering"}},
	}}
}

// DefaultProfile is the first of [Profiles].
func DefaultProfile() Profile { return Profiles()[0] }
