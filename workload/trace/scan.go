package trace

import (
	"io"

	"clifftop/sim/clock"
)

// Stats are the statistics of a trace.
type Stats struct {
	Rows        int64
	Requests    int64      // more than Rows if rows are sessions
	First, Last clock.Time // arrivals
	// MeanInput and MeanOutput are in tokens; MaxTotal is the longest input and output together.
	MeanInput, MeanOutput float64
	MaxTotal              int32
	// Sessions is the highest session number.
	Sessions int32
	// Adapters is the highest number of a LoRA adapter.
	Adapters int32
	// Plain means that no row has a session, shared content, a class or a priority.
	Plain bool
	// ZeroGaps is the number of rows that arrive together with the row before.
	ZeroGaps int64
	// Quantum is the tick of the recording clock if 90 % of the nonzero gaps are multiples of the most common one
	// to within 1 %; otherwise 0.
	Quantum clock.Duration
}

// Span returns the time that the trace covers plus one mean gap, so that copies of the trace can follow each other.
func (s Stats) Span() clock.Duration {
	d := s.Last.Sub(s.First)
	if s.Rows < 2 {
		return d
	}
	return d + d/clock.Duration(s.Rows-1)
}

// Rate returns the mean rate in rows per second; 0 if all rows arrive together.
func (s Stats) Rate() float64 {
	if s.Last == s.First {
		return 0
	}
	return float64(s.Rows-1) / s.Last.Sub(s.First).Seconds()
}

// Quantised reports whether the recording clock was coarse: at least half of the rows share a tick with the row
// before. A replay without correction would have bursts that the traffic did not have.
func (s Stats) Quantised() bool {
	return coarse(s.Rows-1, s.ZeroGaps, s.Quantum)
}

// Scan reads a trace to its end and returns its statistics, or the error of the reader.
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
		s.Sessions, s.Adapters = max(s.Sessions, q.Session), max(s.Adapters, q.Adapter)
		s.Plain = s.Plain && q.Session == 0 && q.Content == nil && q.Class == 0 && q.Priority == 0
	}
	s.ZeroGaps, s.Quantum = ticks.Zeros(), ticks.Quantum()
	if s.Rows > 0 {
		s.MeanInput = float64(input) / float64(s.Requests)
		s.MeanOutput = float64(output) / float64(s.Requests)
	}
	return s, nil
}

// Ticks detects the tick of a coarse recording clock from the gaps between rows. The zero value is ready to use.
type Ticks struct {
	n, zeros int64
	counts   map[clock.Duration]int64 // gaps by length, while there are few lengths
}

// maxGapCounts is the number of different gaps above which the clock is not coarse.
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

// Zeros returns the number of gaps of length 0.
func (t *Ticks) Zeros() int64 { return t.zeros }

// Coarse reports whether at least half of the gaps are 0 and the others are multiples of a tick.
func (t *Ticks) Coarse() bool { return coarse(t.n, t.zeros, t.Quantum()) }

func coarse(gaps, zeros int64, quantum clock.Duration) bool {
	return gaps > 1 && 2*zeros >= gaps && quantum > 0
}

// Quantum returns the most common nonzero gap if 90 % of the nonzero gaps are multiples of it to within 1 %;
// otherwise 0.
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
