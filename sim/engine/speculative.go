package engine

import (
	"clifftop/internal/faults"
	"clifftop/model"
	"clifftop/workload"
)

// Speculative is the settings of speculative decoding. A decoding sequence is given drafts of the next tokens in
// addition to the token that it lacks, and one forward pass verifies all of them. It produces one token, and another
// one for each accepted draft. The zero value is no speculative decoding.
type Speculative struct {
	// Tokens is the number of drafts of a sequence in an iteration (num_speculative_tokens), K.
	Tokens int32
	// Method is the method that proposes drafts.
	Method DraftMethod
	// Acceptance is, for each position, the probability that the draft is accepted if all drafts before it were. The
	// last value holds for all further positions. With the same probability a everywhere, an iteration yields
	// (1-a^(K+1))/(1-a) tokens on average.
	Acceptance []float64
	// Match is the probability that an n-gram lookup finds K drafts for an iteration; otherwise it finds none. Other
	// methods always propose drafts.
	Match float64
	// Script, if it is not nil, is the number of accepted drafts in the successive iterations of every request, instead
	// of Acceptance. No drafts are accepted after its end.
	Script []int32
	// Slots is the number of tokens of the budget that each sequence takes in addition to those that it is given: the
	// batch of the drafter has so many more. It is 1 for a draft model in vLLM, and K-1 more with parallel drafting.
	Slots int32
	// LookaheadAtAdmission allocates slots ahead also when a request is admitted. vLLM does not from 0.11 to 0.22.
	LookaheadAtAdmission bool
	// Seed is the seed of the draws. The k-th draw of a request depends only on Seed, the request's ID and k.
	Seed uint64
}

// DraftMethod is the source of drafts.
type DraftMethod uint8

// The methods. NGram looks the last tokens up in the text so far. The others have a KV cache of their own, so that
// every allocation of blocks includes as many additional slots as there are drafts. EAGLE and MTP need the hidden
// states of the last block of a prefix hit, so that this block is computed again.
const (
	NGram DraftMethod = iota
	EAGLE
	MTP
	DraftModel
)

// String returns the name of the method in scenario files.
func (m DraftMethod) String() string {
	return [...]string{"ngram", "eagle", "mtp", "draft"}[m]
}

// Purpose of the random stream of drafts.
const purposeDrafts = "drafts"

// On reports whether speculative decoding is enabled.
func (p *Speculative) On() bool { return p.Tokens > 0 }

// Lookahead returns the number of token slots that each allocation includes in addition to the given tokens.
func (p *Speculative) Lookahead() int32 {
	if p.Method == NGram {
		return 0
	}
	return p.Tokens
}

// DropsBlock reports whether the last block of a prefix hit is computed again.
func (p *Speculative) DropsBlock() bool { return p.On() && (p.Method == EAGLE || p.Method == MTP) }

// validateDrafts returns the faults of the settings of speculative decoding.
func (c *Config) validateDrafts() error {
	found := faults.List{Prefix: "speculative: "}
	want, p := found.Check, &c.Speculative
	want(p.Tokens >= 0, "num_speculative_tokens: %d is negative", p.Tokens)
	if !p.On() {
		return found.Err()
	}
	want(p.Method <= DraftModel, "method %d is not known", p.Method)
	want(len(p.Acceptance) > 0 || p.Script != nil, "acceptance: there is none")
	for _, a := range p.Acceptance {
		want(a >= 0 && a <= 1, "acceptance: %v is not a probability", a)
	}
	want(p.Slots >= 0 && int(p.Slots) < c.MaxNumBatchedTokens, "slots: %d is not allowed (want 0 or more, less than "+
		"max_num_batched_tokens)", p.Slots)
	want(p.Match >= 0 && p.Match <= 1, "match: %v is not a probability", p.Match)
	want(!c.hasKind(model.RecurrentState) || c.Hybrid == nil, "KV cache groups: recurrent states do not go with drafts")
	chunked := c.hasKind(model.ChunkedLocalAttention)
	want(!chunked || !c.PrefixCaching || !p.DropsBlock(), "method %v: it does not go with prefix caching of chunked "+
		"local attention, as in vLLM (turn enable_prefix_caching off)", p.Method)
	want(c.HostBlocks == 0, "swap space: sequences with drafts are computed again, not swapped")
	want(!c.Radix, "radix: a radix cache does not go with drafts")
	want(!c.Contiguous, "contiguous KV: it has no slots for drafts")
	return found.Err()
}

// drafter draws how many drafts are proposed and accepted.
type drafter struct {
	Speculative
	stream *workload.RNG
	async  bool // an iteration is composed before it is known which drafts of the one before are accepted
}

func newDrafter(p Speculative, async bool) drafter {
	return drafter{p, workload.NewRNG(p.Seed, purposeDrafts), p.On() && async}
}

// proposed returns the number of drafts that are proposed in an iteration of a request. Iterations count from 0.
func (d *drafter) proposed(request int64, iteration int32) int32 {
	if d.Method == NGram && d.Script == nil {
		d.stream.Seek(uint64(request), uint64(iteration))
		if !d.happens(d.Match) {
			return 0
		}
	}
	return d.Tokens
}

// accepted returns how many of the drafts are accepted.
func (d *drafter) accepted(request int64, iteration, drafts int32) int32 {
	if d.Script != nil {
		if int(iteration) >= len(d.Script) {
			return 0
		}
		return min(d.Script[iteration], drafts)
	}
	d.stream.Seek(uint64(request), uint64(iteration))
	if matches := d.happens(d.Match); d.Method == NGram && !matches {
		return 0
	}
	for k := range drafts {
		if !d.happens(d.Acceptance[min(int(k), len(d.Acceptance)-1)]) {
			return k
		}
	}
	return drafts
}

// happens draws an event of the given probability.
func (d *drafter) happens(probability float64) bool {
	return float64(d.stream.Uint64()>>11) < probability*(1<<53)
}

// slots returns the number of token slots allocated for a sequence that is given tokens up to this total.
func (c *Config) slots(tokens int32) int32 {
	if !c.Speculative.On() {
		return tokens
	}
	return max(tokens, min(tokens+c.Speculative.Lookahead(), c.MaxModelLen))
}

// admissionSlots is slots for a request that is being admitted.
func (c *Config) admissionSlots(tokens int32) int32 {
	if !c.Speculative.LookaheadAtAdmission {
		return tokens
	}
	return c.slots(tokens)
}

// padding returns the number of dummy drafts with which a request may be admitted that has computed all but missing of
// its known tokens. The tokens that it then computes and the next one fit into the maximum model length.
func (c *Config) padding(known, missing int32) int32 {
	if missing != 1 || known+c.Speculative.Tokens >= c.MaxModelLen {
		return 0
	}
	return c.Speculative.Tokens
}

// withDrafts returns the largest number of slots of a request whose drafts are at most at a number of tokens.
func (c *Config) withDrafts(tokens int32) int32 {
	return min(tokens+c.Speculative.Tokens+c.Speculative.Lookahead(), c.MaxModelLen)
}
