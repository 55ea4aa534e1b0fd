package validation

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// Runs of several turns: users replay recorded sessions. The loop is closed: a turn is sent when the one before it has
// ended and the recorded pause is over. Only the first turn of a session comes at its recorded time.
//
// Files count the tokens of the recorded history. The prompts that the server computes are longer: see [served].

// turn is one request of a session.
type turn struct {
	recorded
	session, trace string
	number         int
	cached         int     // tokens that an unlimited cache would have
	pause          float64 // seconds from the end of the turn before; of the first turn, its arrival
}

// blockOfSessions is the number of tokens of a block in files of sessions.
const blockOfSessions = 64

// longestPause is the longest pause of the client, in seconds.
const longestPause = 60

// sessionsOf sorts the requests of a file into sessions, in the order of their first requests. The pause before a turn
// is the measured one, because clients choose it: after an answer that did not come, it is the recorded one of the
// session.
func sessionsOf(list []recorded) [][]turn {
	var names []string
	of := map[string][]turn{}
	for _, q := range list {
		if of[q.session] == nil {
			names = append(names, q.session)
		}
		of[q.session] = append(of[q.session], turn{recorded: q, session: q.session, trace: q.trace, number: q.turn,
			cached: q.cachedBlocks * blockOfSessions})
	}
	var all [][]turn
	for _, name := range names {
		turns := of[name]
		slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.arrival, b.arrival) })
		for i := range turns {
			t := &turns[i]
			t.pause = t.arrival
			if i == 0 {
				continue
			}
			before := turns[i-1].last
			if t.pause = t.arrival - before; before < 0 || t.pause < 0 {
				t.pause = min(t.think, longestPause)
			}
		}
		all = append(all, turns)
	}
	slices.SortStableFunc(all, func(a, b []turn) int { return cmp.Compare(a[0].arrival, b[0].arrival) })
	return all
}

// Lengths of prompts as the server counts them, read off its counters of three runs with one user (134 turns of two
// sessions of DeepSeek-R1): a first prompt is 1.045 times as long as in the file. From turn to turn prompts grow by
// 0.71 of the recorded growth, which is the ratio of two tokenizers, and by 1,500 tokens more, the part of the
// generated answer that remains in the history. Each of the three runs alone gives 1,410 to 1,570 tokens and 0.68 to
// 0.73.
const (
	firstPrompt  = 1.045
	servedGrowth = 0.71
	answerGrowth = 1500
)

// served replaces the lengths of the turns of a session by those that the server counts.
func served(turns []turn) {
	before, length := 0, 0 // of the last prompt: in the file, and served
	for i := range turns {
		t := &turns[i]
		input := t.input
		// Blocks are rounded down: what is cached up to the last whole block is the whole prompt before.
		keep := min(t.cached, input)
		if before-keep < blockOfSessions {
			keep = min(before, input)
		}
		switch {
		case i == 0 || keep == 0:
			t.input = max(1, int(math.Round(firstPrompt*float64(input))))
		default:
			cached := min(length, int(math.Round(float64(length)*float64(keep)/float64(before))))
			t.input = cached + int(math.Round(servedGrowth*float64(input-keep))) + answerGrowth
			t.cached = cached
		}
		before, length = input, t.input
	}
}

// inTurn joins sessions that one user had after another: where there are more sessions than users, a session begins
// when an earlier one has ended. The pause before its first turn is the measured one.
func inTurn(sessions [][]turn, users int) [][]turn {
	var list [][]turn
	for _, s := range sessions {
		first := &s[0]
		if len(list) < users {
			list = append(list, s)
			continue
		}
		free := 0 // the user whose last answer came first
		for u := range list {
			if end(list[u]) < end(list[free]) {
				free = u
			}
		}
		if first.pause = first.arrival - end(list[free]); first.pause < 0 {
			first.pause = min(first.think, longestPause)
		}
		first.cached = 0
		list[free] = append(list[free], s...)
	}
	return list
}

// end is when the last answer of a session came, or where it did not, when its turn was sent.
func end(turns []turn) float64 {
	last := &turns[len(turns)-1]
	return max(last.last, last.arrival)
}

// meanOutput is the mean length of the answers that came, at least 1.
func meanOutput(list []recorded) int {
	sum, n := 0, 0
	for _, q := range list {
		if q.output > 0 {
			sum, n = sum+q.output, n+1
		}
	}
	return max(1, sum/max(1, n))
}

