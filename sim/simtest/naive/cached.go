package naive

import (
	"slices"

	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// reportCache reports how the content of the prefix cache has changed since the last call, if an observer wants it. It
// also reports blocks that only their own request can find.
func (m *memory) reportCache(obs *event.Fanout, at clock.Time) {
	if !obs.WantsCaches() || !m.cfg.PrefixCaching {
		return
	}
	now := make(map[uint64]bool)
	c := event.CacheChange{At: at, BlockSize: m.cfg.BlockSize}
	switch store := m.kv.(type) {
	case *paged:
		for key := range store.pool.cache {
			now[key] = true
		}
	case *hybrid:
		full := slices.IndexFunc(store.Groups, func(g model.CacheGroup) bool { return g.KeepsAll() })
		if full < 0 {
			return
		}
		c.BlockSize = int32(store.Groups[full].BlockSize)
		for key := range store.pool.cache {
			now[keyInGroup(key, full)] = true // other keys become keys that no block has
		}
	case *radix:
		store.tree.root.keys(nil, m.cfg.BlockSize, now)
	}
	for key := range now {
		if !m.cached[key] {
			c.Blocks = append(c.Blocks, event.CacheBlock{Key: key, Stored: true})
		}
	}
	for key := range m.cached {
		if !now[key] {
			c.Blocks = append(c.Blocks, event.CacheBlock{Key: key})
		}
	}
	if m.cached = now; len(c.Blocks) > 0 {
		obs.CacheChanged(&c)
	}
}

// keys adds the keys of all pages of a tree below n, whose path has the tokens before.
func (n *TokenNode) keys(before []Token, page int32, to map[uint64]bool) {
	path := slices.Concat(before, n.tokens)
	walk := workload.NewBlockKeys(&workload.Request{Content: contentOf(path), InputTokens: int32(len(path))}, page)
	for k := range len(path) / int(page) {
		if key, _ := walk.Next(); k >= len(before)/int(page) {
			to[key] = true
		}
	}
	for _, c := range n.children {
		c.keys(path, page, to)
	}
}

// contentOf returns the segments of a path from the root.
func contentOf(path []Token) *workload.Content {
	c := new(workload.Content)
	for _, t := range path {
		if t.Offset == 0 {
			c.Segments = append(c.Segments, workload.Segment{ID: t.Segment})
		}
		c.Segments[len(c.Segments)-1].Tokens++
	}
	return c
}
