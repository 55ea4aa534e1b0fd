package workload

import (
	"math"
	"slices"

	"clifftop/sim/clock"
)

// process is an arrival process of an open loop, in which requests arrive whether or not earlier ones have
// finished.
type process interface {
	// Rate returns the mean rate in requests per second; +Inf if all arrive at once.
	Rate() float64
	// Start begins a realisation at instant 0. Its random draws depend only on the seed and the entity, the number
	// of the phase.
	Start(seed, entity uint64) Arrivals
}

// Arrivals is one realisation of a process.
type Arrivals interface {
	// Next returns the instant of the next arrival; instants never decrease. [clock.Never] means no further
	// arrival.
	Next() clock.Time
}

// Phase describes an arrival process as in a scenario file, for example {process: gamma, rate: 8, cv: 2}. A [Spec]
// has one, or a list of named phases that follow each other. Zero fields are unset.
type Phase struct {
	// Name and Duration belong to a phase in a list; the last phase may have no end.
	Name     string         `yaml:"name,omitempty" json:"name,omitempty"`
	Duration clock.Duration `yaml:"duration,omitempty" json:"duration,omitempty"`
	// Process is one of processes.
	Process string `yaml:"process" json:"process"`
	// Rate is the mean rate of an open loop in requests per second.
	Rate float64 `yaml:"rate,omitempty" json:"rate,omitempty"`
	// CV is the coefficient of variation of the gaps: of gamma, and inside the bursts of on-off, where 0 means 1
	// (exponential gaps).
	CV float64 `yaml:"cv,omitempty" json:"cv,omitempty"`
	// Shape is the shape parameter of Weibull gaps; below 1 they cluster.
	Shape float64 `yaml:"shape,omitempty" json:"shape,omitempty"`
	// Sigma (standard deviation of the logarithm of the rate), Rho (its correlation from step to step) and Step
	// apply to cox.
	Sigma float64        `yaml:"sigma,omitempty" json:"sigma,omitempty"`
	Rho   float64        `yaml:"rho,omitempty" json:"rho,omitempty"`
	Step  clock.Duration `yaml:"step,omitempty" json:"step,omitempty"`
	// MeanOver applies to cox: the rate is the mean of each run (empty or "run"), of each hour ("hour"), or of the
	// process ("process").
	MeanOver string `yaml:"mean_over,omitempty" json:"mean_over,omitempty"`
	// OnMean and OffMean are the mean lengths of the bursts and pauses of on-off.
	OnMean  clock.Duration `yaml:"on_mean,omitempty" json:"on_mean,omitempty"`
	OffMean clock.Duration `yaml:"off_mean,omitempty" json:"off_mean,omitempty"`
	// OnSigma and OffSigma are the standard deviations of the logarithms of those lengths; 0 means [DefaultOnSigma]
	// and [DefaultOffSigma].
	OnSigma  float64 `yaml:"on_sigma,omitempty" json:"on_sigma,omitempty"`
	OffSigma float64 `yaml:"off_sigma,omitempty" json:"off_sigma,omitempty"`
	// Hourly are the relative rates of the hours of profile: 24 for a day from midnight, or 168 for a week from
	// Monday. Begin is the time of day or week at which the traffic starts.
	Hourly []float64      `yaml:"hourly,omitempty" json:"hourly,omitempty"`
	Begin  clock.Duration `yaml:"begin,omitempty" json:"begin,omitempty"`
	// Sources, TopShare, Top10Share and SourceCV apply to superposed: the number of clients, the shares of the
	// requests that the first and the first ten of them send, and the request-weighted quantiles, at 0.05, 0.25,
	// 0.5, 0.75 and 0.95, of the coefficients of variation of their gaps.
	Sources    int32     `yaml:"sources,omitempty" json:"sources,omitempty"`
	TopShare   float64   `yaml:"top_share,omitempty" json:"top_share,omitempty"`
	Top10Share float64   `yaml:"top10_share,omitempty" json:"top10_share,omitempty"`
	SourceCV   []float64 `yaml:"source_cv,omitempty,flow" json:"source_cv,omitempty"`
	// Users is the number of clients of a closed loop. Each sends its next request ThinkTime after the end of the
	// previous one. Their first requests are spread evenly over Ramp.
	Users     int32          `yaml:"users,omitempty" json:"users,omitempty"`
	ThinkTime Delay          `yaml:"think_time,omitempty" json:"think_time,omitzero"`
	Ramp      clock.Duration `yaml:"ramp,omitempty" json:"ramp,omitempty"`
}

// The values of [Phase.MeanOver].
const (
	MeanOverRun     = "run"
	MeanOverHour    = "hour"
	MeanOverProcess = "process"
)

// meansOver returns the values of [Phase.MeanOver]; the first is empty.
func meansOver() []string { return []string{"", MeanOverHour, MeanOverRun, MeanOverProcess} }

func processes() []string {
	return []string{"constant", "poisson", "gamma", "weibull", "all-at-once", "on-off", "cox", "profile",
		"superposed", "closed"}
}

// processKeys returns the fields of each process besides name and duration.
func processKeys(process string) (keys string, ok bool) {
	switch process {
	case "constant", "poisson":
		return "rate", true
	case "gamma":
		return "rate cv", true
	case "weibull":
		return "rate shape", true
	case "all-at-once":
		return "", true
	case "on-off":
		return "rate on_mean off_mean cv on_sigma off_sigma", true
	case "cox":
		return "rate sigma rho step mean_over", true
	case "profile":
		return "rate hourly begin", true
	case "superposed":
		return "rate sources top_share top10_share source_cv", true
	case "closed":
		return "users think_time ramp", true
	}
	return "", false
}

