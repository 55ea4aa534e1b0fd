package kv

// Tally counts by numbers, of which neighbours are often counted together. The zero Tally has counted nothing.
type Tally struct {
	index index
	n     int
}

// Len is how many numbers have a count above 0.
func (t *Tally) Len() int { return t.n }

// Add adds n to the count of a number, and returns what it comes to, which is not below 0.
func (t *Tally) Add(number uint64, n int32) int32 {
	if t.index.groups == nil {
		t.index.init()
	}
	before := t.index.find(number)
	switch count := before + n; {
	case count == 0 && before == 0:
		return 0
	case count == 0:
		t.index.remove(number)
		t.n--
		return 0
	default:
		if before == 0 {
			t.n++
		}
		t.index.put(number, count)
		return count
	}
}

// Of is the count of a number.
func (t *Tally) Of(number uint64) int32 {
	if t.index.groups == nil {
		return 0
	}
	return t.index.find(number)
}
