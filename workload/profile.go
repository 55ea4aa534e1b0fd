package workload

import (
	"math/rand/v2"

	"clifftop/sim/clock"
)

// Profile is a Poisson process whose rate follows the hours of the day or week.
type Profile struct {
	PerSecond float64        // mean rate over the whole profile
	Hourly    []float64      // relative rates of the hours from midnight on, repeated
	Begin     clock.Duration // time of day or week at which the traffic starts
}

// Rate returns PerSecond, the mean over the whole profile.
func (p Profile) Rate() float64 { return p.PerSecond }

// Start starts at the time Begin of the profile.
func (p Profile) Start(seed, entity uint64) Arrivals {
	sum := 0.0
	for _, h := range p.Hourly {
		sum += h
	}
	return &profile{Profile: p, gaps: rand.New(arrivalRNG(seed, entity)),
		unit: p.PerSecond * float64(len(p.Hourly)) / sum}
}

type profile struct {
	Profile
	gaps *rand.Rand
	unit float64 // requests per second at an Hourly value of 1
	at   clock.Time
}

// Next spends a unit exponential at the rate of each hour in turn (time change of a Poisson process).
func (p *profile) Next() clock.Time {
	need := p.gaps.ExpFloat64()
	for p.at < clock.Time(clock.MaxRun) {
		now := p.at.Add(p.Begin % clock.Hour)
		hours := int64(now)/int64(clock.Hour) + int64(p.Begin/clock.Hour)
		left := clock.Hour - clock.Duration(now)%clock.Hour
		rate := p.unit * p.Hourly[hours%int64(len(p.Hourly))]
		if rate > 0 {
			if wait := gap(need / rate); wait < left {
				p.at = p.at.Add(wait)
				return p.at
			}
		}
		need = max(0, need-float64(rate*left.Seconds()))
		p.at = p.at.Add(left)
	}
	return clock.Never
}

// HourlyProfile is a named profile of relative rates: 24 for a day, or 168 for a week from Monday.
type HourlyProfile struct {
	Name, Source string
	Hourly       []float64
}

// week repeats a working day, scaled down at the weekend.
func week(day []float64, weekend float64) []float64 {
	var hours []float64
	for d := range 7 {
		for _, h := range day {
			if d >= 5 {
				h *= weekend
			}
			hours = append(hours, h)
		}
	}
	return hours
}

// HourlyProfiles returns the named profiles.
func HourlyProfiles() []HourlyProfile {
	const azure = "Azure LLM inference trace 2024, read off the publisher's figures (CC-BY-4.0)"
	office := []float64{.051, .041, .031, .031, .041, .082, .256, .716, 1.534, 2.25, 2.454, 2.147, 1.636, 1.943,
		2.352, 2.352, 2.147, 1.636, .92, .511, .358, .256, .153, .102}
	chat := []float64{.89, .972, .955, .793, .803, .874, 1.008, 1.086, 1.11, 1.08, .974, 1.03, 1.152, 1.274, 1.339,
		1.245, 1.131, 1.085, 1.08, 1.013, .921, .77, .692, .723}
	code := []float64{.693, .667, .636, .514, .413, .333, .29, .242, .228, .234, .254, .382, .7, 1.2, 1.683, 1.801,
		1.723, 1.987, 2.214, 2.261, 2.077, 1.527, 1.1, .839}
	return []HourlyProfile{
		{"office-hours", "judgement", office},
		{"chat-azure24-weekday", azure, chat},
		{"chat-azure24-week", azure, week(chat, 0.57)},
		{"code-azure24-weekday", azure, code},
		{"code-azure24-week", azure, week(code, 0.31)},
		{"burstgpt", "BurstGPT, first file, from published hourly counts of sessions (CC-BY-4.0)",
			[]float64{.96, .902, .574, .517, .378, .367, .214, .231, .278, .38, .892, 1.293, 1.786, 1.515, 1.85, 1.44,
				1.492, 1.366, 1.23, 1.631, 1.376, 1.186, 1.116, 1.029}},
		{"reasoning-r1", "ServeGen, DeepSeek-R1, one day (Apache-2.0); its time zone is not known",
			[]float64{1.206, 1.389, 2.034, 1.788, 1.064, .908, .749, .577, .596, .664, .81, .83, .447, .545, .684,
				.704, .878, .553, .749, .587, 1.24, 1.621, 2.194, 1.181}},
		{"api-large", "ServeGen, m-large, two weeks (Apache-2.0); its time zone is not known",
			[]float64{.994, 1.002, .986, .936, .908, .883, .854, .817, .788, .868, 1.046, 1.106, .971, .981, 1.047,
				1.047, 1.109, 1.078, 1.04, 1.143, 1.133, 1.074, 1.103, 1.086}},
	}
}

func (s Phase) checkHourly(key string, f *fieldFaults) {
	sum := 0.0
	for _, h := range s.Hourly {
		f.number(key+".hourly", h, h >= 0 && h <= 1e6, "0 to 1e6")
		sum += h
	}
	if n := len(s.Hourly); n != 24 && n != 168 {
		f.add(key+".hourly", "%d values are not allowed (want 24 for a day, or 168 for a week)", n)
	} else if sum == 0 {
		f.add(key+".hourly", "all hours are 0 (want a rate in one of them)")
	}
	if s.Begin < 0 || s.Begin >= 7*clock.Day {
		f.add(key+".begin", "%v is not allowed (want 0 or more, less than 168h)", s.Begin)
	}
}

var _ process = Profile{}