// open builds the process of an open loop and reports faults in its fields.
func (s Phase) open(key string, f *fieldFaults) process {
	switch s.Process {
	case "constant":
		f.rate(key, s.Rate)
		return constantGaps{s.Rate}
	case "poisson":
		f.rate(key, s.Rate)
		return Poisson{s.Rate}
	case "gamma":
		f.rate(key, s.Rate)
		f.number(key+".cv", s.CV, s.CV >= 0.01 && s.CV <= 100, "0.01 to 100")
		return gammaRenewal{PerSecond: s.Rate, CV: s.CV}
	case "weibull":
		f.rate(key, s.Rate)
		f.number(key+".shape", s.Shape, s.Shape >= 0.1 && s.Shape <= 100, "0.1 to 100")
		return weibullRenewal{PerSecond: s.Rate, Shape: s.Shape}
	case "all-at-once":
		return allAtOnce{}
	case "on-off":
		f.rate(key, s.Rate)
		f.lasting(key+".on_mean", s.OnMean)
		f.lasting(key+".off_mean", s.OffMean)
		f.number(key+".cv", s.CV, s.CV == 0 || s.CV >= 0.01 && s.CV <= 100, "0.01 to 100")
		f.number(key+".on_sigma", s.OnSigma, s.OnSigma >= 0 && s.OnSigma <= 5, "0 to 5")
		f.number(key+".off_sigma", s.OffSigma, s.OffSigma >= 0 && s.OffSigma <= 5, "0 to 5")
		return s.onOff()
	case "cox":
		f.rate(key, s.Rate)
		f.number(key+".sigma", s.Sigma, s.Sigma >= 0 && s.Sigma <= 5, "0 to 5")
		f.number(key+".rho", s.Rho, s.Rho >= 0 && s.Rho < 1, "0 or more, less than 1")
		f.lasting(key+".step", s.Step)
		if !slices.Contains(meansOver(), s.MeanOver) {
			f.add(key+".mean_over", "%q is not known (want %s)", s.MeanOver, orList(meansOver()[1:]))
		}
		return Cox{PerSecond: s.Rate, Sigma: s.Sigma, Rho: s.Rho, Step: s.Step}
	case "profile":
		f.rate(key, s.Rate)
		s.checkHourly(key, f)
		return Profile{PerSecond: s.Rate, Hourly: s.Hourly, Begin: s.Begin}
	case "superposed":
		f.rate(key, s.Rate)
		s.checkSuperposed(key, f)
		return Superposed{PerSecond: s.Rate, Sources: s.Sources, TopShare: s.TopShare, Top10Share: s.Top10Share,
			CV: s.SourceCV}
	}
	return nil
}

// check reports fields that do not belong to the process. It returns false if the process is unknown.
func (s Phase) check(key string, f *fieldFaults) (ok bool) {
	if s.Users != 0 && s.Rate != 0 {
		f.add(key, "users and rate are both set (want users for a closed loop, or rate for an open loop)")
	}
	known, ok := processKeys(s.Process)
	if !ok {
		switch {
		case s.Process == "":
			f.add(key+".process", "is missing (want %s)", orList(processes()))
		default:
			f.add(key+".process", "%q is not known (want %s)", s.Process, orList(processes()))
		}
		return false
	}
	fields := []field{
		{"cv", s.CV != 0}, {"shape", s.Shape != 0}, {"sigma", s.Sigma != 0}, {"rho", s.Rho != 0}, {"step", s.Step != 0},
		{"mean_over", s.MeanOver != ""},
		{"on_mean", s.OnMean != 0}, {"off_mean", s.OffMean != 0}, {"on_sigma", s.OnSigma != 0},
		{"off_sigma", s.OffSigma != 0},
		{"hourly", s.Hourly != nil}, {"begin", s.Begin != 0},
		{"sources", s.Sources != 0}, {"top_share", s.TopShare != 0}, {"top10_share", s.Top10Share != 0},
		{"source_cv", s.SourceCV != nil},
		{"think_time", s.ThinkTime != Delay{}}, {"ramp", s.Ramp != 0},
	}
	if s.Users == 0 || s.Rate == 0 {
		fields = append(fields, field{"rate", s.Rate != 0}, field{"users", s.Users != 0})
	}
	f.unused(key, s.Process, fields, known)
	return true
}

// maxRate is the highest rate in requests per second; gaps are stored in nanoseconds.
const maxRate = 1e7

func (f *fieldFaults) rate(key string, rate float64) {
	f.number(key+".rate", rate, rate > 0 && rate <= maxRate, "more than 0, at most 1e7")
}

func (f *fieldFaults) lasting(key string, d clock.Duration) {
	if d <= 0 || d > clock.MaxRun {
		f.add(key, "%v is not allowed (want more than 0, at most %v)", d, clock.MaxRun)
	}
}

// gap rounds a time in seconds to nanoseconds. The last bits of a float may differ between platforms; after this
// rounding about one draw in 10⁸ can differ.
func gap(seconds float64) clock.Duration {
	ns := math.Round(seconds * 1e9)
	if ns >= float64(clock.MaxRun/clock.Nanosecond) {
		return clock.MaxRun
	}
	return clock.Duration(ns) * clock.Nanosecond
}
