package event

// GPU time is charged to tokens. The time of an iteration, without KV copies and waits for the host, is split into
// equal parts of whole femtoseconds for the tokens that it computes, padding included. The remainder is carried to the
// next iteration if that computes as many tokens; otherwise it is charged to no request: less than a femtosecond per
// token each time that the number changes. The sum for one token of each of many equal iterations is therefore one
// division, and does not depend on how they are grouped into spans.

// GPUTime is the GPU time of one attempt in femtoseconds, at most 2.5 hours of each kind. It includes what an iteration
// in flight computes for a client that leaves.
type GPUTime struct {
	Prefill    int64 // tokens of the prompt, for the first time
	Lost       int64 // those of them that the prefix cache had lost
	Recomputed int64 // tokens computed again after preemptions
	Decode     int64 // output tokens
	Drafts     int64 // rejected drafts
}

// Total is the sum.
func (t *GPUTime) Total() int64 { return t.Prefill + t.Lost + t.Recomputed + t.Decode + t.Drafts }

// Add adds the time of another attempt.
func (t *GPUTime) Add(u *GPUTime) {
	t.Prefill += u.Prefill
	t.Lost += u.Lost
	t.Recomputed += u.Recomputed
	t.Decode += u.Decode
	t.Drafts += u.Drafts
}

// Sharers is the number of tokens that share the time of an iteration.
func (s *Span) Sharers() int64 { return int64(s.Computed() + s.PaddedRows + s.PaddedTokens) }

// SharedFemtos is the time of the first n iterations that is charged, in femtoseconds, with the Carry.
func (s *Span) SharedFemtos(n int) int64 {
	if s.Passages != nil {
		return s.Carry + int64(n)*s.passing()
	}
	k := int64(n)
	return s.Carry + k*(s.First-s.SwapFemtos-s.HostFemtos) + int64(uint64(k*(k-1))/2)*(s.Slope-s.HostSlope)
}

// Share is the time of one token of each of the first n iterations, in femtoseconds.
func (s *Span) Share(n int) int64 { return s.SharedFemtos(n) / s.Sharers() }

// CarryAfter is the remainder after the first n iterations, in femtoseconds.
func (s *Span) CarryAfter(n int) int64 {
	if tokens := s.Sharers(); tokens > 0 {
		return s.SharedFemtos(n) % tokens
	}
	return 0
}
