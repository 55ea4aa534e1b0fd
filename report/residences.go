package report

import "math"

// MinResidences is the number of times that a run should be longer than a request takes from admission on. A
// system that starts empty needs about one such time to fill, so that in a shorter run a tenth of the
// work and more would be missing from its throughput. Of a warm-up that is cut at least half must be left.
const MinResidences = 10

// Residences is the length of the window in units of the mean time that a request takes from admission to
// its last token. Waiting is left out: under overload it grows with the run. NaN if unknown.
func (s *Summary) Residences() float64 {
	e2e, queue := s.Latency.E2E.Mean, s.Latency.Queue.Mean
	if e2e == nil || queue == nil || *e2e <= *queue {
		return math.NaN()
	}
	return (s.Window.EndS - s.Window.StartS) * 1000 / (*e2e - *queue)
}

// TooShort reports whether the window is too short to measure a throughput in.
func (s *Summary) TooShort() bool {
	n := s.Residences()
	return n < MinResidences/2 || n*s.Window.EndS < MinResidences*(s.Window.EndS-s.Window.StartS)
}
