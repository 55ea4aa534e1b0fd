package trace

import (
	"io"

	"clifftop/sim/clock"
)

// Stats sums up a trace.
type Stats struct {
	Rows        int64
	Requests    int64      // more than rows where rows are sessions
	First, Last clock.Time // arrivals
	// MeanInput and MeanOutput are in tokens, MaxTotal is the longest input and output together.
	MeanInput, MeanOutput float64
	MaxTotal              int32
	// Sessions is the highest session number.
	Sessions int32
	// Plain says that no row has a session, shared content, a class or a priority.
	Plain bool
	// ZeroGaps counts rows that arrive together with the row before.
	ZeroGaps int64
	// Quantum is the tick of the recording clock where it shows: nine of ten gaps, zeros aside, are
	// multiples of the most common one, to 1 %. Else it is 0.
	Quantum clock.Duration
}

// Span is the time that the trace covers, with one mean gap after the last row, so that copies of
// the trace can follow each other.
func (s Stats) Span() clock.Duration {
	d := s.Last.Sub(s.First)
	if s.Rows < 2 {
		return d
	}
	return d + d/clock.Duration(s.Rows-1)
}

// Rate is the mean rate in requests per second; 0 where all arrive together.
func (s Stats) Rate() float64 {
	if s.Last == s.First {
		return 0
	}
	return float64(s.Rows-1) / s.Last.Sub(s.First).Seconds()
}

// Quantised says that the recording clock was coarse: at least half of the rows share a tick with the
// row before. Replayed as they stand they would come in bursts that the traffic did not have.
func (s Stats) Quantised() bool {
	return coarse(s.Rows-1, s.ZeroGaps, s.Quantum)
}

// Scan reads a trace to its end.
func Scan(r Reader) (Stats, error) {
	s := Stats{Plain: true}
	var input, output int64
	var ticks Ticks
	for {
		q, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return s, err
		}
		if s.Rows == 0 {
			s.First, s.Last = q.Arrival, q.Arrival
		} else {
			ticks.Add(q.Arrival.Sub(s.Last))
		}
		s.Last = q.Arrival
		s.Rows++
		s.Requests += q.Requests()
		input += int64(q.InputTokens)
		output += int64(q.OutputTokens)
		s.MaxTotal = max(s.MaxTotal, q.InputTokens+q.OutputTokens)
		for _, t := range q.Then {
			input += int64(t.InputTokens)
			output += int64(t.OutputTokens)
			s.MaxTotal = max(s.MaxTotal, t.InputTokens+t.OutputTokens)
		}
		s.Sessions = max(s.Sessions, q.Session)
		s.Plain = s.Plain && q.Session == 0 && q.Content == nil && q.Class == 0 && q.Priority == 0
	}
	s.ZeroGaps, s.Quantum = ticks.Zeros(), ticks.Quantum()
	if s.Rows > 0 {
		s.MeanInput = float64(input) / float64(s.Requests)
		s.MeanOutput = float64(output) / float64(s.Requests)
	}
	return s, nil
}

// Ticks looks for the tick of a coarse recording clock in the gaps between rows. The zero value has seen none.
type Ticks struct {
	n, zeros int64
	counts   map[clock.Duration]int64 // of gaps by their length, as long as there are few lengths
}

// maxGapCounts is more lengths than a coarse clock gives.
const maxGapCounts = 4096

// Add counts a gap.
func (t *Ticks) Add(gap clock.Duration) {
	t.n++
	if gap == 0 {
		t.zeros++
		return
	}
	if t.counts == nil {
		t.counts = map[clock.Duration]int64{}
	}
	if len(t.counts) <= maxGapCounts {
		t.counts[gap]++
	}
}

// Zeros is the number of gaps of length 0.
func (t *Ticks) Zeros() int64 { return t.zeros }

// Coarse says that at least half of the gaps are 0 and the others show a tick.
func (t *Ticks) Coarse() bool { return coarse(t.n, t.zeros, t.Quantum()) }

func coarse(gaps, zeros int64, quantum clock.Duration) bool {
	return gaps > 1 && 2*zeros >= gaps && quantum > 0
}

// Quantum is the most common gap that is not 0, if nine of ten of those gaps are multiples of it to 1 %; else
// it is 0.
func (t *Ticks) Quantum() clock.Duration {
	if len(t.counts) > maxGapCounts {
		return 0
	}
	var q clock.Duration
	var all, multiples int64
	for gap, n := range t.counts {
		all += n
		if n > t.counts[q] || n == t.counts[q] && gap < q {
			q = gap
		}
	}
	for gap, n := range t.counts {
		nearest := (gap + q/2) / q * q
		if off := max(gap-nearest, nearest-gap); nearest > 0 && off*100 <= q {
			multiples += n
		}
	}
	if 10*multiples < 9*all {
		return 0
	}
	return q
}

// readAll holds the rows of a trace.
func readAll(r Reader) ([]Row, error) {
	var rows []Row
	for {
		q, err := r.Next()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		rows = append(rows, q)
	}
}
