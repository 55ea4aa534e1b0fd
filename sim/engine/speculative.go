package engine

import (
	"clifftop/internal/faults"
	"clifftop/workload"
)

// Speculative describes speculative decoding: a sequence that decodes is given drafts of the tokens to come beside
// the token that it lacks, and one forward pass verifies them all. It produces one token, and another for each draft
// that is accepted. The zero Speculative is none.
type Speculative struct {
	// Tokens is the number of drafts of a sequence in an iteration (num_speculative_tokens), K.
	Tokens int32
	// Method proposes them.
	Method DraftMethod
	// Acceptance is, for each place, the probability that the draft there is accepted if all before it
	// were; the last one stands for the places beyond. With one probability a for all, an iteration brings
	// (1-a^(K+1))/(1-a) tokens on average.
	Acceptance []float64
	// Match is the probability that an n-gram lookup finds drafts for an iteration, K or none.
	// Other methods always have some.
	Match float64
	// Script, if it is not nil, says how many drafts are accepted in the successive iterations of any
	// request, instead of Acceptance; none beyond its end.
	Script []int32
	// Seed is that of the draws. The k-th of them for a request do not depend on anything but Seed, the
	// request's ID and k.
	Seed uint64
}

// DraftMethod is where drafts come from.
type DraftMethod uint8

// The methods. NGram looks the last tokens up in the text so far. The others have a KV cache of their own, so that
// every allocation of blocks takes as many more slots as there are drafts; EAGLE and MTP need the hidden states
// of the last block of what a prefix cache holds, which is computed again.
const (
	NGram DraftMethod = iota
	EAGLE
	MTP
	DraftModel
)

// String is the method as scenarios name it.
func (m DraftMethod) String() string {
	return [...]string{"ngram", "eagle", "mtp", "draft"}[m]
}

// Purpose of the random stream of drafts.
const purposeDrafts = "drafts"

// On reports whether there is speculative decoding.
func (p *Speculative) On() bool { return p.Tokens > 0 }

// Lookahead is the number of token slots that each allocation takes beyond the tokens that are given.
func (p *Speculative) Lookahead() int32 {
	if p.Method == NGram {
		return 0
	}
	return p.Tokens
}

// DropsBlock says that a prefix hit goes without its last block.
func (p *Speculative) DropsBlock() bool { return p.On() && (p.Method == EAGLE || p.Method == MTP) }

func (p *Speculative) validate(c *Config) error {
	found := faults.List{Prefix: "speculative: "}
	want := found.Check
	want(p.Tokens >= 0, "num_speculative_tokens: %d is negative", p.Tokens)
	if !p.On() {
		return found.Err()
	}
	want(p.Method <= DraftModel, "method %d is not known", p.Method)
	want(len(p.Acceptance) > 0 || p.Script != nil, "acceptance: there is none")
	for _, a := range p.Acceptance {
		want(a >= 0 && a <= 1, "acceptance: %v is not a probability", a)
	}
	want(p.Match >= 0 && p.Match <= 1, "match: %v is not a probability", p.Match)
	want(!c.AsyncScheduling, "async_scheduling: the next iteration cannot be composed before it is known which drafts are accepted (turn it off)")
	want(c.HostBlocks == 0, "swap space: sequences with drafts are computed again, not swapped")
	want(!c.Radix, "radix: a radix cache does not go with drafts")
	want(!c.Contiguous, "contiguous KV: it has no slots for drafts")
	return found.Err()
}

// drafter draws what becomes of drafts.
type drafter struct {
	Speculative
	stream *workload.RNG
}

func newDrafter(p Speculative) drafter {
	return drafter{p, workload.NewRNG(p.Seed, purposeDrafts)}
}

// proposed is the number of drafts that there are for an iteration of a request, counted from 0.
func (d *drafter) proposed(request int64, iteration int32) int32 {
	if d.Method == NGram && d.Script == nil {
		d.stream.Seek(uint64(request), uint64(iteration))
		if !d.happens(d.Match) {
			return 0
		}
	}
	return d.Tokens
}

// accepted is how many of so many drafts are.
func (d *drafter) accepted(request int64, iteration, drafts int32) int32 {
	if d.Script != nil {
		if int(iteration) >= len(d.Script) {
			return 0
		}
		return min(d.Script[iteration], drafts)
	}
	d.stream.Seek(uint64(request), uint64(iteration))
	d.stream.Uint64() // whether there are drafts
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

// slots is the number of tokens that a sequence takes room for which is given tokens up to so many in all.
func (c *Config) slots(tokens int32) int32 {
	if !c.Speculative.On() {
		return tokens
	}
	return max(tokens, min(tokens+c.Speculative.Lookahead(), c.MaxModelLen))
}

// most is the most tokens that a request takes room for. The last token of an answer is never computed.
func (c *Config) most(prompt, declared int32) int32 {
	tokens := prompt + declared - 1
	if c.Speculative.On() {
		tokens = min(tokens+c.Speculative.Tokens+c.Speculative.Lookahead(), c.MaxModelLen)
	}
	return tokens
}
