package kv

// Counter counts numbers. Neighbouring numbers, which are often counted together, are stored together. The zero Counter
// is empty.
type Counter struct {
	index index
	n     int
}

// Len is how many numbers have a count above 0.
func (t *Counter) Len() int { return t.n }

// Add increments the count of a number.
func (t *Counter) Add(number uint64) {
	if t.index.groups == nil {
		t.index.init()
	}
	count := t.index.find(number)
	if count == 0 {
		t.n++
	}
	t.index.put(number, count+1)
}

// Take decrements the count of a number, and reports whether it was above 0.
func (t *Counter) Take(number uint64) bool {
	if t.n == 0 {
		return false
	}
	switch count := t.index.find(number); count {
	case 0:
		return false
	case 1:
		t.index.remove(number)
		t.n--
	default:
		t.index.put(number, count-1)
	}
	return true
}
