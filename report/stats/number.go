package stats

import "math"

// OrNaN returns the number, or NaN for nil.
func OrNaN(p *float64) float64 {
	if p == nil {
		return math.NaN()
	}
	return *p
}

// Finite is a pointer to v, or nil if v is not finite: JSON has no such numbers.
func Finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// Ratio is a/b, or nil if b is 0.
func Ratio(a, b float64) *float64 { return Finite(a / b) }
