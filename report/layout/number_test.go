package layout

import "testing"

func TestSignificant(t *testing.T) {
	for _, c := range []struct {
		v      float64
		digits int
		want   string
	}{
		{0, 4, "0"}, {13.525, 4, "13.53"}, {22.5, 4, "22.5"}, {999.96, 4, "1000"}, {86400, 4, "86400"},
		{250_689.3, 4, "250689"},
		{1_048_576, 4, "1048576"}, {-16384, 3, "-16384"}, {9_999_999.6, 7, "10000000"}, {9999.96, 5, "10000"},
		{.25, 4, "0.25"}, {.000_012_34, 3, "1.23e-05"},
	} {
		if got := Significant(c.v, c.digits); got != c.want {
			t.Errorf("Significant(%v, %d) = %q, want %q", c.v, c.digits, got, c.want)
		}
	}
}

func TestDollars(t *testing.T) {
	for v, want := range map[float64]string{0: "$0.000", .000_278: "$0.000278", .15: "$0.150", .9996: "$1.00",
		2.7: "$2.70", 99.999: "$100", 1_299.4: "$1,299", 4_000_000: "$4,000,000"} {
		if got := Dollars(v); got != want {
			t.Errorf("Dollars(%v) = %q, want %q", v, got, want)
		}
	}
}
