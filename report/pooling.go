package report

// Pooling says how the numbers of several runs become one.
type Pooling int

// The ways of pooling.
const (
	Mean             Pooling = iota // the mean over the runs, with an interval by Student's t
	Sum                             // the sum over the runs
	First                           // the number of the first run: it is the same in all
	Max                             // the maximum over the runs
	RootMeanSquare                  // the root of the mean square
	PerWindow                       // the mean weighted by the length of the window
	PerGap                          // weighted by the number of inter-token latencies
	PerPromptToken                  // weighted by the prompt tokens in the window
	PerComputedToken                // weighted by the computed tokens
	PerGPUHour                      // weighted by the GPU hours
	ShareOfRequests                 // the share of all offered requests
	Recomputed                      // computed again from other pooled numbers
)

func (p Pooling) String() string {
	return [...]string{"mean", "sum", "first", "maximum", "root mean square", "by window length",
		"by inter-token latencies",
		"by prompt tokens", "by computed tokens", "by GPU hours", "share of all requests", "recomputed"}[p]
}

// weight reads the number by which a run's value is weighted; nil for ways of pooling without weights.
func (p Pooling) weight() func(*Summary) float64 {
	switch p {
	case PerWindow:
		return func(s *Summary) float64 { return s.Window.EndS - s.Window.StartS }
	case PerGap:
		return func(s *Summary) float64 { return float64(s.Latency.ITL.N) }
	case PerPromptToken:
		return func(s *Summary) float64 { return perWindow(s.Throughput.InputTokensPerS, s) }
	case PerComputedToken:
		return ComputedTokens
	case PerGPUHour:
		return func(s *Summary) float64 { return *s.System.Replicas.GPUHours }
	case ShareOfRequests:
		return (*Summary).arrivals
	}
	return nil
}
