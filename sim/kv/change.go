package kv

import "clifftop/workload"

// Change is a block that the prefix cache can find from now on, or no longer. A block is known by the key of its
// content: copies of it change nothing.
type Change struct {
	Key    uint64
	Parent uint64 // the key of the block before, if Stored and Place > 0
	Place  int32  // number of the block in its text, from 0, if Stored
	Stored bool
}

// Tell registers a function that is called, from now on, for each page that the tree holds, or no longer holds. The
// keys are those of the blocks of a request with the text of the path as content and without adapter.
func (t *radix) Tell(events func(Change)) { t.tell = events }

func (t *radix) tellNode(i int32, stored bool) {
	m := &t.memory
	m.spans = m.spans[:0]
	blocks := int32(0)
	for k := i; k != root; k = t.nodes[k].parent {
		m.spans = appendReversed(m.spans, t.nodes[k].spans)
		blocks += t.nodes[k].blocks
	}
	text := workload.Content{Segments: make([]workload.Segment, 0, len(m.spans))}
	for k := len(m.spans) - 1; k >= 0; k-- {
		text.Segments = append(text.Segments, workload.Segment{ID: m.spans[k].id, Tokens: m.spans[k].tokens})
	}
	keys := workload.NewBlockKeys(&workload.Request{Content: &text, InputTokens: blocks * t.page}, t.page)
	c := Change{Stored: stored}
	for c.Place = range blocks {
		c.Parent = c.Key
		if c.Key, _ = keys.Next(); c.Place >= blocks-t.nodes[i].blocks {
			t.tell(c)
		}
	}
}
