package route

import (
	"slices"
	"testing"

	"clifftop/workload"
)

// TestVLLMDP is the worked scenario of a data-parallel front end: scores 9, 8, 8, then with its own increments.
func TestVLLMDP(t *testing.T) {
	v := fleet(3)
	for k, m := range []Metrics{{Running: 9}, {Waiting: 2}, {Waiting: 1, Running: 4}} {
		v.ends[k].Metrics = m
	}
	p := new(VLLMDP)
	for i, want := range []int{1, 2, 0} {
		if k := v.send(p, new(workload.Request)); k != want {
			t.Errorf("request %d goes to %d, want %d", i, k, want)
		}
	}
}

// TestVLLMDPFrontEnds: of equal ranks each front end begins at its own, and counts what it sends as often as there are
// front ends.
func TestVLLMDPFrontEnds(t *testing.T) {
	for number, want := range [][]int{{0, 1, 2, 3}, {2, 3, 0, 1}} {
		v, p := fleet(4), &VLLMDP{ID: Identity{Number: number, Of: 2}}
		var got []int
		for range 4 {
			got = append(got, v.send(p, new(workload.Request)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("front end %d sends to %v, want %v", number, got, want)
		}
	}
	v := fleet(2)
	v.ends[1].Waiting = 1
	v.ends[0].Running = 0
	v.ends[0].SinceScrape = 1
	if k := (&VLLMDP{ID: Identity{Of: 2}}).Route(v, new(workload.Request)); k != 1 {
		t.Errorf("one request of its own counts 8, the other's 4: it goes to %d, want 1", k)
	}
}

// TestBoundedLoad is the worked scenario of a bounded load: 12 in flight on 4 servers make a bound of 5.
func TestBoundedLoad(t *testing.T) {
	r := &workload.Request{Session: 7}
	v, p := fleet(4), NewBoundedHash()
	home := p.Route(v, r)
	for k := range v.ends {
		v.ends[k].Outstanding = 7 / 3
	}
	v.ends[home].Outstanding = 5
	v.ends[(home+1)%4].Outstanding = 3 // 12 in all
	second := p.Route(v, r)
	if second == home {
		t.Fatalf("it stays at %d, which has 5 of at most 5", home)
	}
	v.ends[home].Outstanding, v.ends[second].Outstanding = 4, 3
	if k := p.Route(v, r); k != home {
		t.Errorf("it goes to %d, want home %d, which has 4 of at most 5", k, home)
	}
	// The next on the ring is where a session goes whose home is away.
	away := fleet(4)
	away.ends = slices.Delete(away.ends, home, home+1)
	if k := NewBoundedHash().Route(away, r); away.ends[k].replica != second {
		t.Errorf("without its home it goes to replica %d, want %d", away.ends[k].replica, second)
	}
}

// TestStaleQueues is the worked scenario of a herd: 30 arrivals between two scrapes.
func TestStaleQueues(t *testing.T) {
	for _, c := range []struct {
		p    *LeastQueue
		want []int // sent to each
	}{
		{&LeastQueue{}, []int{0, 0, 30}},
		{&LeastQueue{Local: true}, []int{10, 10, 10}},
	} {
		v := fleet(3)
		sent := make([]int, 3)
		for k, waiting := range []int{2, 2, 1} {
			v.ends[k].Waiting = waiting
		}
		for range 30 {
			sent[v.send(c.p, new(workload.Request))]++
		}
		if !slices.Equal(sent, c.want) {
			t.Errorf("%+v: sent %v, want %v", c.p, sent, c.want)
		}
	}
}
