package workload

import "math/rand/v2"

// MaxTokens limits every length, so that sums of a few lengths fit an int32.
const MaxTokens = 1 << 29

// Lengths is a distribution of token counts in 1…[MaxTokens]. Implementations are immutable values.
type Lengths interface {
	// Sample draws a length. All randomness must come from src.
	Sample(src rand.Source) int32
	// Exceeds returns the probability that a length is greater than n; it does not increase with n.
	Exceeds(n int32) float64
}

// Mean returns the mean of the sampled lengths in tokens, after rounding and clipping. It sums Exceeds over 0, 1, …
// with an error well below 0.1 % of the mean.
func Mean(l Lengths) float64 {
	// Exceeds is monotone. An interval of the sum is therefore known to within half its width times its drop;
	// intervals are halved until that is small.
	var sum func(lo, hi int32, atLo, atHi float64) float64 // over lo ≤ n < hi
	sum = func(lo, hi int32, atLo, atHi float64) float64 {
		width := float64(hi - lo)
		if atLo == atHi {
			return width * atLo
		}
		if hi-lo == 1 {
			return atLo
		}
		if drop := width * (atLo - atHi); drop < 1e-3 {
			return width*atHi + (drop+atLo-atHi)/2
		}
		mid := lo + (hi-lo)/2
		atMid := l.Exceeds(mid)
		return sum(lo, mid, atLo, atMid) + sum(mid, hi, atMid, atHi)
	}
	total := 0.0
	for lo, hi := int32(0), int32(1); lo < MaxTokens; lo, hi = hi, 2*hi {
		atLo := l.Exceeds(lo)
		if atLo < 1e-12 {
			break
		}
		total += sum(lo, hi, atLo, l.Exceeds(hi))
	}
	return total
}

// tokens rounds a draw to the nearest whole number, half up, within 1…MaxTokens.
func tokens(x float64) int32 {
	switch x += 0.5; {
	case x >= MaxTokens:
		return MaxTokens
	case x >= 1:
		return int32(x)
	}
	return 1
}

// exceeds returns the tail of a rounded distribution, given the survival function before rounding.
func exceeds(n int32, survival func(x float64) float64) float64 {
	switch {
	case n < 1:
		return 1
	case n >= MaxTokens:
		return 0
	}
	return survival(float64(n) + 0.5)
}

// fixedLength is a constant length.
type fixedLength struct{ Value int32 }

func (f fixedLength) Sample(rand.Source) int32 { return f.Value }

// Exceeds returns 1 below the value and 0 from the value on.
func (f fixedLength) Exceeds(n int32) float64 {
	if n < f.Value {
		return 1
	}
	return 0
}

// uniformLengths gives all lengths in Min…Max the same probability; both ends are included.
type uniformLengths struct{ Min, Max int32 }

func (u uniformLengths) Sample(src rand.Source) int32 {
	return u.Min + rand.New(src).Int32N(u.Max-u.Min+1)
}

// Exceeds is linear between Min and Max.
func (u uniformLengths) Exceeds(n int32) float64 {
	switch {
	case n < u.Min:
		return 1
	case n >= u.Max:
		return 0
	}
	return float64(u.Max-n) / float64(u.Max-u.Min+1)
}

// Clipped replaces lengths outside Min…Max by the nearer bound. It does not redraw them, so the bounds become
// atoms.
type Clipped struct {
	Law      Lengths
	Min, Max int32
}

// Sample draws a length and clips it.
func (c Clipped) Sample(src rand.Source) int32 { return min(max(c.Law.Sample(src), c.Min), c.Max) }

// Exceeds returns the tail of Law between the bounds.
func (c Clipped) Exceeds(n int32) float64 {
	switch {
	case n < c.Min:
		return 1
	case n >= c.Max:
		return 0
	}
	return c.Law.Exceeds(n)
}

var (
	_ Lengths = fixedLength{}
	_ Lengths = uniformLengths{}
	_ Lengths = Clipped{}
)
