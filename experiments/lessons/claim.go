package lessons

import (
	"fmt"
	"math"

	"clifftop/report/stats"
)

// Claim is a statement of the lesson, checked with the results.
type Claim struct {
	Text   string   `json:"text"`
	Value  *float64 `json:"value"` // measured; nil where there was nothing to measure
	Wanted string   `json:"wanted"`
	Holds  bool     `json:"holds"`

	decimals int // to show; less than 0 is as many as suit
}

// bound is the allowed range of a value.
type bound struct {
	low, high float64
	text      string
	decimals  int // that matter; less than 0 is as many as suit
}

func atMost(x float64) bound  { return bound{math.Inf(-1), x, "at most " + number(x), -1} }
func atLeast(x float64) bound { return bound{x, math.Inf(1), "at least " + number(x), -1} }

// about allows x with a relative tolerance.
func about(x, part float64) bound {
	return bound{x * (1 - part), x * (1 + part), fmt.Sprintf("%s ± %s %%", number(x), number(100*part)), -1}
}

func between(low, high float64) bound {
	return bound{low, high, number(low) + " to " + number(high), -1}
}

// exactly allows only a rounding error in the last decimal.
func exactly(x float64, decimals int) bound {
	half := 0.5*math.Pow10(-decimals) + 1e-12
	return bound{x - half, x + half, fmt.Sprintf("%.*f", decimals, x), decimals}
}

func (c *class) claim(text string, value float64, want bound) {
	claim := Claim{Text: text, Wanted: want.text, decimals: want.decimals}
	if !math.IsNaN(value) && !math.IsInf(value, 0) {
		claim.Value = &value
		claim.Holds = value >= want.low && value <= want.high
	}
	c.Claims = append(c.Claims, claim)
}

// rising claims that each value is larger than the one before by more than the given fraction. Its value is the
// smallest growth.
func (c *class) rising(text string, values []float64, part float64) {
	least := math.Inf(1)
	for i := 1; i < len(values); i++ {
		least = min(least, values[i]/values[i-1])
	}
	c.claim(text, least, atLeast(1+part))
}

// of is the value of a statistic, or NaN without a sample. No claim allows NaN.
func of(v *float64) float64 { return stats.OrNaN(v) }
