package plot

import (
	"math"
	"strconv"
	"strings"
)

// sig writes v with n significant digits and no needless zero; with an exponent only if it is tiny.
func sig(v float64, n int) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	if math.Abs(v) < 0.99e-4 {
		return strconv.FormatFloat(v, 'g', n, 64)
	}
	// Rounding first says how many digits stand before the point.
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'e', n-1, 64), 64)
	decimals := max(0, n-1-int(math.Floor(math.Log10(math.Abs(v))+1e-9)))
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// scaled writes large numbers with k, M, G or T: 950, 1.2k, 46k, 3.4M.
func scaled(v float64, n int) string {
	units := []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}
	for _, u := range units {
		// 999.96k is 1M at three digits.
		if math.Abs(v) >= u.size*(1-0.5*math.Pow10(-n)) {
			return sig(v/u.size, n) + u.name
		}
	}
	return sig(v, n)
}

// amount is how axes write their values where nothing else is said.
func amount(v float64) string { return scaled(v, 3) }

// duration writes milliseconds in the unit that suits them: 0.5 ms, 80 ms, 1.2 s, 3 min.
func duration(ms float64, n int) string {
	switch {
	case ms == 0:
		return "0 s"
	case math.Abs(ms) < 1:
		return sig(ms*1e3, n) + " µs"
	case math.Abs(ms) < 999.5:
		return sig(ms, n) + " ms"
	case math.Abs(ms) < 6e5 || ms == 1e6: // a tick of 16.7 min would be odd
		return sig(ms/1e3, n) + " s"
	case math.Abs(ms) < 7.2e6:
		return sig(ms/6e4, n) + " min"
	}
	return scaled(ms/3.6e6, n) + " h"
}

func percent(v float64) string {
	switch p := v * 100; {
	case p > 0 && p < 1, p > 99 && p < 100:
		return sig(p, 2+int(p/99)) + " %"
	default:
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	}
}
