package trace

import (
	"bytes"
	"encoding/csv"
	"math"
	"strconv"
	"strings"

	"clifftop/sim/clock"
)

// instant is a point on the time axis of the trace.
type instant struct {
	seconds int64 // since the origin
	ps      int64 // 0 … 10¹²−1
}

const second = int64(clock.Second)

func instantOf(d clock.Duration) instant { return instant{int64(d) / second, int64(d) % second} }

// minus returns the time from o to t, of any length, as an instant.
func (t instant) minus(o instant) instant {
	d := instant{t.seconds - o.seconds, t.ps - o.ps}
	if d.ps < 0 {
		d.seconds, d.ps = d.seconds-1, d.ps+second
	}
	return d
}

func (t instant) before(o instant) bool {
	return t.seconds < o.seconds || t.seconds == o.seconds && t.ps < o.ps
}

// sub returns the time from o to t; ok is false if it exceeds the longest run.
func (t instant) sub(o instant) (d clock.Time, ok bool) {
	s := t.seconds - o.seconds
	if s > int64(clock.MaxRun)/second || s < -int64(clock.MaxRun)/second {
		return 0, false
	}
	d = clock.Time(s*second + t.ps - o.ps)
	return d, d <= clock.Time(clock.MaxRun)
}

// columns splits a CSV row. Rows with a quote are parsed by encoding/csv.
func columns(line []byte, into [][]byte) ([][]byte, *fault) {
	into = into[:0]
	if bytes.IndexByte(line, '"') >= 0 {
		record, err := csv.NewReader(bytes.NewReader(line)).Read()
		if err != nil {
			return nil, faulty(Fields, line, "has a stray quote", "quoted columns whole and in one line")
		}
		for _, f := range record {
			into = append(into, []byte(strings.TrimSpace(f)))
		}
		return into, nil
	}
	for {
		i := bytes.IndexByte(line, ',')
		if i < 0 {
			return append(into, trim(line)), nil
		}
		into = append(into, trim(line[:i]))
		line = line[i+1:]
	}
}

// trim works as bytes.TrimSpace, and is faster if there is nothing to trim.
func trim(b []byte) []byte {
	if n := len(b); n > 0 && b[0]-'!' < 0x7f-'!' && b[n-1]-'!' < 0x7f-'!' {
		return b
	}
	return bytes.TrimSpace(b)
}

// count parses a number of tokens.
func count(b []byte, limit int32) (int32, *fault) {
	v, digits := int64(0), 0
	negative := len(b) > 0 && b[0] == '-'
	rest := b
	if negative {
		rest = b[1:]
	}
	for digits < len(rest) && rest[digits]-'0' <= 9 {
		if v < 1<<40 {
			v = v*10 + int64(rest[digits]-'0')
		}
		digits++
	}
	rest = rest[digits:]
	if len(rest) > 1 && rest[0] == '.' && len(bytes.Trim(rest[1:], "0")) == 0 {
		rest = nil // a value such as 12.0 is a whole number
	}
	switch {
	case digits == 0 || len(rest) > 0:
		return 0, faulty(Int, b, "is not a whole number", "a number of tokens")
	case v > math.MaxInt32:
		return 0, faulty(Int, b, "does not fit 32 bits", "a number of tokens")
	case negative && v > 0:
		return 0, faulty(Range, b, "is negative", "a number of tokens")
	case v > int64(limit):
		return 0, faulty(Range, b, "is above the limit", "at most "+strconv.Itoa(int(limit))+" tokens")
	}
	return int32(v), nil
}

type unit struct {
	name  string
	ps    int64
	power int // of ten, in seconds
}

var (
	inSeconds = unit{"seconds", second, 0}
	inMillis  = unit{"milliseconds", second / 1e3, -3}
	inNanos   = unit{"nanoseconds", second / 1e9, -9}
)

// decimal parses a number of units exactly to the picosecond and truncates finer digits.
func decimal(b []byte, u unit) (instant, *fault) {
	var whole, fraction int64
	i := 0
	for ; i < len(b) && b[i]-'0' <= 9 && i < 18; i++ {
		whole = whole*10 + int64(b[i]-'0')
	}
	simple := i > 0
	if simple && i < len(b) && b[i] == '.' {
		scale := u.ps
		i++
		for ; i < len(b) && b[i]-'0' <= 9; i++ {
			scale /= 10
			fraction += int64(b[i]-'0') * scale
		}
	}
	if !simple || i < len(b) {
		return slowDecimal(b, u)
	}
	per := second / u.ps
	return instant{whole / per, whole%per*u.ps + fraction}, nil
}

