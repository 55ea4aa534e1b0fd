package naive

import (
	"clifftop/sim/engine"
	"clifftop/workload"
)

// proposed is the number of drafts that there are for the next iteration of s.
func proposed(p *engine.Speculative, s *sequence) int32 {
	if p.Script == nil && p.Method == engine.NGram && draws(p, s)[0] >= p.Match {
		return 0
	}
	return p.Tokens
}

// accepted is how many of so many drafts of s are.
func accepted(p *engine.Speculative, s *sequence, drafts int32) (n int32) {
	if p.Script != nil {
		if s.verified < len(p.Script) {
			n = min(p.Script[s.verified], drafts)
		}
		return n
	}
	for _, draw := range draws(p, s)[1 : 1+drafts] {
		if draw >= p.Acceptance[min(int(n), len(p.Acceptance)-1)] {
			break
		}
		n++
	}
	return n
}

// draws are those for the next iteration of s: whether there are drafts, and for each whether it is accepted.
func draws(p *engine.Speculative, s *sequence) (list []float64) {
	stream := workload.NewRNG(p.Seed, "drafts")
	stream.Seek(uint64(s.rec.Request.ID), uint64(s.verified))
	for range 1 + p.Tokens {
		list = append(list, float64(stream.Uint64()>>11)/(1<<53))
	}
	return list
}

// slots is the number of tokens that room is taken for when a sequence is given tokens up to so many in all.
func slots(cfg *engine.Config, tokens int32) int32 {
	p := &cfg.Speculative
	if p.Tokens == 0 || p.Method == engine.NGram {
		return tokens
	}
	return max(tokens, min(tokens+p.Tokens, cfg.MaxModelLen))
}

// MostTokens is the most tokens that room is taken for of a request: those of an iteration whose last drafts are past
// the end of the answer, and the slots ahead of them.
func MostTokens(cfg *engine.Config, prompt, declared int32) int32 {
	tokens := prompt + declared - 1
	if cfg.Speculative.Tokens == 0 {
		return tokens
	}
	return slots(cfg, min(tokens+cfg.Speculative.Tokens, cfg.MaxModelLen))
}

// OutputLengths is how long the answer to r is, and how long the engine has to expect it to be.
func OutputLengths(cfg *engine.Config, r *workload.Request) (answer, declared int32) {
	longest := cfg.MaxModelLen - r.InputTokens
	answer = min(r.OutputTokens, longest)
	declared = answer
	if cfg.MaxTokens > 0 {
		declared = min(max(r.OutputTokens, cfg.MaxTokens), longest)
	}
	return answer, declared
}
