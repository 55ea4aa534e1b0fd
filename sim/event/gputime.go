package event

// GPU time is shared out by tokens. What copies of KV and waits for the host leave of an iteration's time goes in equal
// parts, whole femtoseconds, to the tokens that it computes, those of padding among them. What is left over is carried
// to the next iteration if this computes as many tokens, and is charged to no request otherwise: less than a
// femtosecond a token each time that the number changes. So a token of each of many like iterations takes a sum that
// one division tells, and that does not depend on how they are taken together.

// GPUTime is the GPU time that one attempt took, in femtoseconds: at most 2.5 hours each. What an iteration in flight
// computes for a client that leaves counts.
type GPUTime struct {
	Prefill    int64 // tokens of the prompt, for the first time
	Lost       int64 // those of them that the prefix cache had lost
	Recomputed int64 // tokens computed again after preemptions
	Decode     int64 // tokens of the answer
	Drafts     int64 // drafts of no use
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

// Sharers is the number of tokens among which the time of an iteration is shared out.
func (s *Span) Sharers() int64 { return int64(s.Computed() + s.PaddedRows + s.PaddedTokens) }

// SharedFemtos is the time of the first n iterations that is shared out, in femtoseconds, with the Carry.
func (s *Span) SharedFemtos(n int) int64 {
	if s.Passages != nil {
		return s.Carry + int64(n)*s.passing()
	}
	femtos := s.Carry + s.Femtos(n)
	if s.SwapFemtos|s.HostFemtos|s.HostSlope != 0 {
		k := int64(n)
		femtos -= k*(s.SwapFemtos+s.HostFemtos) + k*(k-1)/2*s.HostSlope
	}
	return femtos
}

// Share is the time of one token of each of the first n iterations, in femtoseconds.
func (s *Span) Share(n int) int64 { return s.SharedFemtos(n) / s.Sharers() }

// CarryAfter is what is left over after the first n iterations, in femtoseconds.
func (s *Span) CarryAfter(n int) int64 {
	if tokens := s.Sharers(); tokens > 0 {
		return s.SharedFemtos(n) % tokens
	}
	return 0
}
