package kv

// duplicateBlocks are blocks with the content of another block, for example of sequences that computed the same tokens
// at the same time. A key finds the block that was registered first of those that are left.
//
// Their names are negative. Those of a key are a chain in order of registration, after the block that the key itself
// free names
type duplicateBlocks struct {
	all    []duplicate // by -name; 0 is none
	vacant []int32     // names
	chains map[int32]chain
}

// duplicate is a duplicate block.
type duplicate struct {
	state        int32 // as the pool has for every block
	of           int32 // the name of its key
	older, newer int32 // names of neighbours in the chain, or 0
}

// chain has the ends of a chain.
type chain struct{ oldest, newest int32 }

// add adds a block after all others of a key, with one reference.
func (c *duplicateBlocks) add(of int32) (name int32) {
	if n := len(c.vacant); n > 0 {
		name, c.vacant = c.vacant[n-1], c.vacant[:n-1]
	} else {
		if len(c.all) == 0 {
			c.all, c.chains = make([]duplicate, 1), make(map[int32]chain)
		}
		c.all = append(c.all, duplicate{})
		name = -int32(len(c.all) - 1)
	}
	ends, some := c.chains[of]
	c.all[-name] = duplicate{state: 1, of: of, older: ends.newest}
	if ends.newest = name; !some {
		ends.oldest = name
	} else {
		c.all[-c.all[-name].older].newer = name
	}
	c.chains[of] = ends
	return name
}

// remove removes a block, and reports whether others of its key are left in the chain.
func (c *duplicateBlocks) remove(name int32) (others bool) {
	c.vacant = append(c.vacant, name)
	d := &c.all[-name]
	ends := c.chains[d.of]
	if d.older != 0 {
		c.all[-d.older].newer = d.newer
	} else {
		ends.oldest = d.newer
	}
	if d.newer != 0 {
		c.all[-d.newer].older = d.older
	} else {
		ends.newest = d.older
	}
	if ends.oldest == 0 {
		delete(c.chains, d.of)
		return false
	}
	c.chains[d.of] = ends
	return true
}
