package naive

import (
	"clifftop/sim/engine"
	"clifftop/workload"
)

// proposed is the number of drafts for the next iteration of s.
func proposed(p *engine.Speculative, s *sequence) int32 {
	if p.Script == nil && p.Method == engine.NGram && draws(p, s)[0] >= p.Match {
		return 0
	}
	return p.Tokens
}

// accepted is how many of the first drafts of s are accepted.
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

// draws are the random numbers for the next iteration of s: one for whether there are drafts, and one for each draft.
func draws(p *engine.Speculative, s *sequence) (list []float64) {
	stream := workload.NewRNG(p.Seed, "drafts")
	stream.Seek(uint64(s.rec.Request.ID), uint64(s.verified))
	for range 1 + p.Tokens {
		list = append(list, float64(stream.Uint64()>>11)/(1<<53))
	}
	return list
}

// slots is the number of tokens that a sequence takes room for when it is given tokens up to a number.
func slots(cfg *engine.Config, tokens int32) int32 {
	p := &cfg.Speculative
	if p.Tokens == 0 || p.Method == engine.NGram {
		return tokens
	}
	return max(tokens, min(tokens+p.Tokens, cfg.MaxModelLen))
}

// MostTokens is the most tokens that a request takes room for: those of an iteration whose last drafts are past the end
// of the output, and the slots ahead of them.
func MostTokens(cfg *engine.Config, prompt, declared int32) int32 {
	tokens := prompt + declared - 1
	if cfg.Speculative.Tokens == 0 {
		return tokens
	}
	return slots(cfg, min(tokens+cfg.Speculative.Tokens, cfg.MaxModelLen))
}

// OutputLengths is the length of the output of r, and the longest output that the engine must expect.
func OutputLengths(cfg *engine.Config, r *workload.Request) (answer, declared int32) {
	longest := cfg.MaxModelLen - r.InputTokens
	answer = min(r.OutputTokens, longest)
	declared = answer
	if cfg.MaxTokens > 0 {
		declared = min(max(r.OutputTokens, cfg.MaxTokens), longest)
	}
	return answer, declared
}
