package sim

import "clifftop/sim/clock"

// A tournament finds the earliest of the replicas' instants; of equal ones the first replica's.
type tournament struct {
	at   []clock.Time
	wins []int32 // wins[1] is the winner; node k has the children 2k and 2k+1, and leaves follow the nodes
	size int     // leaves, a power of two
}

func newTournament(n int) tournament {
	size := 1
	for size < n {
		size *= 2
	}
	t := tournament{at: make([]clock.Time, size), wins: make([]int32, 2*size), size: size}
	for i := range t.at {
		t.at[i] = clock.Never
		t.wins[size+i] = int32(i)
	}
	for k := size - 1; k > 0; k-- {
		t.play(k)
	}
	return t
}

// play updates node k.
func (t *tournament) play(k int) {
	a, b := t.wins[2*k], t.wins[2*k+1]
	if t.at[b] < t.at[a] {
		a = b
	}
	t.wins[k] = a
}

// set sets the instant of replica i.
func (t *tournament) set(i int, at clock.Time) {
	if t.at[i] == at {
		return
	}
	t.at[i] = at
	for k := (t.size + i) / 2; k > 0; k /= 2 {
		t.play(k)
	}
}

// min returns the earliest instant and its replica.
func (t *tournament) min() (clock.Time, int) {
	i := t.wins[1]
	return t.at[i], int(i)
}
