package event

import "clifftop/sim/clock"

// CacheChange is what one event of the simulation changed in the prefix cache of a replica.
type CacheChange struct {
	At      clock.Time
	Replica int
	// BlockSize is the length of a block in tokens.
	BlockSize int32
	// Reset means that the cache was emptied before: the replica has stopped, or starts anew.
	Reset bool
	// Blocks are the blocks that became findable, and those that no longer are, in order. The same block may do both.
	Blocks []CacheBlock
}

// CacheBlock is a block that a prefix cache can find from now on, or no longer. It is known by its content: copies of a
// block change nothing.
type CacheBlock struct {
	// Key is the hash of all tokens up to the end of the block, as [clifftop/workload.BlockKeys] returns it. Of the
	// pages of a radix cache it is the key of a request without adapter whose content is the whole text, with the
	// adapter in it ([clifftop/workload.Request.Text]).
	Key uint64
	// Parent is the key of the block before, if the block is stored and is not the first one.
	Parent uint64
	// Place numbers the block in its text, from 0, if it is stored.
	Place  int32
	Stored bool // otherwise it can no longer be found
}
