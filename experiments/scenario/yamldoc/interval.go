package yamldoc

import (
	"math"
	"strconv"
	"strings"
)

// Interval is a set of allowed numbers.
type Interval struct {
	Low, High         float64
	LowOpen, HighOpen bool
}

// ParseRange reads the notation of intervals: "[0,1)". Empty bounds, and an empty text, do not limit.
func ParseRange(s string) Interval {
	r := Interval{Low: math.Inf(-1), High: math.Inf(1)}
	if s == "" {
		return r
	}
	low, high, _ := strings.Cut(s[1:len(s)-1], ",")
	if low != "" {
		r.Low, _ = strconv.ParseFloat(low, 64)
		r.LowOpen = s[0] == '('
	}
	if high != "" {
		r.High, _ = strconv.ParseFloat(high, 64)
		r.HighOpen = s[len(s)-1] == ')'
	}
	return r
}

func (r Interval) holds(x float64) bool {
	return (x > r.Low || !r.LowOpen && x == r.Low) && (x < r.High || !r.HighOpen && x == r.High)
}

// String is the interval in words, or empty when it holds every number.
func (r Interval) String() string {
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	var parts []string
	switch hasHigh := !math.IsInf(r.High, 1); {
	case math.IsInf(r.Low, -1):
	case !r.LowOpen && !r.HighOpen && hasHigh:
		return number(r.Low) + " to " + number(r.High)
	case r.LowOpen:
		parts = append(parts, "more than "+number(r.Low))
	default:
		parts = append(parts, number(r.Low)+" or more")
	}
	if !math.IsInf(r.High, 1) {
		if r.HighOpen {
			parts = append(parts, "less than "+number(r.High))
		} else {
			parts = append(parts, "at most "+number(r.High))
		}
	}
	return strings.Join(parts, ", ")
}
