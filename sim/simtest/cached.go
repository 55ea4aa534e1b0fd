package simtest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/simtest/naive"
	"clifftop/workload"
)

// VerifyCaches runs a policy on random engines with a prefix cache and on random loads. It checks that an observer of
// the cache changes no result, and that it knows at every instant which blocks the naive engine's cache holds.
func VerifyCaches(t testing.TB, p Policy) {
	t.Helper()
	seen := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		c := p.Draw(t)
		if !c.config.PrefixCaching {
			t.Skip("no cache")
		}
		cfg, src := c.Config(), c.Source()
		reference, observed := NewCacheRecorder(&cfg), NewCacheRecorder(&cfg)
		if err := naive.Run(cfg, src, reference); err != nil {
			t.Fatalf("naive: %v\n%v", err, c)
		}
		c.compare(t, "caches", &reference.Recorder, src.Ended, observed, &observed.Recorder, 0)
		if d := observed.sameAs(reference); d != "" {
			t.Fatalf("%s\n%v", d, c)
		}
		kind := "hashes"
		if c.config.Radix {
			kind = "radix tree"
		} else if c.config.Hybrid != nil {
			kind = "groups"
		}
		seen[kind]++
		seen["stored"] += observed.stored
		seen["evicted"] += observed.evicted
	})
	t.Log(seen)
}

// CacheRecorder is a [Recorder] that also follows the content of a prefix cache.
type CacheRecorder struct {
	Recorder
	cfg             *engine.Config
	blocks          map[uint64]knownBlock // of the requests that have arrived
	held            map[uint64]bool
	changes         []cacheChange
	stored, evicted int
	misplaced       []string // blocks with another place or parent; the naive engine does not know these
}

// knownBlock is what the text of a request says of a block.
type knownBlock struct {
	parent  uint64
	place   int32
	private bool // perhaps only its own request can find it
}

// cacheChange is the new state of blocks of the cache after an instant.
type cacheChange struct {
	at   clock.Time
	held map[uint64]bool
}

var _ event.CacheObserver = (*CacheRecorder)(nil)

// NewCacheRecorder returns a recorder for an engine with a prefix cache.
func NewCacheRecorder(cfg *engine.Config) *CacheRecorder {
	return &CacheRecorder{cfg: cfg, blocks: make(map[uint64]knownBlock), held: make(map[uint64]bool)}
}

// Arrived implements [event.Observer].
func (r *CacheRecorder) Arrived(at clock.Time, q *workload.Request) {
	r.Recorder.Arrived(at, q)
	cfg, size, of := r.cfg, r.cfg.BlockSize, *q
	switch {
	case cfg.Radix: // the tree has all tokens
		of = workload.Request{Content: &workload.Content{Segments: q.Text(nil)}}
		of.InputTokens = int32(of.Content.Tokens())
	case cfg.Hybrid != nil:
		full := slices.IndexFunc(cfg.Hybrid.Groups, func(g model.CacheGroup) bool { return g.KeepsAll() })
		if full < 0 {
			return
		}
		size = int32(cfg.Hybrid.Groups[full].BlockSize)
	}
	walk, x := workload.NewBlockKeys(&of, size), knownBlock{}
	for x.place = range (q.InputTokens + q.OutputTokens) / size {
		key, private := walk.Next()
		x.private = private || r.blocks[key].private
		r.blocks[key] = x
		x.parent = key
	}
}

// CacheChanged implements [event.CacheObserver].
func (r *CacheRecorder) CacheChanged(c *event.CacheChange) {
	n := len(r.changes) - 1
	if n < 0 || r.changes[n].at != c.At {
		if n >= 0 && c.At < r.changes[n].at {
			r.fault("caches: a change at %v after one at %v", c.At, r.changes[n].at)
		}
		r.changes = append(r.changes, cacheChange{c.At, make(map[uint64]bool)})
		n++
	}
	if c.Reset {
		for key := range r.held {
			r.changes[n].held[key] = false
		}
		clear(r.held)
	}
	for _, b := range c.Blocks {
		if r.held[b.Key] == b.Stored {
			r.fault("caches: block %x stored or evicted twice: %+v at %v", b.Key, b, c.At)
		}
		if r.changes[n].held[b.Key] = b.Stored; b.Stored {
			r.held[b.Key] = true
			r.stored++
		} else {
			delete(r.held, b.Key)
			r.evicted++
		}
		if known := r.blocks[b.Key]; b.Stored && (known.parent != b.Parent || known.place != b.Place) {
			r.misplaced = append(r.misplaced, fmt.Sprintf("%+v at %v, want %+v", b, c.At, known))
		}
	}
}

// Held returns the keys of the blocks in the cache, sorted.
func (r *CacheRecorder) Held() []uint64 { return slices.Sorted(maps.Keys(r.held)) }

// sameAs reports a difference between the caches of the real engine and of the naive one, whose cache also has blocks
// that only their own request can find.
func (r *CacheRecorder) sameAs(reference *CacheRecorder) string {
	if faults := slices.Concat(r.faults, r.misplaced); len(faults) > 0 {
		return faults[0]
	}
	ours, theirs := make(map[uint64]bool), make(map[uint64]bool)
	a, b := r.changes, reference.changes
	for len(a)+len(b) > 0 {
		at := clock.Never
		for _, list := range [][]cacheChange{a, b} {
			if len(list) > 0 {
				at = min(at, list[0].at)
			}
		}
		a, b = follow(a, at, ours), follow(b, at, theirs)
		for key, known := range r.blocks {
			if x, y := ours[key], theirs[key]; x != y && !(known.private && y) {
				return fmt.Sprintf("at %v: block %x (%+v) in the cache: %v, naive %v", at, key, known, x, y)
			}
		}
	}
	return ""
}

// follow makes the changes of an instant, and returns the rest.
func follow(list []cacheChange, at clock.Time, held map[uint64]bool) []cacheChange {
	if len(list) == 0 || list[0].at != at {
		return list
	}
	maps.Copy(held, list[0].held)
	return list[1:]
}
