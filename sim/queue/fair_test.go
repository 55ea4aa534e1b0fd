package queue

import (
	"slices"
	"testing"

	"clifftop/sim/sched"
	"clifftop/workload"
)

// TestFairQueueSameHead compares sameHead with a search that determines the head in every step.
func TestFairQueueSameHead(t *testing.T) {
	for _, c := range []struct {
		charged  []int64 // of the clients, each of which has one request
		decoding []int64
		want     int // steps with the first head
	}{
		{[]int64{0, 10}, []int64{1, 0}, 6},        // 2 a step; equal after 5, and then the first goes because of its ID
		{[]int64{0, 9}, []int64{1, 0}, 5},         // more than 9 after 5
		{[]int64{10, 0}, []int64{0, 1}, 5},        // the second leads; equal after 5, and then the first goes
		{[]int64{0, 10}, []int64{1, 1}, 100},      // never
		{[]int64{0, 10}, []int64{0, 3}, 100},      // the difference grows
		{[]int64{0, 12, 10}, []int64{3, 0, 1}, 3}, // 6 and 2 a step: 12 against 14, 12 after 2; 18 against 16, 12
		{[]int64{0}, []int64{5}, 100},
	} {
		a := newFair(sched.VTC{})
		for i, charged := range c.charged {
			a.join(Waiting{Request: workload.Request{ID: int64(i), User: int32(i)}, Seq: None})
			a.list[i].charged, a.list[i].decoding = charged, c.decoding[i]
		}
		a.Begin(0, nobody)
		for i, charged := range c.charged {
			a.list[i].charged = charged
		}
		a.next = None
		first := a.head().Request.ID
		hasToken := a.SameHead(100)
		step := 1
		for ; step < 100; step++ {
			if a.Begin(int64(step), nil); a.head().Request.ID != first {
				break
			}
		}
		if hasToken != c.want || step != c.want {
			t.Errorf("%+v: the head stays for %d steps, by asking %d", c, hasToken, step)
		}
	}
}

// TestFairQueueDepartures removes requests at any place of the queue, and clients with them.
func TestFairQueueDepartures(t *testing.T) {
	q := New(sched.VTC{})
	request := func(id int64, user int32) *workload.Request { return &workload.Request{ID: id, User: user} }
	for id := range int64(6) {
		q.Push(request(id, int32(id%3)), 0)
	}
	q.fair.Begin(0, nobody)
	for _, id := range []int64{0, 4, 2, 5} { // the first of user 0, the second of 1, and all of 2
		q.Remove(request(id, int32(id%3)))
	}
	var order []int64
	for q.Len() > 0 {
		w := q.At(0)
		order = append(order, w.Request.ID)
		q.Take(0)
	}
	if want := []int64{1, 3}; !slices.Equal(order, want) || q.At(0) != nil {
		t.Errorf("order %v, want %v", order, want)
	}
	if len(q.fair.removed) != 0 || len(q.fair.waiting) != 0 {
		t.Errorf("left behind: %d removed, clients %v", len(q.fair.removed), q.fair.waiting)
	}
	if !q.Push(request(6, 2), 0) {
		t.Error("a client who comes to wait again does not end the span")
	}
}

// nobody yields no running client.
func nobody(func(int32) bool) {}