// slowDecimal parses exponents and signs.
func slowDecimal(b []byte, u unit) (instant, *fault) {
	want := u.name + " from the start, 0 or more"
	v, err := strconv.ParseFloat(string(b), 64)
	v *= math.Pow10(u.power)
	switch {
	case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		return instant{}, faulty(Time, b, "is not a time", want)
	case v < 0:
		return instant{}, faulty(Time, b, "is negative", want)
	case v > clock.MaxRun.Seconds():
		return instant{}, faulty(Time, b, "is out of range", "at most 100 days")
	}
	return instantOf(clock.FromSeconds(v)), nil
}

// stamps parses calendar times. It caches the last date.
type stamps struct {
	date [10]byte
	days int64
}

const stampForm = "2006-01-02 15:04:05[.fraction][zone]"

// parse parses 2006-01-02 15:04:05 with T or a space between, an optional fraction, and an optional zone: Z, +01,
// +0100 or +01:00. The default zone is UTC.
func (s *stamps) parse(b []byte) (instant, *fault) {
	t, ok := s.read(b)
	if !ok {
		return t, faulty(Time, b, "is not a timestamp", stampForm)
	}
	return t, nil
}

func (s *stamps) read(b []byte) (t instant, ok bool) {
	if len(b) < 19 || b[10] != ' ' && b[10] != 'T' || b[13] != ':' || b[16] != ':' {
		return t, false
	}
	if string(b[:10]) != string(s.date[:]) {
		days, ok := civilDays(b[:10])
		if !ok {
			return t, false
		}
		copy(s.date[:], b)
		s.days = days
	}
	h, m, sec := two(b[11:]), two(b[14:]), two(b[17:])
	if h > 23 || m > 59 || sec > 59 {
		return t, false
	}
	t.seconds = s.days*86400 + int64(h*3600+m*60+sec)
	b = b[19:]
	if len(b) > 0 && b[0] == '.' {
		scale := second
		i := 1
		for ; i < len(b) && b[i]-'0' <= 9; i++ {
			scale /= 10
			t.ps += int64(b[i]-'0') * scale
		}
		if i == 1 {
			return t, false
		}
		b = b[i:]
	}
	offset, ok := zone(b)
	t.seconds -= offset
	return t, ok
}

// zone parses an offset from UTC in seconds.
func zone(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) == 1 && (b[0] == 'Z' || b[0] == 'z') {
		return 0, true
	}
	sign := int64(1)
	switch {
	case b[0] == '-':
		sign = -1
	case b[0] != '+':
		return 0, false
	}
	h, m := 99, 0
	switch b = b[1:]; {
	case len(b) == 2:
		h = two(b)
	case len(b) == 4:
		h, m = two(b), two(b[2:])
	case len(b) == 5 && b[2] == ':':
		h, m = two(b), two(b[3:])
	}
	return sign * int64(h*3600+m*60), h <= 23 && m <= 59
}

// two parses two digits; it returns 100 or more for anything else.
func two(b []byte) int {
	t, u := b[0]-'0', b[1]-'0'
	if t > 9 || u > 9 {
		return 100
	}
	return int(t)*10 + int(u)
}

// civilDays returns the number of days from 1970-01-01 to a date of the Gregorian calendar. It counts in years that
// begin in March, so that the leap day comes last.
func civilDays(b []byte) (int64, bool) {
	century, year, month, day := two(b), two(b[2:]), two(b[5:]), two(b[8:])
	if century > 99 || year > 99 || b[4] != '-' || b[7] != '-' || month < 1 || month > 12 || day < 1 {
		return 0, false
	}
	y := int64(century*100 + year)
	length := 30 + (month+month/8)%2
	if month == 2 {
		length = 28
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			length = 29
		}
	}
	if day > length {
		return 0, false
	}
	m := int64(month) - 3
	if m < 0 {
		m += 12
		y--
	}
	y += 400 // year 0 begins in March of the year before
	return (y/400)*146097 + (y%400)*365 + (y%400)/4 - (y%400)/100 + (153*m+2)/5 + int64(day) - 1 - 719468 - 146097, true
}
