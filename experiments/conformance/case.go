package conformance

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/workload"
)

// Case is one recorded run: an engine, the requests that were sent to it, and the iterations that its scheduler
// composed.
type Case struct {
	// Format is the format of the record, Name the name of the case, and Profile the set that it belongs to.
	Format, Name, Profile string
	// Refused is the reason why no engine configuration expresses the case; empty if one does.
	Refused string

	engine     func() engine.Config // a new configuration, with a scheduler of its own
	requests   []workload.Request
	iterations []iteration
	cut        bool // the record ends before the run
	unordered  bool // the rows of an iteration are a set
	compares   func(got, want *iteration) bool
}

// iteration is the decision of a scheduler for one iteration.
type iteration struct {
	Rows             []row
	Preempted        []int64 // since the last iteration, in order
	Free             int     // KV blocks or, with SGLang, tokens, after scheduling
	Running, Waiting int     // requests, after scheduling
	At               clock.Time
	drafts           bool // the record has drafts and delivered tokens
}

// row is the part of one request in an iteration.
type row struct {
	Request        int64
	Tokens, Cached int32 // tokens computed and, in the iteration of its admission, found in the prefix cache
	Drafts         int32 // draft tokens among those computed
	Produced       int32 // output tokens at the end of the iteration
}

// String describes an iteration as in "1:16 2:3+13; preempted 4; free 5": request 1 computes 16 tokens, and request 2
// is admitted with 3 tokens and 13 cached ones.
func (it *iteration) String() string {
	var b strings.Builder
	for i := range it.Rows {
		r := &it.Rows[i]
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d:%d", r.Request, r.Tokens)
		if r.Cached > 0 {
			fmt.Fprintf(&b, "+%d", r.Cached)
		}
		if r.Drafts > 0 {
			fmt.Fprintf(&b, "(%d drafts)", r.Drafts)
		}
	}
	if len(it.Preempted) > 0 {
		b.WriteString("; preempted")
		for _, id := range it.Preempted {
			b.WriteString(" " + strconv.FormatInt(id, 10))
		}
	}
	fmt.Fprintf(&b, "; free %d", it.Free)
	return b.String()
}

// observed returns an iteration as an observer of the simulator sees it.
func observed(s *event.Step) iteration {
	it := iteration{Preempted: s.Preempted, Free: s.FreeBlocks, Running: s.Running, Waiting: s.Waiting,
		At: s.Span.Start}
	for i := range s.Scheduled {
		sh := &s.Scheduled[i]
		it.Rows = append(it.Rows, row{sh.Request, sh.Tokens, sh.Cached, sh.Drafts, sh.Produced})
	}
	return it
}

// fixedTimer makes every iteration equally long. Its stages are equally long too.
type fixedTimer clock.Duration

// Span implements [model.StepTimer].
func (t fixedTimer) Span(*model.Batch) (first, slope int64, n int) {
	return int64(t) * clock.FemtosPerPico, 0, 1 << 30
}

// Stages implements [model.StageTimer].
func (t fixedTimer) Stages(_ *model.Batch, total int64, to []int64) (hop int64) {
	for i := range to {
		to[i] = total / int64(len(to))
	}
	return 0
}

// stepTime is the length of an iteration or of a pipeline stage in the records.
const stepTime = 10 * clock.Millisecond

// segments are the leading tokens of a prompt: pairs of a name and a number of tokens. A name "@3.0" is the output of
// turn 0 of session 3.
type segments []segment

type segment struct {
	name   string
	tokens int32
}

func (s *segment) UnmarshalJSON(data []byte) error {
	pair := [2]any{&s.name, &s.tokens}
	return json.Unmarshal(data, &pair)
}

// content returns the segments as the content of a request, or nil if there are none.
func (list segments) content() (*workload.Content, error) {
	if len(list) == 0 {
		return nil, nil
	}
	c := new(workload.Content)
	for _, s := range list {
		id := workload.SegmentID(s.name)
		if strings.HasPrefix(s.name, "@") {
			session, turn, err := outputOf(s.name)
			if err != nil {
				return nil, err
			}
			id = workload.OutputID(session, turn)
		}
		if s.tokens < 1 {
			return nil, fmt.Errorf("a segment has %d tokens", s.tokens)
		}
		c.Segments = append(c.Segments, workload.Segment{ID: id, Tokens: s.tokens})
	}
	return c, nil
}

// outputOf reads the name of an output, such as "@3.0".
func outputOf(name string) (session, turn int32, err error) {
	var rest string
	if n, _ := fmt.Sscanf(name+" ", "@%d.%d%s", &session, &turn, &rest); n != 2 || session < 1 || turn < 0 {
		return 0, 0, fmt.Errorf("%q is no output (want @session.turn)", name)
	}
	return session, turn, nil
}

func setOutput(r *workload.Request, name string) (err error) {
	if name != "" {
		r.Session, r.Turn, err = outputOf(name)
	}
	return err
}

func millis(n float64) clock.Duration { return clock.Duration(n * float64(clock.Millisecond)) }
