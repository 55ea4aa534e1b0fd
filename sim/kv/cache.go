package kv

import "clifftop/workload"

// Cache is the KV cache of an engine: its blocks, and the texts that it finds again. There are five kinds. In a counted
// cache blocks have no identity; ranges are counted blocks that lie side by side. A hashed cache finds blocks by hashes
// of their tokens, a tree by the tokens themselves, and a grouped cache has a block table for each KV cache group.
//
// A sequence is known by a number. Where blocks are only counted, the engine knows how many a sequence holds, and says
// so.
type Cache interface {
	// Kind has what an engine must know about the cache.
	Kind() Kind
	blocks
	steps
	sequences
	keeper
	texts
	teller
	groups
}

// blocks is the blocks of a cache.
type blocks interface {
	// Free is the number of blocks without references, FreeBeside what it must be if sequences hold a number of blocks.
	Free() int
	FreeBeside(held int) int
	// Shared is the number of references to blocks beyond the first of each.
	Shared() int64
	// Largest is how many of the free blocks a new sequence can take at most, and Spare how many those can that decode.
	Largest(free int) int
	Spare(free int) int
}

// steps is the blocks that decoding sequences take together, where they do.
type steps interface {
	// Fits reports whether decoding sequences can take blocks in a step.
	Fits(need, free int) bool
	// Owe takes blocks for decoding sequences, or returns how many of them the sequences take later, one by one.
	Owe(n int) (later int)
}

// sequences is the blocks of running sequences.
type sequences interface {
	// Begin begins a sequence for a request.
	Begin(seq int32, req *workload.Request)
	// Take makes a sequence that is admitted hold what the cache has of it.
	Take(t Text) Taken
	// Held is the number of blocks that a sequence holds; ok is false if they are only counted.
	Held(seq int32) (n int, ok bool)
	// Grow gives a sequence more blocks, and reports whether there were enough.
	Grow(seq int32, g Growth) bool
	// Release frees the blocks of a sequence. counted is their number, if they are only counted.
	Release(seq int32, counted int)
}

// keeper is the blocks that are held after their sequence has left.
type keeper interface {
	// Keep takes the blocks from a sequence without freeing them, and Drop frees them.
	Keep(seq int32, counted int) Kept
	Drop(k Kept)
}

// texts is the texts that a cache finds again.
type texts interface {
	// Findable reports whether Find may find something.
	Findable(t Text) bool
	// Find returns what the cache has of a waiting request. At least one known token remains to be computed.
	Find(t Text) Hit
	// Register makes full blocks among the first tokens of a sequence findable. These tokens are computed and known.
	Register(seq, tokens int32)
	// Retain makes tokens of a sequence findable that no other request can share: it comes back after a preemption, or
	// its client sends it again.
	Retain(seq int32)
	// Warm adds the first blocks of a request of an earlier run.
	Warm(req *workload.Request, blocks int32)
}

// teller tells which blocks can be found.
type teller interface {
	// Hashed is the size in tokens of blocks that are found by hashes of their tokens; 0 means that there are none.
	Hashed() int32
	// Tell registers a function that is called, from now on, for each block that can be found or can no longer be
	// found, and returns the size of these blocks in tokens; 0 means that there are none.
	Tell(tell func(Change)) int32
}

// groups has the methods that only a cache with KV cache groups has.
type groups interface {
	// Compose is called before an iteration is composed.
	Compose()
	// Needs is the number of free blocks that the admission of a request takes, which was found, to hold tokens. If
	// capped is true, groups count at most what a sequence holds at a time.
	Needs(t Text, tokens int32, capped bool) int
	// Junction is the end of a longer hit of some groups at the last lookup; 0 is none.
	Junction(t Text) int32
}

// Kind has what an engine must know about the kind of its cache.
type Kind struct {
	// Registers means that full blocks of running sequences are registered as their tokens become known.
	Registers bool
	// Singly means that decoding sequences get their blocks one by one, because each may give blocks back first. Only
	// then have Compose, Needs and Junction a meaning.
	Singly bool
	// Tree is the cache, if it keeps texts in a tree. Otherwise it does nothing.
	Tree Tree
}

// Tree is a cache that keeps texts in a tree. Computed tokens enter it when their iteration has been processed, and
// when a sequence is complete. It evicts for an iteration as a whole.
type Tree interface {
	treeBlocks
	treeTexts
	treeEntries
}

