package inspect

import (
	"io"

	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/workload/trace"
)

// Schema identifies the JSON form of an [Result].
const Schema = "clifftop.inspect/1"

// Result says what the traffic of a trace is like. A nil pointer says that there is nothing to tell: too few
// rows, or no such thing in the trace.
type Result struct {
	Schema   string `json:"schema"`
	Clifftop string `json:"clifftop"` // version of the program; set by the caller

	// What is known of the file is set by the caller.
	File    string       `json:"file"`
	Format  string       `json:"format"`
	SHA256  string       `json:"sha256,omitempty"`
	Rows    trace.Counts `json:"rows"`
	Applied []string     `json:"applied"` // what was done to the trace before, in order

	Requests     int64        `json:"requests"` // more than rows where a row is a session
	SpanS        float64      `json:"span_s"`   // from the first arrival to the last
	RequestsPerS *float64     `json:"requests_per_s"`
	InputTokens  TokenLengths `json:"input_tokens"`
	OutputTokens TokenLengths `json:"output_tokens"`
	// Spearman is the rank correlation of prompt and answer, over as many requests as SpearmanN says.
	Spearman  *float64 `json:"spearman"`
	SpearmanN int      `json:"spearman_n"`

	Arrivals ArrivalPattern   `json:"arrivals"`
	Sessions *SessionFacts    `json:"sessions"`
	Prefix   *PrefixSharing   `json:"prefix"`
	Classes  []ClassShare     `json:"classes"`
	Series   []TrafficPoint   `json:"series"`
	Warnings []report.Warning `json:"warnings"`
}

// TokenLengths describes lengths in tokens. Percentiles are exact and interpolate linearly.
type TokenLengths struct {
	report.Distribution
	Total int64 `json:"total"`
	// Mode is the most frequent length and ModeShare the share of the requests that have it.
	Mode      *float64 `json:"mode"`
	ModeShare *float64 `json:"mode_share"`
	// AtMaxShare is the share of the requests within 0.1 % of the longest: a cap shows here.
	AtMaxShare *float64 `json:"at_max_share"`

	// Quantiles are points of the quantile function, for pictures.
	Quantiles []Quantile `json:"quantiles"`
}

// Quantile says that a fraction P is at most Tokens long.
type Quantile struct {
	P      float64 `json:"p"`
	Tokens float64 `json:"tokens"`
}

// ArrivalPattern describes when rows arrive.
type ArrivalPattern struct {
	// GapCV is the coefficient of variation of the gaps between rows: 1 for a Poisson process.
	GapCV       *float64     `json:"gap_cv"`
	MaxGapS     *float64     `json:"max_gap_s"`
	Dispersion  []Dispersion `json:"dispersion"`
	TogetherS   *float64     `json:"tick_s"` // the tick of a coarse clock, if it shows
	ZeroGaps    int64        `json:"zero_gaps"`
	Correlation *float64     `json:"count_autocorrelation_10s"` // of counts in neighbouring windows of 10 s
}

// Dispersion is the index of dispersion of the numbers of rows in windows of one length: their variance over
// their mean, 1 for a Poisson process.
type Dispersion struct {
	WindowS float64  `json:"window_s"`
	Windows int64    `json:"windows"`
	Index   *float64 `json:"index"`
}

// SessionFacts describes conversations.
type SessionFacts struct {
	Sessions  int64    `json:"sessions"`
	Requests  int64    `json:"requests"` // that belong to one
	MeanTurns *float64 `json:"mean_turns"`
	MaxTurns  int32    `json:"max_turns"`
	// Gaps are the seconds from one arrival of a session to the next.
	Gaps report.Distribution `json:"gap_s"`
	// Waiting is the number of requests that are sent after an answer, not at a recorded time.
	Waiting int64 `json:"waiting"`
}

// PrefixSharing says what a cache of blocks could reuse of the prompts. All is by block: a prompt is cut into
// blocks of BlockTokens, a last partial one is never shared.
type PrefixSharing struct {
	BlockTokens int32 `json:"block_tokens"`
	Accesses    int64 `json:"accesses"`
	Unique      int64 `json:"unique"`
	// HitBlocks and HitTokens are the shares of blocks and tokens found in a cache without bounds, and
	// WarmHitBlocks that of blocks in the last quarter of the time.
	HitBlocks     *float64 `json:"hit_blocks"`
	HitTokens     *float64 `json:"hit_tokens"`
	WarmHitBlocks *float64 `json:"warm_hit_blocks"`
	// LRU is the share of blocks found in a cache of limited size that drops what was used least recently.
	LRU []LRUPoint `json:"lru"`
	// StackDistance is how many different blocks are used until a block is used again, itself counted, and
	// Reuse how many seconds pass.
	StackDistance report.Distribution `json:"stack_distance_blocks"`
	Reuse         report.Distribution `json:"reuse_s"`
}

// LRUPoint is one size of a cache.
type LRUPoint struct {
	Blocks int64    `json:"blocks"`
	Tokens int64    `json:"tokens"`
	Hit    *float64 `json:"hit"`
}

// ClassShare is a class of requests.
type ClassShare struct {
	Name             string   `json:"name"`
	Requests         int64    `json:"requests"`
	MeanInputTokens  *float64 `json:"mean_input_tokens"`
	MeanOutputTokens *float64 `json:"mean_output_tokens"`
}