// conversation is a session that is replayed.
type conversation struct {
	turns    []workload.Request // without their times
	pauses   []clock.Duration
	next     int
	at       clock.Time // of the next turn, if it is known
	awaiting bool       // the turn before has not ended
}

// talks is the source of sessions.
type talks struct {
	list []conversation
	end  clock.Time // no turn is sent from then on
	id   int64
}

// newTalks makes the source of sessions for a run of so many seconds. Answers of unknown length have the mean one.
func newTalks(sessions [][]turn, output int, seconds float64) (*talks, error) {
	s := &talks{end: clock.Time(clock.FromSeconds(seconds))}
	for n, turns := range sessions {
		c := conversation{at: clock.Time(clock.FromSeconds(turns[0].pause))}
		var text workload.Content
		for i, t := range turns {
			if t.input < 1 {
				return nil, fmt.Errorf("session %s, turn %d: %d input tokens (want 1 or more)", t.session,
					t.number, t.input)
			}
			keep := 0
			if i > 0 {
				keep = min(t.cached, turns[i-1].input, t.input)
			}
			text = appendText(text, keep, t.input, fmt.Sprint(t.trace, "/", t.session, "/", t.number))
			r := workload.Request{Content: &workload.Content{Segments: slices.Clone(text.Segments)},
				Session: int32(n) + 1,
				User:    int32(n), Turn: int32(i), InputTokens: int32(t.input), OutputTokens: int32(t.output)}
			if r.OutputTokens < 1 {
				r.OutputTokens = int32(output)
			}
			c.turns, c.pauses = append(c.turns, r), append(c.pauses, clock.FromSeconds(t.pause))
		}
		s.list = append(s.list, c)
	}
	return s, nil
}

// appendText keeps so many tokens of a text and adds a segment of a name, so that it has a length.
func appendText(text workload.Content, keep, length int, name string) workload.Content {
	var list []workload.Segment
	left := int32(keep)
	for _, s := range text.Segments {
		if left <= 0 {
			break
		}
		s.Tokens = min(s.Tokens, left)
		left -= s.Tokens
		list = append(list, s)
	}
	if more := int32(length) - (int32(keep) - left); more > 0 {
		list = append(list, workload.Segment{ID: workload.SegmentID(name), Tokens: more})
	}
	return workload.Content{Segments: list}
}

// due is the conversation whose turn is next; nil if none is known.
func (s *talks) due() *conversation {
	var first *conversation
	for i := range s.list {
		c := &s.list[i]
		if c.awaiting || c.next == len(c.turns) || c.at >= s.end {
			continue
		}
		if first == nil || c.at < first.at {
			first = c
		}
	}
	return first
}

// Peek returns the arrival of the next turn that waits for no answer.
func (s *talks) Peek() (clock.Time, bool) {
	if c := s.due(); c != nil {
		return c.at, true
	}
	return 0, false
}

// Next sends that turn.
func (s *talks) Next() workload.Request {
	c := s.due()
	r := c.turns[c.next]
	r.ID, r.Arrival = s.id, c.at
	s.id++
	c.next++
	c.awaiting = true
	return r
}

// Done starts the pause before the next turn of the session.
func (s *talks) Done(r *workload.Request, end workload.End) bool {
	c := &s.list[r.Session-1]
	c.awaiting = false
	if c.next < len(c.turns) {
		c.at = end.At.Add(c.pauses[c.next])
	}
	return false
}

// Err is always nil.
func (s *talks) Err() error { return nil }

var _ workload.Source = (*talks)(nil)

// hostLink is the bandwidth of the link of a GPU to the memory of its host, in GB/s: PCIe 5.0 with 16 lanes.
const hostLink = 50

// multiTurn reports whether users of the row replay sessions of several turns.
func (r *Row) multiTurn() bool { return r.Users != nil }

// offload writes the memory of the host that keeps KV.
func (w *writer) offload() {
	r := w.row
	if r.Offload.On != "on" || or(r.Offload.HostGB, 0) <= 0 {
		return
	}
	w.c.apply("host_memory")
	w.line("offload:")
	w.line("  tiers: [{name: host, size: %gGB, bandwidth: %dGB/s}]", *r.Offload.HostGB, hostLink*r.tp())
}

