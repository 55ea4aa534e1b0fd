package kvevents

import (
	"sync"

	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/workload"
)

// text is the tokens of a request. The output is computed when it is needed.
type text struct {
	request int64
	prompt  []uint32
	adapter int32
	keys    []uint64 // in the book
}

// book has the texts of the requests that have not ended, by the keys of their blocks. It is used by the goroutine of
// the simulation, except for note.
type book struct {
	kinds  []blockKind // of the replicas
	blocks map[uint64]entry
	live   map[int64]*text
	ended  []ended // in the order in which that became known

	mu    sync.Mutex
	noted map[*workload.Content]noted // of requests that have not arrived
}

// entry is a block of requests that have not ended.
type entry struct {
	text  *text // of one that has or had it
	users int32 // requests that have it
}

// noted is the tokens of a prompt, and how many requests have it.
type noted struct {
	tokens   []uint32
	requests int
}

// ended is a request that ends at an instant.
type ended struct {
	at      clock.Time
	request int64
}

// blockKind says how a replica makes the keys of blocks.
type blockKind struct {
	size  int32
	radix bool
}

// kindOf returns how an engine makes the keys of the blocks that it reports. ok is false if it has no prefix cache.
func kindOf(cfg *engine.Config) (k blockKind, ok bool) {
	k = blockKind{cfg.BlockSize, cfg.Radix}
	if cfg.Hybrid != nil {
		k.size = 0
		for i := range cfg.Hybrid.Groups {
			if g := &cfg.Hybrid.Groups[i]; g.KeepsAll() {
				k.size = int32(g.BlockSize)
				break
			}
		}
	}
	return k, cfg.PrefixCaching && k.size > 0
}

// note gives the tokens of a prompt to the next request with its content. It may be called by any goroutine.
func (b *book) note(c *workload.Content, tokens []uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.noted == nil {
		b.noted = make(map[*workload.Content]noted)
	}
	b.noted[c] = noted{tokens, b.noted[c].requests + 1}
}

// arrived enters the blocks of a request. It ignores a request without tokens.
func (b *book) arrived(r *workload.Request) {
	b.mu.Lock()
	n, ok := b.noted[r.Content]
	if n.requests--; n.requests > 0 {
		b.noted[r.Content] = n
	} else {
		delete(b.noted, r.Content)
	}
	b.mu.Unlock()
	if !ok || len(n.tokens) != int(r.InputTokens) {
		return
	}
	t := &text{request: r.ID, prompt: n.tokens, adapter: r.Adapter}
	for _, k := range b.kinds {
		walk := workload.NewBlockKeys(r, k.size)
		if k.radix { // its tree has the keys of the text as content
			c := workload.Content{Segments: r.Text(nil)}
			walk = workload.NewBlockKeys(&workload.Request{Content: &c, InputTokens: r.InputTokens + r.OutputTokens},
				k.size)
		}
		for range (r.InputTokens + r.OutputTokens) / k.size {
			key, _ := walk.Next()
			t.keys = append(t.keys, key)
		}
	}
	for _, key := range t.keys {
		e := b.blocks[key]
		if e.text == nil {
			e.text = t
		}
		e.users++
		b.blocks[key] = e
	}
	b.live[r.ID] = t
}

func (b *book) find(key uint64) *text { return b.blocks[key].text }

// finished notes that a request ends at an instant. Its blocks may be stored until then.
func (b *book) finished(request int64, at clock.Time) {
	if b.live[request] != nil {
		b.ended = append(b.ended, ended{at, request})
	}
}

// forget drops the requests that had ended before an instant.
func (b *book) forget(at clock.Time) {
	n := 0
	for ; n < len(b.ended) && b.ended[n].at < at; n++ {
		t := b.live[b.ended[n].request]
		for _, key := range t.keys {
			if e := b.blocks[key]; e.users > 1 {
				e.users--
				b.blocks[key] = e
			} else {
				delete(b.blocks, key)
			}
		}
		delete(b.live, t.request)
	}
	b.ended = append(b.ended[:0], b.ended[n:]...)
}
