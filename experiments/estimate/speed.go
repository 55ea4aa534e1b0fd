package estimate

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"clifftop/experiments/scenario/yamldoc"
)

// Speed is the time per output token (TPOT) in seconds.
type Speed float64

// ParseSpeed parses a time per token such as 200ms, or a rate such as 5tok/s. The unit is required, because 5 could be
// either.
func ParseSpeed(text string) (Speed, error) {
	trimmed := strings.TrimSpace(text)
	if d, ok := yamldoc.ParseTokenTime(strings.ReplaceAll(trimmed, " ", "")); ok && d > 0 {
		return Speed(d.Seconds()), nil
	}
	if _, err := strconv.ParseFloat(trimmed, 64); err == nil {
		return 0, fmt.Errorf("%q has no unit (want a time per token such as 200ms, or a rate such as 5tok/s)", text)
	}
	return 0, fmt.Errorf("%q is neither a time per token nor a rate (want, for example, 200ms or 5tok/s)", text)
}

// TokensPerSecond returns the speed as a rate.
func (s Speed) TokensPerSecond() float64 { return 1 / float64(s) }

// Milliseconds returns the time per token.
func (s Speed) Milliseconds() float64 { return float64(s) * 1000 }

// ParseRate parses a rate in tokens per second with its unit, such as 4000tok/s.
func ParseRate(text string) (tokensPerSecond float64, err error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "tok/s")
	if !ok {
		return 0, fmt.Errorf("%q has no unit (want tokens per second, such as 4000tok/s)", text)
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a rate (want a number above 0, such as 4000tok/s)", text)
	}
	return v, nil
}

// ParseShare parses a fraction from 0 to 1, such as 20% or 0.2.
func ParseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("%q is not a share (want 0 to 1, such as 20%% or 0.2)", text)
	}
	return v, nil
}
