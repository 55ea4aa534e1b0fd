package simtest

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// gpuTime checks that the GPU time of iterations, shared out by tokens, is that of the requests, by what it was spent
// on.
func (c *checker) gpuTime() {
	var in, of event.GPUTime // of iterations and of requests; those of iterations hold decodes in Prefill
	var lost, lostOf int
	sharers, carry := int64(0), int64(0)
	for i, it := range c.t.Iterations {
		tokens := int64(it.Decodes + it.Drafts + it.PrefillTokens + it.RecomputedTokens + it.PaddedRows +
			it.PaddedTokens)
		if tokens != sharers {
			sharers, carry = tokens, 0
		}
		c.want(it.Carry == carry, "iteration %d: %d fs are carried to it, want %d", i, it.Carry, carry)
		time := carry + it.Femtos - it.SwapFemtos - it.HostFemtos
		if it.Passages != "" {
			time = carry + it.Worked
		}
		each := time / tokens
		carry = time - each*tokens
		rejected := it.Drafts - it.Accepted + it.Discarded
		in.Recomputed += each * int64(it.RecomputedTokens)
		in.Lost += each * int64(it.LostTokens)
		in.Drafts += each * int64(rejected)
		in.Prefill += each * int64(it.PrefillTokens-it.LostTokens+it.Decodes+it.Drafts-rejected)
		lost += it.LostTokens
		c.want(0 <= it.LostTokens && it.LostTokens <= it.PrefillTokens, "iteration %d: %d of %d tokens had been lost",
			i, it.LostTokens, it.PrefillTokens)
	}
	for i := range c.t.Records {
		rec := &c.t.Records[i]
		of.Prefill += rec.GPU.Prefill + rec.GPU.Decode
		of.Recomputed += rec.GPU.Recomputed
		of.Lost += rec.GPU.Lost
		of.Drafts += rec.GPU.Drafts
		lostOf += int(rec.LostTokens)
		c.want(rec.Scheduled != clock.Never || rec.GPU == event.GPUTime{},
			"request %d: it was never scheduled, and took %+v", rec.Request.ID, rec.GPU)
	}
	c.want(in == of, "GPU time: %+v in iterations, %+v of requests", in, of)
	c.want(lost == lostOf, "tokens: %d lost by the cache in iterations, %d in records", lost, lostOf)
}
