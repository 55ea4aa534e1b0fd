package scenario

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestHourly reads profiles by name and by value, and writes them as they were.
func TestHourly(t *testing.T) {
	day := "[" + strings.Repeat("1, ", 23) + "2.5]"
	for hourly, want := range map[string]string{
		"office-hours": `"hourly":"office-hours"`, day: `"hourly":` + strings.ReplaceAll(day, " ", ""),
		"office": "office-hours", "[1, 2]": "2 values are not allowed (want 24",
		"{a: 1}":                             "want 24 or 168 relative rates",
		strings.Replace(day, "2.5", "-1", 1): "-1 is not allowed",
		strings.ReplaceAll(strings.Replace(day, "2.5", "0", 1), "1", "0"): "all hours are 0",
	} {
		var got string
		s, err := Parse("s.yaml", []byte("workload: {arrivals: {process: profile, rate: 2, begin: 9h, hourly: "+hourly+"}}\n"))
		if err == nil {
			var u *Setup
			if u, err = s.Resolve(); err == nil {
				b, e := json.Marshal(u.Scenario.Workload.Arrivals)
				got, err = string(b), e
			}
		}
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", hourly, got, want)
		}
	}
}
