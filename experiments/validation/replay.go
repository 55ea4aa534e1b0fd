package validation

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"clifftop/internal/duplicate"

	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/input"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// recorded is one request of a request-level file. Times are in seconds from the run's start.
type recorded struct {
	arrival, queued float64
	input, output   int
	failed          bool

	// In files of sessions.
	session, trace string
	turn           int
	cachedBlocks   int     // that an unlimited cache would have
	last           float64 // last token; negative if none came
	think          float64 // recorded pause before the turn
}

// mostTokens is the longest prompt or output.
const mostTokens = 1 << 29

// readRequests reads a request-level file: CSV, gzipped where its name ends in .gz, with the columns
// arrival_s, input_tokens and output_tokens, and optionally queued_s and has_error; and of sessions with several turns
// session, turn, trace_id, expected_cached_blocks, last_token_s and think_s_recorded.
func readRequests(path string) ([]recorded, error) {
	f, err := input.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", path, scenario.PlainFileError(err))
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("%s: %v", path, err)
		}
	}
	list, err := parseRequests(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

func parseRequests(r io.Reader) ([]recorded, error) {
	in := csv.NewReader(r)
	head, err := in.Read()
	if err != nil {
		return nil, errors.New(csvProblem(err))
	}
	if name, twice := duplicate.Column(head); twice {
		return nil, fmt.Errorf("line 1: the column %.40q is there twice (want each column once)", name)
	}
	at := map[string]int{}
	for i, name := range head {
		at[name] = i
	}
	for _, name := range []string{"arrival_s", "input_tokens", "output_tokens"} {
		if _, ok := at[name]; !ok {
			return nil, fmt.Errorf("no column %s", name)
		}
	}
	var list []recorded
	for {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.New(csvProblem(err))
		}
		line, _ := in.FieldPos(0)
		q, err := parseRequest(cells, at)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		list = append(list, q)
	}
	if len(list) == 0 {
		return nil, errors.New("there are no requests")
	}
	return list, nil
}

func parseRequest(cells []string, at map[string]int) (q recorded, err error) {
	number := func(name string, to *float64, most float64) {
		i, ok := at[name]
		if !ok || cells[i] == "" || err != nil {
			return
		}
		x, e := strconv.ParseFloat(cells[i], 64)
		if e != nil || !(x >= 0 && x <= most) {
			err = fmt.Errorf("%s: %q is not allowed (want 0 to %g)", name, yamldoc.Short(cells[i]), most)
		}
		*to = x
	}
	text := func(name string) string {
		if i, ok := at[name]; ok {
			return cells[i]
		}
		return ""
	}
	var input, output, failed, turn, cached float64
	q.queued, q.last = -1, -1
	number("arrival_s", &q.arrival, clock.MaxRun.Seconds())
	number("queued_s", &q.queued, clock.MaxRun.Seconds())
	number("input_tokens", &input, mostTokens)
	number("output_tokens", &output, mostTokens)
	number("has_error", &failed, 1)
	number("turn", &turn, mostTokens)
	number("expected_cached_blocks", &cached, mostTokens)
	number("last_token_s", &q.last, clock.MaxRun.Seconds())
	number("think_s_recorded", &q.think, clock.MaxRun.Seconds())
	q.session, q.trace, q.turn, q.cachedBlocks = text("session"), text("trace_id"), int(turn), int(cached)
	q.input, q.output, q.failed = int(input), int(output), failed != 0
	if q.queued < 0 {
		q.queued = q.arrival
	}
	return q, err
}

// replay is how recorded requests are sent.
type replay struct {
	queueClock bool // they arrive when the engine queued them
	ranks      int  // every ranks-th is sent
	prompts    int  // they repeat with this period; 0 for prompts that are unique
	groups     int
	shared     int // tokens that a group's prompts share
}

// requests returns the requests to send, in order of arrival. A request that failed in the measured run is sent as
// well, because it was a load there. A missing prompt length is taken from other turns with this prompt.
func (p replay) requests(list []recorded) ([]workload.Request, error) {
	var out []workload.Request
	lengths := map[int]int{}
	for i, q := range list {
		if p.prompts > 0 && q.input > 0 && lengths[i%p.prompts] == 0 {
			lengths[i%p.prompts] = q.input
		}
	}
	contents := p.contents(lengths)
	for i, q := range list {
		if i%max(1, p.ranks) != 0 {
			continue
		}
		r := workload.Request{Arrival: seconds(q.arrival), InputTokens: int32(q.input), OutputTokens: int32(q.output)}
		if p.queueClock {
			r.Arrival = seconds(q.queued)
		}
		if p.prompts > 0 {
			j := i % p.prompts
			r.Content, r.InputTokens = contents[j], int32(lengths[j])
		}
		if r.InputTokens < 1 || r.OutputTokens < 1 {
			if q.failed {
				continue // nothing is known of it
			}
			return nil, fmt.Errorf("request %d has %d input and %d output tokens (want 1 or more)", i, r.InputTokens,
				r.OutputTokens)
		}
		out = append(out, r)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Arrival < out[j].Arrival })
	for i := range out {
		out[i].ID = int64(i)
	}
	return out, nil
}

// contents are the texts of the prompts that repeat.
func (p replay) contents(lengths map[int]int) []*workload.Content {
	list := make([]*workload.Content, p.prompts)
	inGroup := max(1, p.prompts/max(1, p.groups))
	for j := range list {
		shared := min(p.shared, lengths[j])
		c := &workload.Content{}
		if shared > 0 {
			c.Segments = append(c.Segments,
				workload.Segment{ID: workload.SegmentID(fmt.Sprint("group ", j/inGroup)), Tokens: int32(shared)})
		}
		if own := lengths[j] - shared; own > 0 {
			c.Segments = append(c.Segments,
				workload.Segment{ID: workload.SegmentID(fmt.Sprint("prompt ", j)), Tokens: int32(own)})
		}
		list[j] = c
	}
	return list
}

func seconds(s float64) clock.Time { return clock.Time(clock.FromSeconds(s)) }

// replayed sends requests at recorded times.
type replayed struct {
	list []workload.Request
	next int
}

// Peek returns the arrival of the next request.
func (r *replayed) Peek() (clock.Time, bool) {
	if r.next == len(r.list) {
		return 0, false
	}
	return r.list[r.next].Arrival, true
}

func (r *replayed) Next() workload.Request {
	r.next++
	return r.list[r.next-1]
}

// Done has no effect.
func (r *replayed) Done(*workload.Request, workload.End) bool { return false }

// Err is always nil.
func (r *replayed) Err() error { return nil }

var _ workload.Source = (*replayed)(nil)

// requestPath is where a row's request-level file lies.
func (ref *Reference) requestPath(r *Row) string {
	if filepath.IsAbs(r.RequestFile) {
		return r.RequestFile
	}
	path := filepath.Join(ref.folder, filepath.FromSlash(r.RequestFile))
	if _, err := os.Stat(path); err != nil {
		if above := filepath.Join(ref.folder, "..", filepath.FromSlash(r.RequestFile)); isFile(above) {
			return above
		}
	}
	return path
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
