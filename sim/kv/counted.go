package kv

import "clifftop/workload"

// Counted is a cache of blocks without identity, which finds no text.
type Counted struct {
	tableless
	paged
	usable, free int
}

// NewCounted returns a cache of usable blocks that are only counted.
func NewCounted(usable int) *Counted { return &Counted{usable: usable, free: usable} }

// Kind implements [Cache].
func (c *Counted) Kind() Kind { return Kind{Tree: noTree{}} }

// Begin implements [Cache].
func (c *Counted) Begin(int32, *workload.Request) {}

// Free implements [Cache].
func (c *Counted) Free() int { return c.free }

// FreeBeside implements [Cache].
func (c *Counted) FreeBeside(held int) int { return c.usable - held }

// Shared implements [Cache].
func (c *Counted) Shared() int64 { return 0 }

// Claim takes n free blocks.
func (c *Counted) Claim(n int) { c.free -= n }

// Return frees n blocks.
func (c *Counted) Return(n int) { c.free += n }

// Owe implements [Cache].
func (c *Counted) Owe(n int) (later int) {
	c.free -= n
	return 0
}

// Held implements [Cache].
func (c *Counted) Held(int32) (n int, ok bool) { return 0, false }

// Grow implements [Cache].
func (c *Counted) Grow(_ int32, g Growth) bool {
	if g.Blocks-g.Held > g.Free {
		return false
	}
	c.free -= g.Blocks - g.Held
	return true
}

// Release implements [Cache].
func (c *Counted) Release(_ int32, counted int) { c.free += counted }

// Keep implements [Cache].
func (c *Counted) Keep(_ int32, counted int) Kept { return Kept{Count: counted} }

// Drop implements [Cache].
func (c *Counted) Drop(k Kept) { c.free += k.Count }

// Used is the number of blocks that are not free.
func (c *Counted) Used() int { return c.usable - c.free }

// Hashed implements [Cache].
func (c *Counted) Hashed() int32 { return 0 }

// Take implements [Cache].
func (c *Counted) Take(Text) (t Taken) { return t }

// Findable implements [Cache].
func (c *Counted) Findable(Text) bool { return false }

// Find implements [Cache].
func (c *Counted) Find(Text) (h Hit) { return h }

// Register implements [Cache].
func (c *Counted) Register(int32, int32) {}

// Retain implements [Cache].
func (c *Counted) Retain(int32) {}

// Warm implements [Cache].
func (c *Counted) Warm(*workload.Request, int32) {}

// Tell implements [Cache].
func (c *Counted) Tell(func(Change)) (blockSize int32) { return 0 }
