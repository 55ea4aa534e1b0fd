package kv

// arc is the adaptive replacement cache (Megiddo and Modha, FAST 2003). It balances recency and frequency.
//
// The recent list holds chunks that were used once, the frequent list those that were used again. Each has a list of
// ghost entries: keys of chunks that were evicted from it. When a chunk returns whose key is a ghost entry, the balance
// shifts towards the list that lost it.
type arc struct {
	*Tier
	target int // length of the recent list
}

func (t *arc) use(node int32) { t.move(node, frequent) }

func (t *arc) put(key uint64) (gone uint64, evicted bool) {
	if i, ok := t.place[key]; ok { // a ghost entry
		ofRecent, ofFrequent := t.length[recentGhosts], t.length[frequentGhosts]
		fromFrequent := t.nodes[i].list == frequentGhosts
		if fromFrequent {
			t.target = max(0, t.target-max(1, ofRecent/ofFrequent))
		} else {
			t.target = min(t.capacity, t.target+max(1, ofFrequent/ofRecent))
		}
		gone, evicted = t.replace(fromFrequent)
		t.move(i, frequent)
		return gone, evicted
	}
	switch once := t.length[recent] + t.length[recentGhosts]; {
	case once == t.capacity && t.length[recentGhosts] == 0:
		gone, evicted = t.drop(recent), true
	case once == t.capacity:
		t.drop(recentGhosts)
		gone, evicted = t.replace(false)
	case len(t.place) >= t.capacity:
		if len(t.place) == 2*t.capacity {
			t.drop(frequentGhosts)
		}
		gone, evicted = t.replace(false)
	}
	t.add(key, recent)
	return gone, evicted
}

// replace evicts the next chunk and keeps its key as a ghost entry, if the tier is full.
func (t *arc) replace(fromFrequent bool) (gone uint64, evicted bool) {
	if t.Len() < t.capacity {
		return 0, false
	}
	n, from := t.length[recent], int32(frequent)
	if n > t.target || n > 0 && n == t.target && fromFrequent || t.length[frequent] == 0 {
		from = recent
	}
	i := t.nodes[from].next
	t.move(i, from+recentGhosts)
	return t.nodes[i].key, true
}
