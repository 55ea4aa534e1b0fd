package layout

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Digits prints a number to about three significant digits, without an exponent unless it is tiny.
func Digits(v float64) string {
	switch m := math.Abs(v); {
	case m >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case m >= 9.995:
		return fmt.Sprintf("%.1f", v)
	case m >= .9995:
		return fmt.Sprintf("%.2f", v)
	case m >= .0005:
		return fmt.Sprintf("%.3f", v)
	case m == 0:
		return "0"
	default:
		return fmt.Sprintf("%.1e", v)
	}
}

// Significant prints a number to so many significant digits, with all of those before the point and without zeros at
// the end: a load, a key's value, a time.
func Significant(v float64, digits int) string {
	if math.Abs(v) >= math.Pow10(digits-1) {
		return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', digits, 64)
}

// Dollars prints an amount: with tenths of a cent below a dollar, with cents below a hundred, and then with commas.
func Dollars(v float64) string {
	switch {
	case v != 0 && v < .01:
		return "$" + strconv.FormatFloat(v, 'g', 3, 64)
	case v < .9995:
		return "$" + strconv.FormatFloat(v, 'f', 3, 64)
	case v < 99.995:
		return "$" + strconv.FormatFloat(v, 'f', 2, 64)
	}
	return "$" + Grouped(strconv.FormatFloat(v, 'f', 0, 64))
}

// Percent prints a fraction.
func Percent(fraction float64) string { return Digits(100*fraction) + " %" }

// PercentCell is [Percent] of a fraction that may be unknown: a dash for nil.
func PercentCell(fraction *float64) string {
	if fraction == nil {
		return "–"
	}
	return Percent(*fraction)
}

// Cell prints a number that may be unknown.
func Cell(v *float64) string {
	if v == nil {
		return "–"
	}
	return Digits(*v)
}

// Grouped puts a comma after every third digit of a whole number from the right.
func Grouped(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// AppendThousandths appends v/1000, rounded down, as a number with so many decimals; v is not negative. So picoseconds
// become seconds with nine decimals, or milliseconds with six.
func AppendThousandths(b []byte, v int64, decimals int) []byte {
	var digits [24]byte
	i := len(digits)
	u := uint64(v) / 1000
	for range decimals {
		i--
		digits[i] = byte('0' + u%10)
		u /= 10
	}
	i--
	digits[i] = '.'
	for {
		i--
		digits[i] = byte('0' + u%10)
		if u /= 10; u == 0 {
			return append(b, digits[i:]...)
		}
	}
}

// Price writes an amount in US dollars, or a dash for nil.
func Price(x *float64) string {
	if x == nil {
		return "–"
	}
	return Dollars(*x)
}

// Milliseconds writes a latency in the unit that suits it.
func Milliseconds(ms float64) string {
	if ms >= 1000 {
		return Digits(ms/1000) + " s"
	}
	return Digits(ms) + " ms"
}

// Seconds prints a number of seconds for people.
func Seconds(s float64) string { return Significant(s, 4) + " s" }
