package naive

import (
	"clifftop/sim/engine"
	"clifftop/workload"
)

// propose finds drafts for the next iteration of s. If it is composed before the drafts are known, there are always as
// many.
func (n *Engine) propose(s *sequence) {
	p := &n.cfg.Speculative
	if !p.On() {
		return
	}
	s.drafts = p.Tokens
	if !s.ahead {
		s.drafts = proposed(p, s)
	}
	s.drafts = min(s.drafts, n.cfg.MaxModelLen-1-s.known())
}

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
	list := draws(p, s)
	if p.Method == engine.NGram && list[0] >= p.Match {
		return 0
	}
	for _, draw := range list[1 : 1+drafts] {
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

// admissionSlots is slots for a sequence that is being admitted.
func admissionSlots(cfg *engine.Config, tokens int32) int32 {
	if cfg.Speculative.LookaheadAtAdmission {
		return slots(cfg, tokens)
	}
	return tokens
}

// padding is the number of dummy drafts with which a request may be admitted that knows and misses so many tokens.
func padding(cfg *engine.Config, known, missing int32) int32 {
	if missing == 1 && known+cfg.Speculative.Tokens < cfg.MaxModelLen {
		return cfg.Speculative.Tokens
	}
	return 0
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
