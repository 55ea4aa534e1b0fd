package planning

import (
	"encoding/json"
	"math"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/clock"
	"clifftop/workload"
	"clifftop/workload/trace"
)

// Demand is the traffic as planning sees it: how much there is in the busiest hour, and by hour.
type Demand struct {
	// Rate is the mean, and Peak that of the busiest hour, in requests per second.
	Rate, Peak float64
	// Hourly are the rates of the hours of a day, of a week, or of a trace; nil where the rate is the same always.
	Hourly []float64
	// Process says in a word how requests arrive in the busiest hour.
	Process string
	// Note says what was done to find the peak; it may be empty.
	Note string

	setup *scenario.Setup
	stage scenario.Stage // of synthetic traffic
	from  clock.Time     // of the busiest hour of a trace
	slice bool
	rows  int            // of a trace, in its busiest hour
	span  clock.Duration // of these
}

// NewDemand finds the busiest hour of the traffic. Traffic without a rate of its own has none, which is a fault.
func NewDemand(u *scenario.Setup) (*Demand, error) {
	d := &Demand{setup: u}
	if u.Traffic.Recording != nil {
		return d, d.ofTrace()
	}
	const want = "(want a rate of requests: --rate, plan.peak_rate, or another workload.arrivals.process)"
	s := u.Scenario
	if u.Traffic.Closed {
		return nil, s.Fault(s.FirstGiven("workload.arrivals.users", "workload.arrivals", "workload"),
			"a closed loop has no peak hour %s", want)
	}
	stages := s.Workload.Arrivals.Stages
	for _, stage := range stages {
		if rate := optional.Value(stage.Rate); rate > optional.Value(d.stage.Rate) || d.stage.Process == "" {
			d.stage = stage
		}
	}
	if optional.Value(d.stage.Rate) == 0 {
		return nil, s.Fault("workload.arrivals", "requests that arrive %s have no peak hour %s", d.stage.Process, want)
	}
	d.Rate, d.Peak, d.Process = u.Traffic.Rate, *d.stage.Rate, d.stage.Process
	if len(stages) > 1 {
		d.Note = "the stage with the highest rate is planned for"
	}
	if h := d.stage.Hourly; h != nil {
		d.course(h.Values)
	}
	d.stage.Name, d.stage.Duration = "", nil
	return d, nil
}

// course turns relative rates by the hour into rates. The busiest hour is planned for, with Poisson arrivals.
func (d *Demand) course(relative []float64) {
	sum := 0.0
	for _, h := range relative {
		sum += h
	}
	for _, h := range relative {
		rate := d.Rate * h * float64(len(relative)) / sum
		d.Hourly = append(d.Hourly, rate)
		d.Peak = max(d.Peak, rate)
	}
	d.stage = scenario.Stage{Process: "poisson"}
	d.Process = "poisson"
}

// ofTrace counts the requests of each hour. A recording of less than two hours is taken as the busiest one.
func (d *Demand) ofTrace() error {
	t := d.setup.Traffic
	d.Rate, d.Peak, d.Process = t.Rate, t.Rate, "as recorded"
	if t.Recording.Timeless {
		d.Process = "poisson"
	}
	src, err := t.Recording.Open()
	if err != nil {
		return err
	}
	hours, rows, last, err := byHour(src)
	if err != nil {
		return err
	}
	if d.Rate == 0 || len(hours) == 0 {
		return d.setup.Scenario.Fault("workload.trace",
			"the trace has no rate, so it has no peak hour (set workload.trace.rate)")
	}
	if last < clock.Time(2*clock.Hour) {
		for _, n := range rows {
			d.rows += n
		}
		d.span = last.Sub(0)
		d.Note = "the recording is shorter than two hours: all of it is taken as the busiest hour"
		return nil
	}
	if last < clock.Time(len(hours))*clock.Time(clock.Hour)-clock.Time(clock.Hour/2) {
		hours = hours[:len(hours)-1] // less than half of it was recorded
	}
	d.Hourly = hours
	busiest := 0
	for i, rate := range hours {
		if rate > hours[busiest] {
			busiest = i
		}
	}
	d.Peak, d.from, d.slice = hours[busiest], clock.Time(busiest)*clock.Time(clock.Hour), true
	d.rows, d.span = rows[busiest], clock.Hour
	return nil
}

// byHour are the rate and the number of the requests of a recording in each of its hours, and when the last one comes.
func byHour(src workload.Source) (rates []float64, rows []int, last clock.Time, err error) {
	for {
		at, ok := src.Peek()
		if !ok {
			return rates, rows, last, src.Err()
		}
		last = at
		hour := int(at / clock.Time(clock.Hour))
		for hour >= len(rates) {
			rates, rows = append(rates, 0), append(rows, 0)
		}
		rates[hour] += 1 / clock.Hour.Seconds()
		rows[hour]++
		r := src.Next()
		src.Done(&r, answered(&r, at))
	}
}

// Recorded is how many requests there are at a rate, in requests per second, from the beginning of the busiest hour of
// a trace to its end; 0 of traffic that is not recorded.
func (d *Demand) Recorded(rate float64) int {
	t := d.setup.Traffic.Recording
	if t == nil || t.Timeless {
		return d.rows
	}
	return int(math.Ceil(rate * d.span.Seconds()))
}

