package verdict

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"clifftop/internal/pattern"
	"clifftop/report"
	"clifftop/report/layout"
)

// Condition is a limit on how a number may change from the baseline to a variant, such as e2e_p95<=+2%.
type Condition struct {
	// Text is the condition as written, and its name in results.
	Text string `json:"text"`
	// Class limits a number of the requests of one class; empty for those of all.
	Class string `json:"class,omitempty"`
	// Path is the number's place in a [report.Summary], or in a [report.Class].
	Path string `json:"path"`
	// AtLeast says that the change must be at least Change; otherwise it must be at most Change.
	AtLeast bool `json:"at_least"`
	// Change is a fraction of the baseline's value, or a difference in the metric's unit where Absolute is set.
	Change   float64 `json:"change"`
	Absolute bool    `json:"absolute"`
}

// shortNames are names of metrics in conditions, beside those of limits of an SLO (ttft_p95) and paths.
var shortNames = map[string]string{
	"attainment": "goodput.attainment", "goodput": "goodput.requests_per_s", "cost": pathCost,
	"throughput": "throughput.output_tokens_per_s", "error_rate": "system.error_rate", "failures": "system.error_rate",
	"preemptions": "system.preemptions",
}

const (
	wantMetric = "want such as e2e_p95, ttft_mean, attainment, goodput, cost, throughput, error_rate, or a path of " +
		"docs/metrics.md"
	wantCondition = "want METRIC<=+2% or METRIC>=-1%: a change from the baseline, with its sign"
)

var conditionSyntax = pattern.New(`^(.*?)\s*(<=|>=|≤|≥)\s*([+−-])?\s*([0-9.eE]+)\s*(%)?$`)

// ParseCondition reads a condition: METRIC<=+2%, METRIC>=-1%, or with a difference in the metric's unit. METRIC is a
// name that [ParseMetric] reads.
func ParseCondition(text string) (Condition, error) {
	m := conditionSyntax.Get().FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return Condition{}, fmt.Errorf("%q is not a criterion (%s)", shortened(text), wantCondition)
	}
	class, metric, err := ParseMetric(m[1])
	if err != nil {
		return Condition{}, fmt.Errorf("%q: %w", shortened(text), err)
	}
	change, err := strconv.ParseFloat(m[4], 64)
	if err != nil {
		return Condition{}, fmt.Errorf("%q: %q is not a number (%s)", shortened(text), m[4], wantCondition)
	}
	if m[3] == "" && change != 0 {
		return Condition{}, fmt.Errorf("%q: the change %s%s has no sign (%s)", shortened(text), m[4], m[5],
			wantCondition)
	}
	if m[3] != "" && m[3] != "+" {
		change = -change
	}
	c := Condition{Text: strings.TrimSpace(text), Class: class, Path: metric.Path, Change: change,
		AtLeast: m[2] == ">=" || m[2] == "≥", Absolute: m[5] == ""}
	if !c.Absolute {
		c.Change /= 100
	}
	if metric.Better == report.Higher != c.AtLeast {
		want := map[bool]string{true: ">=", false: "<="}[metric.Better == report.Higher]
		return Condition{}, fmt.Errorf("%q: %s is better when %s (want %s)", shortened(text), metric.Title,
			map[bool]string{true: "higher", false: "lower"}[metric.Better == report.Higher], want)
	}
	return c, nil
}

// ParseMetric reads the name of a number that runs are compared by: a key of an SLO such as ttft_p95, a short name such
// as goodput, or a path of the catalogue of metrics. CLASS:NAME is the number of the requests of one class.
func ParseMetric(text string) (class string, m *report.Metric, err error) {
	name := strings.TrimSpace(text)
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		class, name = strings.TrimSpace(name[:i]), strings.TrimSpace(name[i+1:])
	}
	path := name
	if short, ok := shortNames[name]; ok {
		path = short
	} else if o, err := report.ParseObjective(name); err == nil {
		path = "latency_ms." + o.Metric + "." + o.Statistic()
	}
	m = report.FindMetric(path)
	switch {
	case m == nil || m.Of == nil:
		return "", nil, fmt.Errorf("%q is not a metric (%s)", shortened(name), wantMetric)
	case m.Better == report.Neither:
		return "", nil, fmt.Errorf("%q is neither better when higher nor when lower (%s)", shortened(name), wantMetric)
	}
	return class, m, nil
}

// shortened is a text of the user's, cut where it is long.
func shortened(text string) string {
	if r := []rune(text); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return text
}

func classed(class string, m *report.Metric) *report.Metric {
	own := *m
	own.Path, own.Title = "classes."+class+"."+m.Path, class+": "+m.Title
	own.Of = func(s *report.Summary) *float64 {
		i := slices.IndexFunc(s.Classes, func(k report.Class) bool { return k.Name == class })
		if i < 0 {
			return nil
		}
		return m.Reliable(s.Classes[i].Summary())
	}
	own.MinSamples = 0 // Of has looked
	return &own
}

// inWords says how large a number is against the baseline's: "TTFT p95 is 41 times as long".
func inWords(m *report.Metric, base, value float64) string {
	long, more, less := "high", "higher", "lower"
	if m.Unit == "ms" {
		long, more, less = "long", "longer", "shorter"
	}
	ratio := value / base
	switch {
	case base == value:
		return m.Title + " is the same"
	case !(base > 0 && value >= 0):
		return fmt.Sprintf("%s is %s, in the baseline %s", m.Title, m.Text(value), m.Text(base))
	case ratio >= 2:
		return fmt.Sprintf("%s is %s times as %s", m.Title, layout.Significant(ratio, 2), long)
	case ratio > 1:
		return fmt.Sprintf("%s is %s %% %s", m.Title, layout.Digits(100*(ratio-1)), more)
	}
	return fmt.Sprintf("%s is %s %% %s", m.Title, layout.Digits(100*(1-ratio)), less)
}