// TrafficPoint counts the arrivals in a span of time.
type TrafficPoint struct {
	StartS       float64 `json:"start_s"`
	EndS         float64 `json:"end_s"`
	Requests     int64   `json:"requests"`
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`

	blocks, hits int64
}

// Trace reads a trace to its end. It needs no memory for rows, except for identities: of sessions, and of
// the blocks that prompts share. Blocks of blockTokens tokens are compared; 0 is 512, as in Mooncake's traces.
// Classes names the classes, and is called at the end.
func Trace(r trace.Reader, blockTokens int32, classes func() []string) (*Result, error) {
	if blockTokens == 0 {
		blockTokens = 512
	}
	g := newInspector(blockTokens)
	for {
		row, err := r.Next()
		if err == io.EOF {
			return g.inspection(classes()), nil
		}
		if err != nil {
			return nil, err
		}
		g.add(&row)
	}
}

// inspector collects the data of a [Result].
type inspector struct {
	rows, requests int64
	first, last    clock.Time
	input, output  lengthCounts
	pairs          pairs
	gaps           moments
	maxGap         clock.Duration
	ticks          trace.Ticks
	windows        []windowCounts
	sessions       sessionCounts
	prefix         *stackDistances
	classes        []classCounts
	series         trafficSeries
}

type classCounts struct{ requests, input, output int64 }

func newInspector(blockTokens int32) *inspector {
	g := &inspector{prefix: newStackDistances(blockTokens), sessions: newSessionCounts()}
	for _, w := range []clock.Duration{clock.Second, 10 * clock.Second, clock.Minute} {
		g.windows = append(g.windows, windowCounts{width: w})
	}
	return g
}

func (g *inspector) add(r *trace.Row) {
	if g.rows == 0 {
		g.first = r.Arrival
	} else {
		gap := r.Arrival.Sub(g.last)
		g.gaps.add(gap.Seconds())
		g.maxGap = max(g.maxGap, gap)
		g.ticks.Add(gap)
	}
	g.last = r.Arrival
	g.rows++
	at := r.Arrival.Sub(g.first)
	for i := range g.windows {
		g.windows[i].add(at)
	}
	g.sessions.add(r)
	point := g.series.at(at)
	q := r.Request
	g.request(point, &q, at)
	for _, t := range r.Then {
		q.InputTokens, q.OutputTokens, q.Content = t.InputTokens, t.OutputTokens, t.Content
		q.Turn++
		g.request(point, &q, at)
	}
}

func (g *inspector) request(point *TrafficPoint, q *request, at clock.Duration) {
	q.ID = g.requests // parts of a session have no identity of their own
	g.requests++
	g.input.add(q.InputTokens)
	g.output.add(q.OutputTokens)
	g.pairs.add(q.InputTokens, q.OutputTokens)
	for len(g.classes) <= int(q.Class) {
		g.classes = append(g.classes, classCounts{})
	}
	c := &g.classes[q.Class]
	c.requests++
	c.input += int64(q.InputTokens)
	c.output += int64(q.OutputTokens)
	blocks, hits := g.prefix.add(q, at)
	point.Requests++
	point.InputTokens += int64(q.InputTokens)
	point.OutputTokens += int64(q.OutputTokens)
	point.blocks += blocks
	point.hits += hits
}

func (g *inspector) inspection(names []string) *Result {
	x := &Result{
		Schema: Schema, Applied: []string{}, Requests: g.requests, SpanS: g.last.Sub(g.first).Seconds(),
		InputTokens: g.input.lengths(), OutputTokens: g.output.lengths(),
		Sessions: g.sessions.facts(), Series: g.series.points(g.last.Sub(g.first)), Classes: []ClassShare{},
		Warnings: []report.Warning{},
	}
	x.Spearman, x.SpearmanN = g.pairs.spearman()
	if x.SpanS > 0 {
		x.RequestsPerS = stats.Ratio(float64(g.rows-1), x.SpanS)
	}
	x.Arrivals = g.arrivals()
	x.Prefix = g.prefix.sharing(g.input.total, x.Series)
	for i, c := range g.classes {
		if c.requests == 0 || len(g.classes) == 1 {
			continue
		}
		s := ClassShare{Requests: c.requests, MeanInputTokens: stats.Ratio(float64(c.input), float64(c.requests)),
			MeanOutputTokens: stats.Ratio(float64(c.output), float64(c.requests))}
		if i < len(names) {
			s.Name = names[i]
		}
		x.Classes = append(x.Classes, s)
	}
	x.warn()
	return x
}

func (g *inspector) arrivals() ArrivalPattern {
	a := ArrivalPattern{ZeroGaps: g.ticks.Zeros(), Dispersion: []Dispersion{}}
	if g.rows > 2 && g.last > g.first {
		a.GapCV = stats.Ratio(g.gaps.sd(), g.gaps.mean())
		a.MaxGapS = stats.Finite(g.maxGap.Seconds())
	}
	if q := g.ticks.Quantum(); g.ticks.Coarse() {
		a.TogetherS = stats.Finite(q.Seconds())
	}
	for i := range g.windows {
		w := &g.windows[i]
		a.Dispersion = append(a.Dispersion, Dispersion{WindowS: w.width.Seconds(), Windows: w.n, Index: w.index()})
		if w.width == 10*clock.Second {
			a.Correlation = w.correlation()
		}
	}
	return a
}