// talksTraffic writes the traffic of sessions. The turns themselves come from a file.
func (w *writer) talksTraffic() {
	r := w.row
	w.c.apply("sessions")
	w.line("workload:")
	w.line("  arrivals: {process: closed, users: %d}", max(1, *r.Users))
	w.line("  input: {distribution: fixed, value: %.0f}", max(1, or(r.InputMean, 1000)))
	w.line("  output: {distribution: fixed, value: %.0f}", max(1, or(r.OutputMean, 1000)))
	sampling, _ := r.sampling(&w.llm)
	w.line("  sampling: %q", sampling)
	w.line("run:")
	w.line("  warmup: none")
	w.line("  requests: %d", max(1, or(r.Requests, *r.Users)))
}

// longestRun is the length of a run of sessions whose file does not say it, in seconds.
const longestRun = 1800

// readSessions finds the sessions of the row: those of its own file, or the first of those that other runs of the
// reference have, which replay the same ones.
func (c *Case) readSessions(ref *Reference) error {
	r := c.Rows[0]
	var list []recorded
	var sessions [][]turn
	var err error
	if r.RequestFile != "" {
		if list, err = readRequests(ref.requestPath(r)); err != nil {
			return err
		}
		if list[0].session == "" {
			return fmt.Errorf("%s: no column session (want session, turn and trace_id of each request)", r.RequestFile)
		}
		sessions = inTurn(sessionsOf(list), max(1, *r.Users))
	} else {
		if list, sessions, err = ref.sharedSessions(); err != nil {
			return err
		}
		n := len(sessions)
		if n == 0 {
			return fmt.Errorf("request_level_file: the cell is empty, and no other row has a file of sessions")
		}
		for k := n; k < *r.Users; k++ { // more users than sessions: others with the same lengths
			again := slices.Clone(sessions[k-n])
			for i := range again {
				again[i].trace += " of another user"
			}
			sessions = append(sessions, again)
		}
		sessions = sessions[:max(1, *r.Users)]
		c.apply("other_sessions")
	}
	c.output = int(math.Round(or(r.OutputMean, float64(meanOutput(list)))))
	for i := range sessions {
		served(sessions[i])
		sessions[i] = goOn(sessions[i])
	}
	c.sessions = sessions
	return nil
}

// sharedSessions joins what the files of all rows have of each session. The turns of a session are the same in all
// runs.
func (ref *Reference) sharedSessions() ([]recorded, [][]turn, error) {
	turns := map[string]map[int]turn{}
	var all []recorded
	for _, r := range ref.Rows {
		if !r.multiTurn() || r.RequestFile == "" {
			continue
		}
		list, err := readRequests(ref.requestPath(r))
		if err != nil {
			return nil, nil, err
		}
		all = append(all, list...)
		for _, session := range sessionsOf(list) {
			known := turns[session[0].session]
			if known == nil {
				known = map[int]turn{}
				turns[session[0].session] = known
			}
			for _, t := range session {
				if old, ok := known[t.number]; !ok || old.output == 0 {
					t.output = 0 // answers differ from run to run: the mean length is taken
					known[t.number] = t
				}
			}
		}
	}
	var sessions [][]turn
	for _, name := range slices.Sorted(maps.Keys(turns)) {
		var list []turn
		for _, number := range slices.Sorted(maps.Keys(turns[name])) {
			list = append(list, turns[name][number])
		}
		list[0].pause = 0
		sessions = append(sessions, list)
	}
	return all, sessions, nil
}

// Sessions go on beyond their last recorded turn, so that a run that is faster than the measured one does not run out
// of work, up to the longest prompt. Of 202 recorded turns an eighth grows by 10,800 tokens and the others by 790 (see
// [served]), and a fourth comes after 52 s and the others after 7.
const (
	moreTurns    = 200
	usualGrowth  = 2060 // tokens
	longGrowth   = 9200 // of every eighth turn
	usualPause   = 7    // seconds
	longPause    = 52   // before every fourth turn
	longestInput = 155_000
)

// goOn continues a session. A session that is as long as prompts get begins again with another text.
func goOn(turns []turn) []turn {
	first := turns[0]
	for k := range moreTurns {
		t := turns[len(turns)-1]
		t.cached = t.input
		growth := usualGrowth
		if k%8 == 7 {
			growth = longGrowth
		}
		t.input, t.number, t.pause, t.output = t.input+growth, t.number+1, usualPause, 0
		if k%4 == 3 {
			t.pause = longPause
		}
		if t.input > longestInput {
			t.input, t.cached, t.trace = first.input, 0, fmt.Sprint(first.trace, " again ", k)
		}
		turns = append(turns, t)
	}
	return turns
}
