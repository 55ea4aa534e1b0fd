package validation

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"

	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report/collect"
	"clifftop/workload"
)

// Case is one simulation and the rows that it reproduces. Refused is the reason if it cannot be simulated.
type Case struct {
	// Rows are the stages of one experiment in order, or a single run.
	Rows []*Row
	// YAML is the scenario, as a file would have it. Requests recorded one by one take the place of its traffic.
	YAML []byte
	// Applied are the codes of the rules that were needed, and Notes what else was filled in.
	Applied, Notes []string
	// Refused says why no scenario expresses the rows, and Bad what is wrong with them; empty otherwise.
	Refused, Bad string

	scenario *scenario.Scenario
	setup    *scenario.Setup
	list     []workload.Request // recorded; empty for the scenario's traffic
	sessions [][]turn           // of users that replay them
	output   int                // tokens of an answer of a session whose length is not known
	stages   []collect.StageSpan
	ranks    int            // that share the traffic
	shares   map[string]int // of workers of pools; one share is simulated
	cold     coldStart
	steady   bool // only power is computed, from the measured length of iterations
}

// Plan expresses all rows as simulations, in the order of the file.
func Plan(ref *Reference) []*Case {
	var cases []*Case
	byRun := map[string]*Case{}
	for _, row := range ref.Rows {
		key := row.runKey()
		if c := byRun[key]; key != "" && c != nil {
			c.Rows = append(c.Rows, row)
			continue
		}
		c := &Case{Rows: []*Row{row}, ranks: 1}
		cases = append(cases, c)
		byRun[key] = c
	}
	for _, c := range cases {
		sort.SliceStable(c.Rows, func(i, j int) bool { return c.Rows[i].stage() < c.Rows[j].stage() })
		c.express(ref)
	}
	return cases
}

// runKey names the run that a stage belongs to; empty for a row that is a run by itself.
func (r *Row) runKey() string {
	if r.stage() < 0 || r.Experiment == "" {
		return ""
	}
	return r.Source + "\x00" + r.Experiment
}

// stage is the number of the row's stage; -1 for a whole run.
func (r *Row) stage() int {
	n, err := strconv.Atoi(r.Stage)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// express makes the scenario and resolves it.
func (c *Case) express(ref *Reference) {
	for i, r := range c.Rows {
		faults := r.Faults
		if len(faults) == 0 && r.Quality != "suspect" {
			faults = checker{r}.contradictions()
		}
		if len(faults) > 0 {
			c.Bad = fmt.Sprintf("line %d: %s", r.Line, strings.Join(faults, "; "))
			return
		}
		if r.stage() >= 0 && r.stage() != i {
			c.Refused = fmt.Sprintf("stage %d is missing: what it leaves behind is not known", i)
			return
		}
	}
	if err := c.resolve(ref); err != nil {
		c.Refused = reason(err)
	}
}

func (c *Case) resolve(ref *Reference) error {
	if r := c.Rows[0]; steady(r) {
		c.steady = true
		fillSteady(r)
		c.apply("steady")
	}
	y, err := newWriter(c)
	if err != nil {
		return err
	}
	if err := y.traffic(); err != nil {
		return err
	}
	c.YAML = y.bytes()
	s, err := scenario.Parse(c.Rows[0].ID, c.YAML)
	if err != nil {
		return err
	}
	for role, n := range c.shares {
		s.SimulateShare(role, n)
	}
	c.scenario = s
	if c.setup, err = c.resolved(s); err != nil {
		return err
	}
	if c.cold = c.Rows[0].coldStart(c.setup.Pools[0].Deployment); c.cold.steps > 0 {
		c.apply("cold_start")
	}
	for _, r := range c.Rows {
		if r.derivesE2E() {
			c.apply("e2e")
		}
		if r.chunked() {
			c.apply("chunks")
		}
	}
	switch {
	case c.Rows[0].multiTurn():
		err = c.readSessions(ref)
	case c.Rows[0].RequestFile != "":
		err = c.replay(ref)
	}
	if err != nil {
		return err
	}
	stages := c.stages
	if stages == nil {
		stages = slices.Clone(c.setup.Report.Stages)
	}
	if len(stages) == 0 {
		stages = []collect.StageSpan{{Name: "all"}}
	}
	// The last stage has no end, so that rates include the drain, as clients' clocks do.
	stages[len(stages)-1].End = never
	c.setup = c.setup.Staged(stages)
	return nil
}

func (c *Case) resolved(s *scenario.Scenario) (*scenario.Setup, error) {
	if c.ranks > 1 && c.shares == nil {
		return s.ResolveRank()
	}
	return s.Resolve()
}

// replay takes the requests from the rows' file.
func (c *Case) replay(ref *Reference) error {
	first := c.Rows[0]
	list, err := readRequests(ref.requestPath(first))
	if err != nil {
		return err
	}
	p := replay{queueClock: first.queueClock(), ranks: c.ranks}
	if n := or(first.SharedPrefixTokens, 0); n > 0 {
		p.shared, p.groups, p.prompts = n, promptGroups, or(first.UniquePrompts, promptGroups*promptsInGroup)
	}
	if c.list, err = p.requests(list); err != nil {
		return err
	}
	c.stages = nil
	sent := 0
	for _, r := range c.Rows[:len(c.Rows)-1] {
		sent += or(r.Requests, 0)
		if r.Requests == nil || sent >= len(c.list) {
			return fmt.Errorf("n_requests of stage %s does not say where the stage ends in %s", r.Stage,
				first.RequestFile)
		}
		c.stages = append(c.stages, collect.StageSpan{Name: "stage " + r.Stage, End: c.list[sent].Arrival})
	}
	c.stages = append(c.stages, collect.StageSpan{Name: "stage " + c.Rows[len(c.Rows)-1].Stage, End: never})
	return nil
}

// WriteScenarios writes the scenarios of the cases, separated by lines of dashes. Comments list the assumptions, and
// the settings that a scenario cannot express.
func WriteScenarios(w io.Writer, cases []*Case) error {
	var b strings.Builder
	for i, c := range cases {
		if i > 0 {
			b.WriteString("---\n")
		}
		comment := func(format string, args ...any) {
			b.WriteString("# " + strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ") + "\n")
		}
		for _, r := range c.Rows {
			comment("%s", r.ID)
		}
		switch {
		case c.Bad != "":
			comment("bad: %s", c.Bad)
		case c.Refused != "":
			comment("refused: %s", c.Refused)
		}
		for _, note := range c.Notes {
			comment("%s", note)
		}
		if len(c.Applied) > 0 {
			comment("rules: %s", strings.Join(c.Applied, ", "))
		}
		if c.list != nil {
			comment("%d requests of %s are sent in place of the workload's arrivals and lengths", len(c.list),
				c.Rows[0].RequestFile)
		}
		b.Write(c.YAML)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// apply notes that a rule was needed.
func (c *Case) apply(code string) {
	for _, known := range c.Applied {
		if known == code {
			return
		}
	}
	c.Applied = append(c.Applied, code)
}

func (c *Case) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, known := range c.Notes {
		if known == text {
			return
		}
	}
	c.Notes = append(c.Notes, text)
}

// reason is an error in one line, without the places in a generated file.
func reason(err error) string {
	var fs yamldoc.Faults
	var f *yamldoc.Fault
	switch {
	case errors.As(err, &fs):
	case errors.As(err, &f):
		fs = yamldoc.Faults{f}
	default:
		return strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	var parts []string
	for _, f := range fs {
		text := f.Problem
		if f.Key != "" {
			text = f.Key + ": " + text
		}
		if f.Hint != "" {
			text += "; " + f.Hint
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}
