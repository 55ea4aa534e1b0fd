package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"clifftop/sim/clock"
)

// ReadSummary reads the JSON form of a summary. Written again, it gives the same bytes but for white space: the
// scenario stays as it is written.
func ReadSummary(data []byte) (*Summary, error) {
	scenario := json.RawMessage{}
	s := &Summary{Scenario: &scenario}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, err
	}
	if s.Schema != SummarySchema {
		return nil, fmt.Errorf("the schema is %q (want %s)", s.Schema, SummarySchema)
	}
	return s, nil
}

func (s *SLO) UnmarshalJSON(data []byte) error {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	*s = SLO{}
	for key, value := range m {
		var err error
		switch key {
		case "attainment":
			err = json.Unmarshal(value, &s.Attainment)
		case "wait_probability":
			err = json.Unmarshal(value, &s.WaitProbability)
		default:
			var o Objective
			if o, err = readObjective(key, value); err == nil {
				s.Objectives = append(s.Objectives, o)
			}
		}
		if err != nil {
			return fmt.Errorf("slo.%s: %w", key, err)
		}
	}
	slices.SortFunc(s.Objectives, func(a, b Objective) int { return strings.Compare(a.Key(), b.Key()) })
	return nil
}

// readObjective reads a limit, such as "ttft_p95": "800ms".
func readObjective(key string, value json.RawMessage) (Objective, error) {
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return Objective{}, err
	}
	limit, err := time.ParseDuration(text)
	if err != nil || limit < 0 || int64(limit) > math.MaxInt64/int64(clock.Nanosecond) {
		return Objective{}, fmt.Errorf("%q is not a duration", text)
	}
	o, err := ParseObjective(key)
	o.Limit = clock.Duration(limit) * clock.Nanosecond
	return o, err
}
