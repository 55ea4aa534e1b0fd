package yamldoc

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"clifftop/internal/pattern"
)

// ByteSize is a number of bytes with a unit: kB, MB, GB, TB, or KiB, MiB, GiB, TiB.
type ByteSize float64

// ByteRate is a number of bytes per second with a unit: MB/s, GB/s, TB/s, or MiB/s, GiB/s, TiB/s, or of bits: Gb/s.
type ByteRate float64

const (
	wantByteSize = "a size with a unit of kB, MB, GB, TB, KiB, MiB, GiB or TiB, such as 64GiB"
	wantByteRate = "a bandwidth with a unit of MB/s, GB/s, TB/s, MiB/s, GiB/s, TiB/s or Gb/s, such as 25GB/s"
	// ByteSizePattern is the syntax of a [ByteSize].
	ByteSizePattern = `^[0-9]+(\.[0-9]+)? ?(kB|MB|GB|TB|KiB|MiB|GiB|TiB)$`
	// ByteRatePattern is the syntax of a [ByteRate].
	ByteRatePattern = `^[0-9]+(\.[0-9]+)? ?(MB|GB|TB|MiB|GiB|TiB|Gb)/s$`
	mostBytes       = 1e18
)

var (
	byteSizeSyntax = pattern.New(ByteSizePattern)
	byteRateSyntax = pattern.New(ByteRatePattern)
	byteUnits      = map[string]float64{
		"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
		"Gb": 1e9 / 8,
	}
)

func (b *ByteSize) Decode(d *Decoder, n *Node, key string) {
	decodeBytes((*float64)(b), d, n, key, byteSizeSyntax, 1, wantByteSize)
}

func (b *ByteRate) Decode(d *Decoder, n *Node, key string) {
	decodeBytes((*float64)(b), d, n, key, byteRateSyntax, leastBytesPerSecond, wantByteRate)
}

// leastBytesPerSecond is a bandwidth over which KV comes before the clock ends.
const leastBytesPerSecond = 1e6

// decodeBytes reads a number of at least so many bytes with a unit of a syntax.
func decodeBytes(to *float64, d *Decoder, n *Node, key string, syntax *pattern.Pattern, least float64,
	want string) {
	found := syntax.Get().FindStringSubmatch(n.Text)
	if n.Kind != Text || found == nil {
		d.Fault(n.At, key, fmt.Sprintf("%s (want %s)", n.Describe(), want), "")
		return
	}
	number := strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(n.Text, "/s"), found[2]))
	x, err := strconv.ParseFloat(number, 64)
	if x *= byteUnits[found[2]]; err != nil || x < least || x > mostBytes {
		limits := "more than 0, at most a million TB"
		if least == leastBytesPerSecond {
			limits = "1 MB/s to a million TB/s"
		}
		d.Refuse(n, key, limits)
		return
	}
	*to = x
}

// MarshalText implements [encoding.TextMarshaler].
func (b ByteSize) MarshalText() ([]byte, error) {
	return bytesText(float64(b), "TiB GiB MiB KiB", "kB", "")
}

// MarshalText implements [encoding.TextMarshaler].
func (b ByteRate) MarshalText() ([]byte, error) { return bytesText(float64(b), "TB GB", "MB", "/s") }

// bytesText writes a number of bytes in the first of the units that divides it, or in the last one.
func bytesText(x float64, units, last, suffix string) ([]byte, error) {
	unit := last
	for _, u := range strings.Fields(units) {
		if math.Mod(x, byteUnits[u]) == 0 {
			unit = u
			break
		}
	}
	return []byte(strconv.FormatFloat(x/byteUnits[unit], 'f', -1, 64) + unit + suffix), nil
}
