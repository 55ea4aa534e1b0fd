package kv

import (
	"clifftop/model"
	"clifftop/workload"
)

// Register makes the full blocks among the first tokens of t findable, if the cache keeps them. Blocks behind the last
// multiple of align are of no use, except the one that a hit goes without.
func (g *grouped) Register(t *groupTables, tokens int32) {
	if !g.Caching {
		return
	}
	aligned := tokens - tokens%g.align
	for i := range g.Groups {
		spec := &g.Groups[i]
		useful := aligned
		if g.DropsBlock && aligned > 0 {
			useful = min(tokens, aligned+int32(spec.BlockSize))
		}
		for full := useful / int32(spec.BlockSize); t.entered[i] < full; t.entered[i]++ {
			at := t.entered[i]
			if t.tables[i][at] == 0 || !g.retains(t, spec, int(at)) {
				continue
			}
			key := g.key(t, i, at)
			name, fresh := g.pool.register(key)
			t.tables[i][at] = name
			if fresh && i == g.full && g.told != nil {
				g.tellStored(t, key, at)
			}
			if spec.Kind == model.RecurrentState {
				g.fresh = append(g.fresh, key)
			}
		}
	}
}

// Tell registers a function that is called, from now on, for each block of the first group of full attention that can
// be found, or cannot be found any more.
func (g *grouped) Tell(events func(Change)) {
	g.told, g.tell = make(map[uint64]struct{}), events
	g.pool.Tell(func(c Change) {
		if _, ok := g.told[c.Key]; ok { // else it is a block of another group
			delete(g.told, c.Key)
			events(c)
		}
	})
}

// tellStored reports that block at of t can be found.
func (g *grouped) tellStored(t *groupTables, key uint64, at int32) {
	c := Change{Key: key, Place: at, Stored: true}
	if at > 0 {
		c.Parent = g.key(t, g.full, at-1)
	}
	g.told[key] = struct{}{}
	g.tell(c)
}

// retains reports whether the cache keeps block i of t in a group.
func (g *grouped) retains(t *groupTables, spec *model.CacheGroup, i int) bool {
	if !spec.Sparse() || g.Retention < 0 && spec.Kind == model.RecurrentState {
		return true
	}
	need, behind, segment := spec.HitBlocks(), 0, g.Retention
	if g.DropsBlock {
		need, behind = need+1, 1 // the block that a hit goes without is behind its end
	}
	if segment < 0 {
		segment = int(g.align)
	}
	if per := segment / spec.BlockSize; per > 0 && (need >= per || i >= behind && (i-behind)%per >= per-need) {
		return true
	}
	align := int(g.align)
	ends := func(tokens int32) bool {
		end := int(tokens)/align*align/spec.BlockSize + behind
		return end-need <= i && i < end
	}
	return g.Retention >= 0 && (ends(t.prompt-1) || t.Junction > 0 && ends(t.Junction))
}

// Hashed returns the size of the blocks whose keys are those of their content, in tokens; 0 is none.
func (g *grouped) Hashed() int32 {
	if g.full < 0 || !g.Caching {
		return 0
	}
	return int32(g.Groups[g.full].BlockSize)
}

// Warm adds the first tokens of an earlier request to the prefix cache, as far as a sequence of that length could.
func (g *grouped) Warm(q *workload.Request, tokens int32) {
	var t groupTables
	g.Start(&t, q)
	g.Find(&t, tokens)
	g.Take(&t)
	if g.Grow(&t, tokens, 0) {
		g.Register(&t, tokens)
	}
	g.Free(&t)
}
