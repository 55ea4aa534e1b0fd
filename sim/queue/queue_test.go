package queue

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clifftop/workload"
)

// A queue of many chunks keeps its order, and frees the entries that it has returned.
func TestQueueChunks(t *testing.T) {
	var q Queue
	pushed, popped := int64(0), int64(0)
	for round := range 5 {
		for range 3*fifoChunk + round {
			q.Push(&workload.Request{ID: pushed}, 0)
			pushed++
		}
		for range 2*fifoChunk + 7*round {
			if hasToken := q.Head().Request.ID; hasToken != popped {
				t.Fatalf("head is request %d, want %d", hasToken, popped)
			}
			q.Take(0)
			popped++
		}
		if q.Len() != int(pushed-popped) {
			t.Fatalf("%d waiting, want %d", q.Len(), pushed-popped)
		}
	}
	for ; popped < pushed; popped++ {
		if hasToken := q.Head().Request.ID; hasToken != popped {
			t.Fatalf("head is request %d, want %d", hasToken, popped)
		}
		q.Take(0)
	}
	if q.Head() != nil || len(q.fresh.chunks) != 1 {
		t.Fatalf("an empty queue has a head or %d chunks", len(q.fresh.chunks))
	}
}

// Requests that have left are skipped at any place.
func TestQueueRemove(t *testing.T) {
	for _, byUrgency := range []bool{false, true} {
		q := Queue{byUrgency: byUrgency}
		for id := range int64(6) {
			q.Push(&workload.Request{ID: id}, id%2)
		}
		q.PushHead(Waiting{Request: workload.Request{ID: 9}, Seq: 3, Key: -1})
		for _, id := range []int64{9, 0, 3} {
			q.Remove(&workload.Request{ID: id})
		}
		want := []int64{1, 2, 4, 5}
		if byUrgency {
			want = []int64{2, 4, 1, 5}
		}
		for _, id := range want {
			if hasToken := q.Head().Request.ID; hasToken != id {
				t.Fatalf("by urgency %v: head is %d, want %d", byUrgency, hasToken, id)
			}
			q.Take(0)
		}
		if q.Len() != 0 || q.Head() != nil {
			t.Fatalf("%d waiting at the end", q.Len())
		}
	}
}

// A first-come-first-served queue behaves like a list after pushes, takes from its middle and removals.
func TestQueuePlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue
		var list []int64
		next := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			switch k := rapid.IntRange(0, 4).Draw(t, "operation"); {
			case k == 0:
				q.PushHead(Waiting{Request: workload.Request{ID: next}})
				list = slices.Insert(list, 0, next)
				next++
			case k <= 2:
				for range rapid.SampledFrom([]int{1, fifoChunk - 1}).Draw(t, "many") {
					q.PushTail(Waiting{Request: workload.Request{ID: next}, Seq: None})
					list = append(list, next)
					next++
				}
			case len(list) > 0:
				i := rapid.IntRange(0, min(len(list), 600)-1).Draw(t, "place")
				if k == 3 {
					q.Remove(&workload.Request{ID: list[i]})
				} else {
					q.At(i)
					q.Take(i)
				}
				list = slices.Delete(list, i, i+1)
			}
			i := rapid.IntRange(0, len(list)).Draw(t, "look")
			if w := q.At(i); (w == nil) != (i == len(list)) || w != nil && w.Request.ID != list[i] {
				t.Fatalf("place %d of %d: %+v", i, len(list), w)
			}
			if q.Len() != len(list) {
				t.Fatalf("%d waiting, want %d", q.Len(), len(list))
			}
		}
	})
}
