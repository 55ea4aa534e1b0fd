package lessons

import (
	"context"
	"fmt"
	"strconv"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/sweep"
	"clifftop/internal/pattern"
	"clifftop/report"
	"clifftop/report/chart"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// Schema identifies the JSON form of a [Result].
const Schema = "clifftop.lesson/1"

// Options says how to hold a lesson. The zero value will do.
type Options struct {
	// Jobs is the number of runs at a time; 0 is one for each processor. It changes no result.
	Jobs int
	// Check asserts the simulator's invariants throughout, at a cost.
	Check bool
	// Progress is called, from one goroutine at a time, with the number of finished runs.
	Progress func(done, total int)
}

// Result is a lesson that was held: its words with the numbers that were measured.
type Result struct {
	Schema   string `json:"schema"`
	Clifftop string `json:"clifftop"` // version of the program
	Number   int    `json:"number"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	Idea     string `json:"idea"`
	Terms    []Term `json:"terms"`
	// Steps are the results of the steps.
	Steps    []StepResult `json:"steps"`
	Table    Table        `json:"table"`
	Look     []string     `json:"look"`
	Mistakes []Mistake    `json:"mistakes"`
	Claims   []Claim      `json:"claims"`
	Question string       `json:"question"`
	Answer   string       `json:"answer"`
	// Pass says that all claims hold.
	Pass     bool      `json:"pass"`
	Pictures []Picture `json:"-"`
}

// Picture is a picture of the results, with a name for its file.
type Picture struct {
	Name string
	chart.Picture
}

// StepResult is the result of a step.
type StepResult struct {
	Name     string        `json:"name"`
	Text     string        `json:"text"`
	Scenario string        `json:"scenario"`
	Commands []string      `json:"commands"` // that repeat it, where the scenario lies in the working directory
	Points   []PointResult `json:"points"`
}

// PointResult is one run of a step, at one value of the varied key.
type PointResult struct {
	Value   string          `json:"value,omitempty"`
	Summary *report.Summary `json:"summary"`

	series     []report.SeriesPoint
	setup      *scenario.Setup
	lives      []life // of completed requests
	iterations []iteration
}

// life is when a request was sent, and when its client saw its first and its last token.
type life struct{ sent, first, last clock.Time }

// iteration is one pass of the engine over its batch.
type iteration struct {
	start, end      clock.Time
	decodes, prompt int // sequences that decode, and tokens of prompts
}

// Table has the numbers of a lesson in rows of text.
type Table struct {
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

func (t *Table) add(cells ...string) { t.Rows = append(t.Rows, cells) }

// class is a lesson being held.
type class struct {
	*Result
	facts map[string]string // what names in braces stand for
}

// Run holds the lesson: it runs its steps, fills in its words, and checks its claims. A claim that fails is no error.
func (l *Lesson) Run(ctx context.Context, o Options) (*Result, error) {
	r := &Result{
		Schema: Schema, Clifftop: experiments.Version, Number: l.Number, Name: l.Name, Title: l.Title, Idea: l.Idea,
		Terms: l.Terms, Look: append([]string{}, l.Look...), Mistakes: append([]Mistake{}, l.Mistakes...),
		Question: l.Question, Answer: l.Answer,
	}
	if err := l.simulate(ctx, r, o); err != nil {
		return nil, err
	}
	c := &class{Result: r, facts: map[string]string{}}
	if err := l.hold(c); err != nil {
		return nil, fmt.Errorf("lesson %d: %w", l.Number, err)
	}
	r.Pass = true
	for _, claim := range r.Claims {
		r.Pass = r.Pass && claim.Holds
	}
	return r, c.fill()
}

// job is a run to do, and where its result goes.
type job struct {
	setup *scenario.Setup
	watch *Stretch
	to    *PointResult
}

// simulate runs all steps side by side.
func (l *Lesson) simulate(ctx context.Context, r *Result, o Options) error {
	scenarios, err := l.Scenarios()
	if err != nil {
		return err
	}
	var jobs []job
	r.Steps = make([]StepResult, len(l.Steps))
	for i := range l.Steps {
		s := &l.Steps[i]
		r.Steps[i] = StepResult{Name: s.Name, Text: s.Text, Scenario: s.File(), Commands: s.Commands("")}
		settings, err := s.settings()
		if err != nil {
			return fmt.Errorf("lesson %d, %s: %w", l.Number, s.Name, err)
		}
		r.Steps[i].Points = make([]PointResult, len(settings))
		for k, sets := range settings {
			scenario, err := scenario.Parse(s.File(), scenarios[s.File()], sets...)
			if err != nil {
				return err
			}
			setup, err := scenario.Resolve()
			if err != nil {
				return err
			}
			to := &r.Steps[i].Points[k]
			if s.Vary != "" {
				to.Value = sets[len(sets)-1].Value
			}
			jobs = append(jobs, job{setup, s.Watch, to})
		}
	}
	return experiments.Parallel(ctx, len(jobs), o.Jobs, o.Progress, func(ctx context.Context, i int) error {
		return jobs[i].run(ctx, o.Check)
	})
}

// settings returns the settings of each run of the step; the varied key comes last.
func (s *Step) settings() ([][]scenario.Setting, error) {
	var base []scenario.Setting
	for _, text := range s.Set {
		set, err := scenario.ParseSetting(text)
		if err != nil {
			return nil, err
		}
		base = append(base, set)
	}
	if s.Vary == "" {
		return [][]scenario.Setting{base}, nil
	}
	key, values, err := sweep.ParseOver(s.Vary)
	if err != nil {
		return nil, err
	}
	var all [][]scenario.Setting
	for _, v := range values {
		all = append(all, append(base[:len(base):len(base)], scenario.Setting{Key: key, Value: v}))
	}
	return all, nil
}

// Typical are the settings of the step's middle run.
func (s *Step) Typical() ([]scenario.Setting, error) {
	all, err := s.settings()
	if err != nil {
		return nil, err
	}
	return all[len(all)/2], nil
}

func (j *job) run(ctx context.Context, check bool) error {
	p := j.to
	o := experiments.RunOptions{Check: check, Finished: func(rec *event.Record) {
		if rec.Outcome == event.Completed {
			p.lives = append(p.lives, life{rec.Request.Arrival, rec.ClientFirst, rec.ClientLast})
		}
	}}
	if w := j.watch; w != nil {
		from, to := clock.Time(clock.FromSeconds(w.FromS)), clock.Time(clock.FromSeconds(w.ToS))
		o.Span = func(s *event.Span) {
			if s.End(s.N) <= from || s.Start >= to {
				return
			}
			for k := range s.N {
				start, end := s.End(k), s.End(k+1)
				if end > from && start < to {
					p.iterations = append(p.iterations,
						iteration{start, end, s.Decodes, s.PrefillTokens + s.RecomputedTokens})
				}
			}
		}
	}
	res, err := experiments.RunSetup(ctx, j.setup, o)
	if err != nil {
		return err
	}
	p.Summary, p.series, p.setup = res.Summary, res.Series, j.setup
	return nil
}

// step returns the result of the step with a name, which must exist.
func (c *class) step(name string) *StepResult {
	for i := range c.Steps {
		if c.Steps[i].Name == name {
			return &c.Steps[i]
		}
	}
	panic("lessons: no step is named " + name)
}

func (s *StepResult) at(value string) *PointResult { return &s.Points[s.index(value)] }

// index returns the place of the run at a value, which must exist.
func (s *StepResult) index(value string) int {
	for i := range s.Points {
		if s.Points[i].Value == value {
			return i
		}
	}
	panic("lessons: step " + s.Name + " has no run at " + value)
}

// load is the value of the varied key, as a number.
func (p *PointResult) load() float64 {
	v, err := strconv.ParseFloat(p.Value, 64)
	if err != nil {
		panic("lessons: " + p.Value + " is not a number")
	}
	return v
}

// firstWaits are the times to the first token, in milliseconds, of the completed requests that were sent in the window.
func (p *PointResult) firstWaits() []float64 {
	start, end := p.Summary.Window.StartS, p.Summary.Window.EndS
	var ms []float64
	for _, l := range p.lives {
		if at := l.sent.Seconds(); at >= start && at <= end {
			ms = append(ms, l.first.Sub(l.sent).Seconds()*1e3)
		}
	}
	return ms
}

// say gives a name in the lesson's texts what it stands for.
func (c *class) say(name, text string) { c.facts[name] = text }

func (c *class) draw(name string, p chart.Picture) {
	c.Pictures = append(c.Pictures, Picture{name, p})
}

var placeholder = pattern.New(`\{[a-z][a-z0-9_]*\}`)

func (c *class) fill() error {
	var missing string
	replace := func(text *string) {
		*text = placeholder.Get().ReplaceAllStringFunc(*text, func(name string) string {
			fact, ok := c.facts[name[1:len(name)-1]]
			if !ok {
				missing = name
			}
			return fact
		})
	}
	replace(&c.Idea)
	replace(&c.Question)
	replace(&c.Answer)
	for i := range c.Look {
		replace(&c.Look[i])
	}
	for i := range c.Mistakes {
		replace(&c.Mistakes[i].Said)
		replace(&c.Mistakes[i].Right)
	}
	if missing != "" {
		return fmt.Errorf("lesson %d: nothing was measured for %s", c.Number, missing)
	}
	return nil
}
