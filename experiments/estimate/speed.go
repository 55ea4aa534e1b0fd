package estimate

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"clifftop/experiments/scenario/unit"
)

// Speed is how fast tokens of one answer follow each other, in seconds per token: TPOT.
type Speed float64

// ParseSpeed reads a time per token, such as 200ms, or a speed, such as 5tok/s. The unit must be given: 5 may be
// either.
func ParseSpeed(text string) (Speed, error) {
	trimmed := strings.TrimSpace(text)
	if d, ok := unit.ParseTokenTime(strings.ReplaceAll(trimmed, " ", "")); ok && d > 0 {
		return Speed(d.Seconds()), nil
	}
	if _, err := strconv.ParseFloat(trimmed, 64); err == nil {
		return 0, fmt.Errorf("%q has no unit (want a time per token such as 200ms, or a speed such as 5tok/s)", text)
	}
	return 0, fmt.Errorf("%q is neither a time per token nor a speed (want such as 200ms, or 5tok/s)", text)
}

// TokensPerSecond is the speed as a rate.
func (s Speed) TokensPerSecond() float64 { return 1 / float64(s) }

// Milliseconds is the time per token.
func (s Speed) Milliseconds() float64 { return float64(s) * 1000 }

// ParseRate reads a rate of tokens with its unit, such as 4000tok/s.
func ParseRate(text string) (tokensPerSecond float64, err error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "tok/s")
	if !ok {
		return 0, fmt.Errorf("%q has no unit (want tokens per second, such as 4000tok/s)", text)
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a rate (want one above 0, such as 4000tok/s)", text)
	}
	return v, nil
}

// ParseShare reads a fraction: 20% or 0.2.
func ParseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("%q is not a share (want such as 20%% or 0.2, at most 1)", text)
	}
	return v, nil
}
