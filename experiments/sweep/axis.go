package sweep

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
)

// axis is what a search varies.
type axis struct {
	key   string
	unit  string  // "s" for durations
	whole bool    // only whole numbers
	load  bool    // More of it is surely worse
	start float64 // where to begin; NaN if unknown
}

// newAxis finds out what values a key takes, and resolves the scenario at one of them.
func newAxis(s *scenario.Scenario, o CapacityOptions) (axis, *scenario.Setup, error) {
	a := axis{key: o.Over, whole: o.Over == scenario.UsersKey, load: o.Over == scenario.RateKey ||
		o.Over == scenario.UsersKey, start: math.NaN()}
	ranged := o.Low != 0 || o.High != 0
	switch {
	case ranged:
		a.start = o.High
	case a.load:
		a.start = 1
	default:
		u, err := s.Resolve()
		if err != nil {
			return a, nil, err
		}
		if a.start, a.unit = numberAt(u.Scenario, a.key); math.IsNaN(a.start) {
			if _, err := s.With(scenario.Setting{Key: a.key, Value: "1", Flag: "--over " + a.key}); err != nil {
				return a, nil, err
			}
			return a, nil, yamldoc.Faults{{Where: "--over", Key: a.key,
				Problem: "the key has no value to start from (give a range: KEY=LO..HI)"}}
		}
	}
	base, err := a.at(s, a.start)
	if err != nil && a.unit == "" {
		a.unit = "s"
		var again error
		if base, again = a.at(s, a.start); again != nil {
			return a, nil, err
		}
	}
	if err != nil && base == nil {
		return a, nil, err
	}
	if !a.load {
		_, err := s.With(a.setting(math.Floor(a.start) + .5))
		_, near := s.With(a.setting(a.start * (1 - 1e-9)))
		a.whole = err != nil && near != nil && a.start == math.Trunc(a.start)
	}
	return a, base, nil
}

// numberAt is the number, or the duration in seconds, that a resolved scenario has under a key; NaN for anything else.
func numberAt(s *scenario.Scenario, key string) (x float64, suffix string) {
	var v any
	if b, err := json.Marshal(s); err != nil || json.Unmarshal(b, &v) != nil {
		return math.NaN(), ""
	}
	for _, name := range strings.Split(key, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[name]
		case []any:
			if k, err := strconv.Atoi(name); err == nil && k >= 0 && k < len(at) {
				v = at[k]
			} else {
				v = nil
			}
		default:
			v = nil
		}
	}
	switch v := v.(type) {
	case float64:
		return v, ""
	case string:
		if d, ok := yamldoc.ParseDuration(v); ok {
			return d.Seconds(), "s"
		}
	}
	return math.NaN(), ""
}

func (a axis) setting(x float64) scenario.Setting {
	return scenario.Setting{Key: a.key, Value: strconv.FormatFloat(x, 'f', -1, 64) + a.unit, Flag: "--over " + a.key}
}

func (a axis) at(s *scenario.Scenario, x float64, more ...scenario.Setting) (*scenario.Setup, error) {
	t, err := s.With(append([]scenario.Setting{a.setting(x)}, more...)...)
	if err != nil {
		return nil, err
	}
	return t.Resolve()
}

// round is the value that is tried for x: a whole number, or four digits.
func (a axis) round(x float64) float64 {
	if a.whole {
		return math.Round(x)
	}
	return significant(x, 4)
}

// down is x with three digits or as a whole number: not more than x, or not less if more helps.
func (a axis) down(x float64, helps bool) float64 {
	scale := 1.0
	if !a.whole && x != 0 {
		const digits = 3
		scale = math.Pow(10, math.Floor(math.Log10(math.Abs(x)))-digits+1)
	}
	const slack = 1e-9 // of rounding
	if helps {
		return significant(math.Ceil(x/scale-slack)*scale, 12)
	}
	return significant(math.Floor(x/scale+slack)*scale, 12)
}

// between is a value amid two others; false where there is none.
func (a axis) between(x, y float64) (float64, bool) {
	x, y = min(x, y), max(x, y)
	m := (x + y) / 2
	if x > 0 && !a.whole {
		m = math.Sqrt(x * y)
	}
	m = a.round(m)
	return m, m > x && m < y
}

// step is a value about a factor away, upwards or downwards.
func (a axis) step(x, factor float64, up bool) float64 {
	away := x * factor
	if !up {
		away = x / factor
	}
	if x <= 0 {
		away = x + map[bool]float64{true: factor, false: -factor}[up]
	}
	away = a.round(away)
	if a.whole && away == x {
		away += map[bool]float64{true: 1, false: -1}[up]
	}
	return away
}

// near says that two values are as near as asked for.
func (a axis) near(x, y, precision float64) bool {
	gap := math.Abs(x - y)
	return a.whole && gap <= 1 || gap <= precision*min(math.Abs(x), math.Abs(y))*(1+1e-9)
}