// treeBlocks is the blocks of a tree.
type treeBlocks interface {
	// Covers reports whether Owe can take blocks for several steps of a number of sequences at once. Otherwise OweStep
	// takes the blocks of a single step.
	Covers(n, sequences int) bool
	OweStep(n, sequences int)
	// Composed is called when an iteration has been composed.
	Composed(b Batch)
	// MakeRoom evicts as the policy asks for room for tokens.
	MakeRoom(tokens int, b Batch)
}

// treeTexts is the texts in a tree.
type treeTexts interface {
	// Peek is the number of tokens of a request in the tree. It changes nothing.
	Peek(req *workload.Request) int32
	// Path appends to to the nodes that have the known tokens of a waiting request, from the root on.
	Path(t Text, to []int32) []int32
}

// treeEntries is how texts enter a tree.
type treeEntries interface {
	// Gave notes that an iteration gives a sequence the tokens of its prompt up to a number. They are the last ones if
	// ends is true.
	Gave(c *Chunks, seq, upTo int32, ends bool)
	// EnterUnfinished enters the chunks of unfinished prompts whose iteration is in flight.
	EnterUnfinished(c *Chunks)
	// Enter enters the chunks of an iteration that has been processed, up to the chunks of a sequence, which is
	// complete. If the sequence is negative, it enters the rest.
	Enter(c *Chunks, seq int32)
	// Complete enters the first tokens of a sequence, whose output is complete.
	Complete(seq, tokens int32)
}

// noSeq is the number of a request that was never admitted.
const noSeq = -1

// Text is a request that waits or is being admitted, and the number of its known tokens: its prompt and the output so
// far.
type Text struct {
	Seq     int32
	Request *workload.Request
	Known   int32
}

// Hit is the part of a text that a cache has.
type Hit struct {
	Tokens int32
	Held   int  // blocks of them that sequences hold
	More   bool // it may have more when other requests have computed their tokens
	Tables bool // an admission takes as many blocks as [Tables] says
}

// Taken is the part of the cache that a sequence holds when it is admitted.
type Taken struct {
	Tokens int32
	// Tokens in this range would have been found too but for evictions.
	LostFrom, LostTo int32
}

// Growth is the blocks that a sequence needs.
type Growth struct {
	Blocks int  // in all
	Held   int  // that it holds
	Free   int  // that it may take
	Moves  bool // it has computed nothing in its blocks, so that it can take others

	// With block tables: the sequence is given tokens behind its computed ones, and needs slots in all.
	Slots, Given, Computed int32
	Iteration, Oldest      int64 // numbers of the iteration, and of the oldest one in flight or 0
}

// Kept is blocks that are held after their sequence has left.
type Kept struct {
	Count      int
	blocks     []int32
	registered int32
}

// Need is the allocation of an iteration.
type Need struct {
	Prompts      int // sequences in prefill
	Tokens       int // prompt tokens
	PromptBlocks int // blocks for them
	Decodes      int // sequences that decode
	DecodeBlocks int // blocks that they begin
}

// Batch is an iteration that is being composed. Need counts what it allocates so far.
type Batch interface{ Need() Need }

// Chunks is the prefill chunks of an iteration that enter the tree when the iteration has been processed.
type Chunks struct {
	N       int // their number
	list    []chunkOf
	entered int
	sorted  bool
}

// Clear removes all chunks.
func (c *Chunks) Clear() { c.N, c.list, c.entered, c.sorted = 0, c.list[:0], 0, false }

// noTree is the tree of a cache without one.
type noTree struct{}

func (noTree) Covers(int, int) bool             { return true }
func (noTree) OweStep(int, int)                 {}
func (noTree) Peek(*workload.Request) int32     { return 0 }
func (noTree) Path(_ Text, to []int32) []int32  { return to }
func (noTree) Gave(*Chunks, int32, int32, bool) {}
func (noTree) EnterUnfinished(*Chunks)          {}
func (noTree) Enter(*Chunks, int32)             {}
func (noTree) Complete(int32, int32)            {}
func (noTree) Composed(Batch)                   {}
func (noTree) MakeRoom(int, Batch)              {}

// tableless has the methods of a cache without KV cache groups.
type tableless struct{}

func (tableless) Compose()                    {}
func (tableless) Needs(Text, int32, bool) int { return 0 }
func (tableless) Junction(Text) int32         { return 0 }

// paged has the methods of a cache whose free blocks are all alike.
type paged struct{}

func (paged) Largest(free int) int     { return free }
func (paged) Spare(free int) int       { return free }
func (paged) Fits(need, free int) bool { return need <= free }
