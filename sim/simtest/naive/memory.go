package naive

import "clifftop/sim/engine"

// memory is the KV memory of an engine: the pool on the GPU, and the host memory for sequences that are swapped out.
type memory struct {
	cfg      *engine.Config
	kv       store
	windowed int             // blocks charged for windowed layers
	hosted   int             // blocks in host memory
	cached   map[uint64]bool // keys in the prefix cache when it was last reported
}

func (m *memory) blocksFor(tokens int32) int {
	return (int(tokens) + int(m.cfg.BlockSize) - 1) / int(m.cfg.BlockSize)
}

// BlocksFor is the number of blocks that hold this many tokens, with the charge for windowed layers.
func (m *memory) BlocksFor(tokens int32) int {
	if m.cfg.Hybrid != nil {
		return m.cfg.PagesFor(tokens)
	}
	blocks := m.blocksFor(tokens)
	return blocks + m.cfg.Charge(blocks)
}

// FreeBlocks is the number of blocks without references, less the charge for windowed layers.
func (m *memory) FreeBlocks() int { return m.kv.free() - m.windowed }

func (m *memory) Blocks() int { return m.cfg.NumGPUBlocks }

// LargestFree is the number of blocks that one sequence can take at once.
func (m *memory) LargestFree() int { return min(m.kv.largest(), m.FreeBlocks()) }

// Slots is the number of tokens that a request needs blocks for when it is admitted with tokens up to a number.
func (m *memory) Slots(tokens int32) int32 { return admissionSlots(m.cfg, tokens) }

// need is the number of blocks that s lacks for more tokens, without and with the charge for windowed layers.
func (m *memory) need(s *sequence, tokens int32) (blocks, pages int) {
	if h, ok := m.kv.(*hybrid); ok {
		pages = h.lacks(s, slots(m.cfg, s.computed+s.given+tokens))
		return pages, pages
	}
	return m.lacks(s, m.blocksFor(slots(m.cfg, s.computed+s.given+tokens)))
}

// lacks is the number of blocks that s lacks to hold blocks in all, without and with the charge for windowed layers.
func (m *memory) lacks(s *sequence, blocks int) (more, pages int) {
	holds := m.kv.holds(s)
	blocks = max(blocks, holds)
	return blocks - holds, blocks - holds + m.cfg.Charge(blocks) - s.windowed
}

// grow gives s the blocks for more tokens, if there are enough.
func (m *memory) grow(s *sequence, tokens int32) bool {
	if h, ok := m.kv.(*hybrid); ok {
		return h.grow(s, slots(m.cfg, s.computed+s.given+tokens), s.computed-s.inFlight)
	}
	return m.hold(s, m.blocksFor(slots(m.cfg, s.computed+s.given+tokens)))
}

// growAdmitted is grow for a request that is being admitted.
func (m *memory) growAdmitted(s *sequence, tokens int32) bool {
	if h, ok := m.kv.(*hybrid); ok {
		return h.grow(s, admissionSlots(m.cfg, s.computed+tokens), s.computed)
	}
	return m.hold(s, m.blocksFor(admissionSlots(m.cfg, s.computed+tokens)))
}

// hold gives s blocks up to a number in all, if there are enough.
func (m *memory) hold(s *sequence, blocks int) bool {
	more, pages := m.lacks(s, blocks)
	if pages > m.FreeBlocks() || !m.kv.grows(s, more) {
		return false
	}
	m.kv.take(s, more)
	m.windowed += pages - more
	s.windowed += pages - more
	return true
}

func (m *memory) releaseBlocks(s *sequence, ended bool) {
	m.kv.release(s, ended)
	m.windowed -= s.windowed
	s.windowed = 0
}
