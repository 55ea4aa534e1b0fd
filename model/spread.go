package model

// Spread is the step timer of a worker whose data-parallel ranks share its requests, seen as one engine. The ranks
// iterate in lock step, so that an iteration lasts as long as that of the busiest rank: it has its part of the decoding
// sequences, rounded up, with the mean context, and every n-th prompt chunk. That is what balanced ranks do.
type Spread struct {
	rank   StepTimer
	ranks  int
	others int64 // workers' ranks for each of these that are loaded alike and are not simulated, this one included
	budget int64 // the most prompt tokens of a rank
}

var _ StepTimer = (*Spread)(nil)

// NewSpread returns the timer of a worker with so many ranks; rank is the timer of one. share is the number of equal
// parts of the worker of which one is simulated: the ranks of the others are loaded alike. budget is the most prompt
// tokens of a rank in an iteration: the rest of its chunks is for the other ranks. A worker with one rank has the timer
// of the rank.
func NewSpread(rank StepTimer, ranks, share, budget int) StepTimer {
	if ranks <= 1 {
		return rank
	}
	return &Spread{rank, ranks / max(1, share), int64(max(1, share)), int64(budget)}
}

// Span implements [StepTimer].
func (t *Spread) Span(b *Batch) (first, slope int64, n int) {
	busiest := t.Busiest(b)
	return t.rank.Span(&busiest)
}

// Busiest returns the batch of the busiest rank.
func (t *Spread) Busiest(b *Batch) Batch {
	r := *b
	if b.Decodes > 0 {
		r.Decodes = t.share(b.Decodes)
		r.Context = portion(b.Context, r.Decodes, b.Decodes)
		r.SharedTokens = portion(b.SharedTokens, r.Decodes, b.Decodes)
		r.Drafts = int(portion(int64(b.Drafts), r.Decodes, b.Decodes))
	}
	rest := max(0, b.Emit-b.Decodes-b.Drafts) // of chunks that complete their prompt
	r.Emit = r.Decodes + r.Drafts + t.share(rest)
	r.Chunks = t.longest(b.Chunks)
	r.GroupTokens, r.BusiestTokens = b.tokens()*t.others, r.tokens()
	return r
}

// share is the part of the busiest rank.
func (t *Spread) share(n int) int { return (n + t.ranks - 1) / t.ranks }

func portion(sum int64, part, whole int) int64 {
	return sum/int64(whole)*int64(part) + sum%int64(whole)*int64(part)/int64(whole)
}

// longest deals the chunks out in turn and returns those of the rank with the most new tokens.
func (t *Spread) longest(chunks []Chunk) []Chunk {
	if len(chunks) < 2 {
		return chunks
	}
	best, most := 0, int64(-1)
	for k := range min(t.ranks, len(chunks)) {
		sum := int64(0)
		for i := k; i < len(chunks); i += t.ranks {
			sum += int64(chunks[i].New)
		}
		if sum > most {
			best, most = k, sum
		}
	}
	list := make([]Chunk, 0, (len(chunks)+t.ranks-1)/t.ranks)
	left := t.budget
	for i := best; i < len(chunks); i += t.ranks {
		c := chunks[i]
		if len(list) > 0 { // the first is whole: a chunk is on one rank
			if c.New = min(c.New, int32(max(0, left))); c.New == 0 {
				break
			}
		}
		list = append(list, c)
		left -= int64(c.New)
	}
	return list
}

// tokens returns the number of tokens that the step computes.
func (b *Batch) tokens() int64 {
	n := b.decodeTokens()
	for _, c := range b.Chunks {
		n += int64(c.New)
	}
	return n
}
