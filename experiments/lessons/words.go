package lessons

import (
	"fmt"
	"math"
	"strconv"

	"clifftop/report/layout"
)

// number writes three significant digits, a whole number without decimals, and one above a thousand in full with
// commas.
func number(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	if v == math.Trunc(v) || math.Abs(v) >= 999.5 {
		return layout.Grouped(strconv.FormatFloat(v, 'f', 0, 64))
	}
	decimals := 2
	if a := math.Abs(v); a >= 99.95 {
		decimals = 0
	} else if a >= 9.995 {
		decimals = 1
	} else if a < 0.1 {
		decimals = 4
	} else if a < 0.9995 {
		decimals = 3
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// lasting writes milliseconds in a suitable unit.
func lasting(ms float64) string {
	switch {
	case math.IsNaN(ms):
		return "–"
	case math.Abs(ms) < 999.5:
		return number(ms) + " ms"
	case math.Abs(ms) < 120e3:
		return number(ms/1e3) + " s"
	}
	return number(ms/60e3) + " min"
}

func percent(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	if p := 100 * v; p != 0 && math.Abs(p) < 9.95 {
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.0f %%", 100*v)
}

// ratio writes a ratio with two or three significant digits.
func ratio(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v < 1.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 9.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return layout.Grouped(strconv.FormatFloat(v, 'f', 0, 64))
}

func times(v float64) string { return ratio(v) + " times" }

// dollars writes an amount of money.
func dollars(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return layout.Dollars(v)
}

// plural writes a number and a noun, in the singular or plural.
func plural(n, thing string) string {
	if n != "1" {
		thing += "s"
	}
	return n + " " + thing
}
