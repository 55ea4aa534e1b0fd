package network_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clifftop/sim/clock"
	"clifftop/sim/network"
	"clifftop/sim/simtest/naive"
)

const mb = 1_000_000

// begin is a transfer that begins in a millisecond.
type begin struct {
	at      int
	bytes   int64
	latency clock.Duration
	path    []int32
}

// ends runs transfers, and returns when they arrive.
func ends(bandwidths []int64, list []begin) []clock.Time {
	var n network.Network
	for _, b := range bandwidths {
		n.AddLink(b)
	}
	arrive := make([]clock.Time, len(list))
	number := make(map[int32]int)
	until := func(t clock.Time) {
		for n.Next() <= t && n.Next() != clock.Never {
			at := n.Next()
			if i, done := n.Advance(); done {
				arrive[number[i]] = at
			}
		}
	}
	for k, b := range list {
		at := clock.Time(b.at) * clock.Time(clock.Millisecond)
		until(at - 1)
		number[n.Start(at, b.bytes, b.latency, b.path...)] = k
	}
	until(clock.Never - 1)
	return arrive
}

func TestMaxMinFairness(t *testing.T) {
	gb := int64(1000 * mb)
	for _, c := range []struct {
		name       string
		bandwidths []int64
		transfers  []begin
		want       string // milliseconds
	}{
		{"one alone", []int64{25 * gb}, []begin{{0, 131_072_000, 0, []int32{0}}}, "5.24288"},
		{"the last byte is in flight", []int64{gb}, []begin{{2, 3 * mb, clock.Millisecond, []int32{0}}}, "6"},
		// 1 ms alone, then half of the link until the second has its 1 MB, then alone: 1+2+1 MB.
		{"a short one in between", []int64{gb}, []begin{{0, 3 * mb, 0, []int32{0}}, {1, mb, 0, []int32{0}}}, "4 3"},
		// The first two share link 0 half and half; the third has what the second leaves on link 1: 1.5 of 2.
		{"what is left of the other link", []int64{gb, 2 * gb},
			[]begin{{0, 5 * mb, 0, []int32{0}}, {0, 5 * mb, 0, []int32{0, 1}}, {0, 15 * mb, 0, []int32{1}}},
			"10 10 10"},
		// Link 1 lets the second have 0.1; so the first has 0.9.
		{"a bottleneck on another link", []int64{gb, gb / 10}, []begin{{0, 9 * mb, 0, []int32{0}}, {0, mb, 0, []int32{0, 1}}},
			"10 10"},
		// A third of link 0 each; once the second is through at 3, the others have half of it each.
		{"three", []int64{3 * gb}, []begin{{0, 9 * mb, 0, []int32{0}}, {0, 3 * mb, 0, []int32{0}},
			{0, 9 * mb, 0, []int32{0}}}, "7 3 7"},
		{"links apart", []int64{gb, gb}, []begin{{0, 3 * mb, 0, []int32{0}}, {0, mb, 0, []int32{1}}}, "3 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			for i, at := range ends(c.bandwidths, c.transfers) {
				if i > 0 {
					got += " "
				}
				got += fmt.Sprint(clock.Duration(at).Milliseconds())
			}
			if got != c.want {
				t.Errorf("transfers arrive at %s ms, want %s", got, c.want)
			}
		})
	}
}

// TestNetworkTruth compares the network with the plain one, event by event.
func TestNetworkTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var n network.Network
		var plain naive.Network
		for range rapid.IntRange(1, 4).Draw(t, "links") {
			b := rapid.SampledFrom([]int64{1, 3, 1000, 999_999_937, 25_000_000_000, 1 << 40}).Draw(t, "bandwidth")
			n.AddLink(b)
			plain.Bandwidth = append(plain.Bandwidth, b)
		}
		usual := slices.Clone(plain.Bandwidth)
		pairs := make(map[int32]*naive.Transfer)
		now := clock.Time(0)
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			next, want := n.Next(), plain.Next()
			if next != want {
				t.Fatalf("next event at %v, want %v", next, want)
			}
			if next != clock.Never && rapid.Bool().Draw(t, "goes on") {
				now = next
				var gone []*naive.Transfer
				for n.Next() == now {
					if i, done := n.Advance(); done {
						gone = append(gone, pairs[i])
						delete(pairs, i)
					}
				}
				arrived := plain.To(now)
				if len(gone) != len(arrived) || slices.ContainsFunc(arrived, func(x *naive.Transfer) bool {
					return !slices.Contains(gone, x)
				}) {
					t.Fatalf("%d transfers arrive at %v, want %d", len(gone), now, len(arrived))
				}
				continue
			}
			if next == clock.Never {
				next = now + 10
			}
			now = clock.Time(rapid.Int64Range(int64(now), max(int64(now), int64(next)-1)).Draw(t, "at"))
			plain.To(now)
			if rapid.IntRange(0, 3).Draw(t, "outage") == 0 {
				l := rapid.IntRange(0, len(usual)-1).Draw(t, "link")
				if plain.Bandwidth[l] = usual[l] - plain.Bandwidth[l]; rapid.Bool().Draw(t, "narrow") {
					plain.Bandwidth[l] /= 2
				}
				n.SetBandwidth(now, int32(l), plain.Bandwidth[l])
			}
			bytes := rapid.Int64Range(1, 1_000_000).Draw(t, "bytes")
			for i := range int32(60) {
				p, going := pairs[i]
				if !going || !rapid.Bool().Draw(t, "changes") {
					continue
				}
				if p.Sending() && rapid.Bool().Draw(t, "more") {
					n.Extend(now, i, bytes)
					plain.Extend(p, bytes)
				} else {
					n.Stop(now, i)
					plain.Stop(p)
					delete(pairs, i)
				}
				break
			}
			var path []int32
			for l := range plain.Bandwidth {
				if rapid.Bool().Draw(t, "over") {
					path = append(path, int32(l))
				}
			}
			if len(path) == 0 {
				path = []int32{0}
			}
			latency := clock.Duration(rapid.SampledFrom([]int64{0, 0, 7, 1_000_000}).Draw(t, "latency"))
			pairs[n.Start(now, bytes, latency, path...)] = plain.Start(bytes, latency, path...)
		}
	})
}

func TestLinkBusy(t *testing.T) {
	var n network.Network
	l := n.AddLink(1000 * mb)
	n.Start(0, 2*mb, 0, l)
	n.Start(clock.Time(clock.Millisecond), 1*mb, 0, l)
	for n.Next() != clock.Never {
		n.Advance()
	}
	at := clock.Time(10 * clock.Millisecond)
	n.Start(at, 5*mb, 0, l)
	if got, want := n.Busy(at.Add(clock.Millisecond), l), 4*clock.Millisecond; got != want {
		t.Errorf("the link was busy for %v, want %v", got, want)
	}
}

// BenchmarkManyTransfers begins and ends transfers while 10,000 share 16 routes of 8 links.
func BenchmarkManyTransfers(b *testing.B) {
	var n network.Network
	for range 8 {
		n.AddLink(25_000 * mb)
	}
	at := clock.Time(0)
	start := func(k int) {
		n.Start(at, int64(100*mb+k%97), 0, int32(k%4), int32(4+k/4%4))
	}
	for k := range 10_000 {
		start(k)
	}
	b.ResetTimer()
	for k := range b.N {
		at = n.Next()
		n.Advance()
		start(k)
	}
}