// At are the settings that give one replica a rate of the traffic of the busiest hour, in requests per second.
func (d *Demand) At(rate float64) []scenario.Setting {
	const flag = "plan"
	number := func(x float64) string { b, _ := json.Marshal(x); return string(b) }
	if d.setup.Traffic.Recording == nil {
		stage := d.stage
		stage.Rate = optional.Of(rate)
		text, _ := json.Marshal(stage)
		return []scenario.Setting{{Key: "workload.arrivals", Value: string(text), Flag: flag}}
	}
	var sets []scenario.Setting
	if d.slice && d.setup.Scenario.Workload.Trace.Speedup == nil && d.setup.Scenario.Workload.Trace.From == nil {
		from := yamldoc.Duration(d.from)
		sets = append(sets, scenario.Setting{Key: "workload.trace.from", Value: from.String(), Flag: flag},
			scenario.Setting{Key: "workload.trace.to", Value: (from + yamldoc.Duration(clock.Hour)).String(),
				Flag: flag})
	}
	return append(sets, scenario.Setting{Key: scenario.RateKey, Value: number(rate), Flag: flag})
}

// Sample is some of the requests of the busiest hour, n to 2n of them or all, and what all have on average. What is
// recorded is sampled at even distances, since its beginning may be unlike the rest.
type Sample struct {
	Requests                  []workload.Request
	InputTokens, OutputTokens float64 // means
}

// sampleFactor is by how much more requests of synthetic traffic are averaged over than are kept.
const sampleFactor = 25

// Sample draws from the traffic.
func (d *Demand) Sample(n int) (Sample, error) {
	var s Sample
	src, err := d.busiest()
	if err != nil {
		return s, err
	}
	recorded := d.setup.Traffic.Recording != nil
	drawn, every := 0, 1
	for recorded || drawn < sampleFactor*n {
		at, ok := src.Peek()
		if !ok {
			break
		}
		r := src.Next()
		src.Done(&r, answered(&r, at))
		s.InputTokens += float64(r.InputTokens)
		s.OutputTokens += float64(r.OutputTokens)
		if drawn%every == 0 && (recorded || drawn < n) {
			s.Requests = append(s.Requests, r)
		}
		if drawn++; len(s.Requests) == 2*n { // keep every other one
			for i := range n {
				s.Requests[i] = s.Requests[2*i]
			}
			s.Requests, every = s.Requests[:n], 2*every
		}
	}
	if drawn > 0 {
		s.InputTokens /= float64(drawn)
		s.OutputTokens /= float64(drawn)
	}
	return s, src.Err()
}

// busiest is the traffic, of a trace that of the busiest hour.
func (d *Demand) busiest() (workload.Source, error) {
	t := d.setup.Traffic.Recording
	if t == nil {
		return d.setup.Source()
	}
	load := t.Load
	d.cut(&load)
	return trace.Replay(t.Opener, load)
}

// cut leaves the busiest hour of a trace.
func (d *Demand) cut(load *trace.Load) {
	if d.slice && load.From == 0 && load.To == 0 {
		load.From, load.To = clock.Duration(d.from), clock.Duration(d.from)+clock.Hour
	}
}

func answered(r *workload.Request, at clock.Time) workload.End {
	return workload.End{How: workload.Answered, At: at, First: at, Tokens: r.OutputTokens}
}

// stretched is the scenario's traffic with prompts and outputs longer by a factor. What prompts share stays as long as
// it is.
func stretched(u *scenario.Setup, factor float64) (workload.Source, error) {
	src, err := u.Source()
	return &longer{src, factor}, err
}

type longer struct {
	workload.Source
	factor float64
}

func (l *longer) Next() workload.Request {
	r := l.Source.Next()
	r.InputTokens, r.OutputTokens = l.stretch(r.InputTokens), l.stretch(r.OutputTokens)
	return r
}

func (l *longer) stretch(tokens int32) int32 {
	return int32(min(math.Round(float64(tokens)*l.factor), math.MaxInt32))
}

// Under is the setup with the traffic of the busiest hour at a rate, in requests per second, for so many requests. It
// shares all else with u.
func (d *Demand) Under(u *scenario.Setup, rate float64, requests int) (*scenario.Setup, error) {
	v := *u
	s := *u.Scenario
	v.Scenario = &s
	s.Run.Requests, s.Run.Duration = &requests, nil
	v.Report.End, v.Report.Stages = 0, nil
	v.Traffic.Requests, v.Traffic.Rate = int64(requests), rate
	if t := u.Traffic.Recording; t != nil {
		load := t.Load
		load.Scale, load.Rate, load.Limit, load.Duration, load.AllowLargeScale = 0, rate, int64(requests), 0, true
		d.cut(&load)
		v.Traffic.Recording = &scenario.Recording{Opener: t.Opener, Load: load, Timeless: t.Timeless}
		return &v, nil
	}
	stage := d.stage
	stage.Rate = optional.Of(rate)
	s.Workload.Arrivals = &scenario.Arrivals{Stages: []scenario.Stage{stage}}
	v.Traffic.Spec.Arrivals = []workload.Phase{stage.Spec()}
	v.Traffic.Spec.Requests, v.Traffic.Spec.Duration = int64(requests), 0
	return &v, v.Traffic.Spec.Validate()
}
