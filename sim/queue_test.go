package sim

import (
	"testing"

	"clifftop/workload"
)

// A queue longer than many chunks keeps its order, and lets go of what it has given out.
func TestQueueChunks(t *testing.T) {
	var q queue
	pushed, popped := int64(0), int64(0)
	for round := range 5 {
		for range 3*fifoChunk + round {
			q.push(&workload.Request{ID: pushed})
			pushed++
		}
		for range 2*fifoChunk + 7*round {
			if got := q.head().req.ID; got != popped {
				t.Fatalf("head is request %d, want %d", got, popped)
			}
			q.pop()
			popped++
		}
		if q.len() != int(pushed-popped) {
			t.Fatalf("%d waiting, want %d", q.len(), pushed-popped)
		}
	}
	for ; popped < pushed; popped++ {
		if got := q.head().req.ID; got != popped {
			t.Fatalf("head is request %d, want %d", got, popped)
		}
		q.pop()
	}
	if q.head() != nil || len(q.fresh.chunks) != 1 {
		t.Fatalf("an empty queue has a head or %d chunks", len(q.fresh.chunks))
	}
}

// Requests that left are passed over wherever they stand.
func TestQueueRemove(t *testing.T) {
	for _, byUrgency := range []bool{false, true} {
		q := queue{byUrgency: byUrgency}
		for id := range int64(6) {
			q.push(&workload.Request{ID: id, Priority: int16(id % 2)})
		}
		q.pushBack(&workload.Request{ID: 9, Priority: -1}, 3)
		for _, id := range []int64{9, 0, 3} {
			q.remove(id)
		}
		want := []int64{1, 2, 4, 5}
		if byUrgency {
			want = []int64{2, 4, 1, 5}
		}
		for _, id := range want {
			if got := q.head().req.ID; got != id {
				t.Fatalf("by urgency %v: head is %d, want %d", byUrgency, got, id)
			}
			q.pop()
		}
		if q.len() != 0 || q.head() != nil {
			t.Fatalf("%d waiting at the end", q.len())
		}
	}
}
