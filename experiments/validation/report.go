package validation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"clifftop/experiments"
	"clifftop/model"
)

// Schema identifies the JSON form of a [Report].
const Schema = "clifftop.validate/1"

// Report holds simulated beside measured. Errors are simulated over measured, less 1.
type Report struct {
	Schema    string `json:"schema"`
	Clifftop  string `json:"clifftop"` // version of the program
	Reference string `json:"reference"`
	Partial   bool   `json:"partial"` // it was interrupted: rows are missing

	Rows []Result `json:"rows"`
	// Summary is the error by kind of load: in each cell (model, GPU, tensor-parallel size) the median over its rows,
	// and of these the median and the mean.
	Summary []Class `json:"summary"`
	// Kinds are the errors by engine, generation of GPUs and way of serving.
	Kinds []Kind `json:"kinds"`
	// Groups are the errors over the rows that have something in common.
	Groups []Group `json:"groups"`
	// Rules were applied to rows, which carry their codes.
	Rules []Rule   `json:"rules"`
	Notes []string `json:"notes"`

	asked int // rows, where it is partial
}

// Missing says what a partial report lacks; it is empty for a whole one.
func (r *Report) Missing() string {
	if !r.Partial {
		return ""
	}
	return fmt.Sprintf("Interrupted: only %d of %d rows are there.", len(r.Rows), r.asked)
}

// Status says what became of a row.
type Status string

// The statuses.
const (
	Scored  Status = "scored"
	Refused Status = "refused" // no scenario expresses it
	Bad     Status = "bad"     // its cells are wrong or contradict each other
)

// Result is a row and its errors.
type Result struct {
	RunID  string `json:"run_id"`
	Status Status `json:"status"`
	Reason string `json:"reason,omitempty"` // why it is not scored

	Source string   `json:"source"`
	Tier   string   `json:"tier"`
	Engine string   `json:"engine"`
	Model  string   `json:"model"` // by the catalog's name where there is one
	MoE    bool     `json:"moe"`
	GPU    string   `json:"gpu"`
	TP     int      `json:"tp"`
	Load   string   `json:"load"` // open or closed
	Rate   *float64 `json:"rate"`
	Users  *int     `json:"users"`
	// Overload says that more was asked for than the system gave, so that small errors of speed make large ones of
	// waiting.
	Overload bool `json:"overload"`
	// Kind of the run: drafts, pools or sessions; empty for a plain engine. Layout is how pools divide their GPUs.
	Kind   string `json:"kind,omitempty"`
	Layout string `json:"layout,omitempty"`
	// Doubt says why a measurement is in a class of its own: suspect, or stalled.
	Doubt string `json:"doubt,omitempty"`
	// InSample says that constants of the catalog were fitted to runs of the model on the GPU.
	InSample bool `json:"in_sample"`
	// Generation is the architecture of the GPU. Serving is Kind, or data-parallel attention; empty for one engine by
	// itself. Linear says that most layers have a recurrent state.
	Generation string `json:"generation"`
	Serving    string `json:"serving,omitempty"`
	Linear     bool   `json:"linear_attention,omitempty"`
	// Parallelism distinguishes cells of equal tensor-parallel size. Rows of one Point are repeats.
	Parallelism string `json:"parallelism"`
	Point       string `json:"-"`

	Rules   []string     `json:"rules"`
	Notes   []string     `json:"notes"`
	Metrics []Comparison `json:"metrics"`
	// States are nil unless [Options] ask for them.
	States *States `json:"-"`
}

// Error is the row's error of a metric; nil where it has none.
func (r *Result) Error(metric string) *float64 {
	if c := r.comparison(metric); c != nil {
		return c.Error
	}
	return nil
}

func (r *Result) comparison(metric string) *Comparison {
	for i := range r.Metrics {
		if r.Metrics[i].Metric == metric {
			return &r.Metrics[i]
		}
	}
	return nil
}

// Family is the beginning of the model's name that the versions of a model share.
func (r *Result) Family() string {
	if strings.HasPrefix(r.Model, "gpt-oss") {
		return "gpt-oss"
	}
	return strings.TrimRight(r.Model[:max(0, strings.IndexFunc(r.Model+"-", func(c rune) bool {
		return c == '-' || unicode.IsDigit(c)
	}))], "-")
}

// Run simulates the cases and scores the rows that keep lets through; nil keeps all. When ctx is done before the end,
// the report has the rows that were simulated until then, is marked partial, and comes together with the context's
// error; there is none without such a row.
func Run(ctx context.Context, ref *Reference, cases []*Case, keep func(*Row) bool, o Options) (*Report, error) {
	outcomes, err := simulate(ctx, cases, o)
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	r := &Report{Schema: Schema, Clifftop: experiments.Version, Reference: ref.Name, Rows: []Result{},
		Notes: append([]string{}, ref.Notes...)}
	all := 0
	for i, c := range cases {
		for k, row := range c.Rows {
			if keep != nil && !keep(row) {
				continue
			}
			all++
			if outcomes[i] != nil {
				r.Rows = append(r.Rows, c.result(row, outcomes[i][k]))
			}
		}
	}
	if err != nil {
		if !slices.ContainsFunc(r.Rows, func(row Result) bool { return row.Status == Scored }) {
			return nil, err
		}
		r.Partial, r.asked = true, all
	}
	r.Summary = classes(r.Rows)
	r.Kinds = sumKinds(r.Rows)
	r.Groups = groups(r.Rows)
	r.Rules = applied(r.Rows)
	return r, err
}

func (c *Case) result(row *Row, o *outcome) Result {
	r := Result{
		RunID: row.ID, Status: Scored, Source: row.Source, Tier: row.Tier, Engine: row.Engine, Model: row.Model,
		MoE: row.MoE == "1",
		GPU: row.GPU, TP: row.tp(), Load: "open", Rate: row.Rate, Users: row.Concurrency, Overload: row.Overloaded(),
		Serving: serving(row), Parallelism: cellParallelism(row), Point: point(row),
		Rules: append([]string{}, c.Applied...), Notes: append([]string{}, c.Notes...), Metrics: []Comparison{},
	}
	if row.Closed() {
		r.Load = "closed"
	}
	r.Kind, r.Layout, r.Doubt = row.kind(), layoutOf(row), row.doubt()
	if r.Kind == kindSessions {
		r.Users = row.Users
	}
	if c.setup != nil {
		d := c.setup.Pools[0].Deployment
		r.Model, r.GPU, r.MoE = d.LLM.Name, d.GPU.Name, d.LLM.Experts > 0
		r.Generation, r.InSample = d.GPU.Architecture, r.Kind != "" || inSample(r.Model, r.GPU)
		r.Linear = slices.ContainsFunc(d.LLM.Mixers, func(m model.Mixer) bool { return m.Kind.Recurrent() })
	}
	switch {
	case c.Bad != "":
		r.Status, r.Reason = Bad, c.Bad
	case c.Refused != "":
		r.Status, r.Reason = Refused, c.Refused
	case o == nil:
		r.Status, r.Reason = Refused, "the simulation ended before the row's stage began"
	default:
		r.Metrics, r.States = compare(row, o, c), o.states
	}
	return r
}

// applied lists the rules that the rows name, in their order.
func applied(rows []Result) []Rule {
	used := map[string]bool{}
	for i := range rows {
		for _, code := range rows[i].Rules {
			used[code] = true
		}
	}
	list := []Rule{}
	for _, rule := range rules() {
		if used[rule.Code] {
			list = append(list, rule)
		}
	}
	return list
}
