package estimate

import (
	"math"
	"strconv"
	"strings"

	"clifftop/report/layout"
)

// amount formats a number with four significant digits, or a whole number with all digits in groups of three.
func amount(v float64) string {
	switch m := math.Abs(v); {
	case math.IsInf(v, 0) || math.IsNaN(v):
		return "–"
	case m == math.Trunc(m) && m < 1e15, m >= 9999.5 && m < 1e15:
		return layout.Grouped(strconv.FormatFloat(v, 'f', 0, 64))
	case m >= 1e15 || m < 1e-6:
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	decimals := max(0, 3-int(math.Floor(math.Log10(math.Abs(v)))))
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	if !strings.Contains(text, ".") {
		text = layout.Grouped(text)
	}
	return text
}

func percent(fraction float64) string { return amount(100*fraction) + " %" }
