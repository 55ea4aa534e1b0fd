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
		TTFT: Bands{{100, "instant"}, {300, "acceptable"}, {1000, "marginal"}, {2000, "doubtful"},
			{beyond, "abandoned"}},
		TPOT: Bands{{100, "smooth"}, {150, "marginal"}, {beyond, "stuttering"}},
	}, {
		Name: "summarise", // readers who have handed in a long text wait two to three seconds
		TTFT: Bands{{2000, "excellent"}, {3000, "acceptable"}, {5000, "marginal"}, {beyond, "poor"}},
		TPOT: Bands{{30, "excellent"}, {80, "acceptable"}, {100, "marginal"}, {beyond, "poor"}},
	}}
}

// DefaultProfile is the first of [Profiles].
func DefaultProfile() Profile { return Profiles()[0] }

// A KindOfAnswer is a use with the length that its answers usually have and the time that readers are used to
// wait for the whole of one.
type KindOfAnswer struct {
	Name        string
	Tokens      int
	LowS, HighS float64 // end to end, in seconds
}

// Answers are the usual kinds. Their ranges ask for 20 to 80, 16 to 60 and 15 to 60 ms per token, which are the better
// bands of TPOT.
func Answers() []KindOfAnswer {
	return []KindOfAnswer{{"chat", 100, 2, 8}, {"code", 500, 8, 30}, {"document", 2000, 30, 120}}
}

// Judge compares a time with the usual range, which holds its lower end.
func (k KindOfAnswer) Judge(seconds float64) string {
	switch {
	case seconds < k.LowS:
		return "quick"
	case seconds < k.HighS:
		return "usual"
	}
	return "slow"
}
