package route

import "clifftop/workload"

// prefillLoad counts the prompt tokens of requests that were sent to endpoints and have no first token yet, as far as
// one router knows.
type prefillLoad struct {
	tokens  []int64         // by replica
	charged map[int64]int32 // by request
}

func (b *prefillLoad) of(replica int) int64 {
	if replica >= len(b.tokens) {
		return 0
	}
	return b.tokens[replica]
}

func (b *prefillLoad) add(replica int, r *workload.Request, tokens int32) {
	for replica >= len(b.tokens) {
		b.tokens = append(b.tokens, 0)
	}
	if b.charged == nil {
		b.charged = make(map[int64]int32)
	}
	b.tokens[replica] += int64(tokens)
	b.charged[r.ID] = tokens
}

// done removes r, if it was counted.
func (b *prefillLoad) done(replica int, r *workload.Request) {
	if tokens, ok := b.charged[r.ID]; ok {
		b.tokens[replica] -= int64(tokens)
		delete(b.charged, r.ID)
	}
}
