package route

import (
	"math"
	"testing"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// TestPrefix: a prompt follows the longest prefix, and an unknown one goes to any endpoint, or to the least loaded.
func TestPrefix(t *testing.T) {
	v, p := fleet(4), NewPrefix()
	p.BlockTokens = 4
	a := v.send(p, prompt(0, 0, "a", "b"))
	for id := range int64(5) {
		if k := v.send(p, prompt(1+id, 3, "a", "b", "c")); k != a {
			t.Errorf("request %d goes to %d, want %d", id, k, a)
		}
	}
	seen := make(map[int]bool)
	for id := range int64(100) {
		seen[p.Route(v, prompt(100+id, 40))] = true
	}
	if len(seen) != 4 {
		t.Errorf("unknown prompts go to %v, want all four", seen)
	}
	p.MinTokens = 9
	if k := v.send(p, prompt(300, 0, "a", "b")); k == a {
		t.Errorf("a match of 8 tokens of at least 9 decides for %d, which has 6 outstanding", k)
	}
	if k := v.send(p, prompt(301, 0, "a", "b", "c")); k != a {
		t.Errorf("a match of 12 tokens goes to %d, want %d", k, a)
	}
	p.CacheReset(v.ends[a].replica)
	if k := v.send(p, prompt(302, 0, "a", "b", "c")); k == a {
		t.Errorf("replica %d is believed to hold what it lost", a)
	}
}

// TestPrefixSpreads: equals share requests evenly.
func TestPrefixSpreads(t *testing.T) {
	v, p := fleet(2), NewPrefix()
	p.BlockTokens = 4
	for k := range 2 { // both know it
		p.known.tokens = 4
		p.known.match(0, prompt(0, 0, "a"), 0)
		p.known.add(0, k)
	}
	n := 0
	for id := range int64(1000) {
		n += p.Route(v, prompt(id, 0, "a"))
	}
	if n < 400 || n > 600 {
		t.Errorf("%d of 1000 go to one of two equals", n)
	}
}

// TestSGLang: the thresholds of SGLang's router.
func TestSGLang(t *testing.T) {
	p := NewSGLang()
	p.CacheThreshold, p.BalanceAbs, p.BalanceRel, p.BlockTokens = 0.5, 32, 1.0001, 4
	v := fleet(3)
	if k := v.send(p, prompt(0, 0, "a", "b")); k != 0 {
		t.Fatalf("the first goes to %d, want 0", k)
	}
	if k := v.send(p, prompt(1, 0, "c", "d", "e", "f")); k != 1 {
		t.Fatalf("the second goes to %d, want 1, which is idle", k)
	}
	if k := v.send(p, prompt(2, 0, "a", "b", "x", "y")); k != 2 {
		t.Errorf("a match of a half, which is not more than the threshold, goes to %d, want 2, which is idle", k)
	}
	if k := v.send(p, prompt(3, 0, "c", "d", "e", "y")); k != 1 {
		t.Errorf("a match of three quarters goes to %d, want 1", k)
	}
	v.ends[1].Outstanding = 33 // 32 more than the least
	if k := v.send(p, prompt(4, 0, "c", "d", "e", "y")); k != 1 {
		t.Errorf("balanced loads: it goes to %d, want 1", k)
	}
	if k := v.send(p, prompt(5, 0, "c", "d", "e", "y")); k != 0 {
		t.Errorf("loads of %d, %d and %d: it goes to %d, want 0", v.ends[0].Outstanding, v.ends[1].Outstanding,
			v.ends[2].Outstanding, k)
	}
	p.BalanceRel = 40 // never so unbalanced
	p.SmallestTree = true
	if k := v.send(p, prompt(6, 0, "z")); k != 2 {
		t.Errorf("with trees of %d, %d and %d blocks it goes to %d, want 2", p.known.size(0), p.known.size(1),
			p.known.size(2), k)
	}
}

// TestSGLangEvicts: trees lose their least recently used leaves when an interval has passed, and not before.
func TestSGLangEvicts(t *testing.T) {
	p, v := NewSGLang(), fleet(1)
	p.BlockTokens, p.MaxTreeTokens, p.EvictionInterval = 4, 8, clock.Minute
	v.now = clock.Time(59 * clock.Second)
	v.send(p, prompt(0, 0, "a", "b"))
	v.send(p, prompt(1, 0, "a", "c"))
	if n := p.known.size(0); n != 3 {
		t.Errorf("%d blocks, want 3", n)
	}
	v.now = clock.Time(61 * clock.Second)
	v.send(p, prompt(2, 0, "a"))
	if n := p.known.size(0); n != 2 {
		t.Errorf("%d blocks after a minute, want 2", n)
	}
	p.known.match(v.now, prompt(3, 0, "a", "c"), 0)
	if n := p.known.of(0); n != 2 {
		t.Errorf("%d blocks of the more recent leaf are there, want 2", n)
	}
}

// TestKVAware: the longest prefix decides unless too much of the prompt is missing.
func TestKVAware(t *testing.T) {
	v, p := fleet(3), newKVAware()
	v.ends[0].Outstanding = 3
	v.ends[1].Outstanding = 2
	v.ends[0].cached, v.ends[1].cached = 1000, 992
	if k := p.Route(v, prompt(0, 3000)); k != 0 {
		t.Errorf("2000 tokens are missing at 0, and it goes to %d", k)
	}
	if k := p.Route(v, prompt(1, 3001)); k != 2 {
		t.Errorf("more than 2000 tokens are missing, and it goes to %d, want 2, which is idle", k)
	}
	v.ends[0].cached, v.ends[1].cached = 0, 0
	if k := p.Route(v, prompt(2, 100)); k != 2 {
		t.Errorf("no endpoint has a part of it, and it goes to %d, want 2, which is idle", k)
	}
}

// TestLLMD is the worked scenario of weighted scorers: totals 4.6, 2.6 and 2.5, and 2.2, 2.6 and 1.0 without prefixes.
func TestLLMD(t *testing.T) {
	v := fleet(3)
	for k, e := range []struct{ queue, used, hit int }{{0, 900, 800}, {4, 200, 0}, {8, 500, 500}} {
		v.ends[k].Waiting, v.ends[k].UsedBlocks, v.ends[k].cached = e.queue, e.used, int32(e.hit)
	}
	for _, c := range []struct {
		prefix float64
		want   int
		sums   []float64
	}{{3, 0, []float64{4.6, 2.6, 2.5}}, {0, 1, []float64{2.2, 2.6, 1.0}}} {
		p := NewLLMD()
		p.Precise = true
		p.Scorers[2].Weight = c.prefix
		if k := p.Route(v, prompt(0, 1000)); k != c.want {
			t.Errorf("prefix weight %v: it goes to %d, want %d", c.prefix, k, c.want)
		}
		for k, want := range c.sums {
			if math.Abs(p.sums[k]-want) > 1e-12 {
				t.Errorf("prefix weight %v: endpoint %d has %v, want %v", c.prefix, k, p.sums[k], want)
			}
		}
	}
}

// TestLLMDScores checks the scores of one endpoint among others, for each scorer alone.
func TestLLMDScores(t *testing.T) {
	v := fleet(3)
	v.now = clock.Time(clock.Second)
	for k := range v.ends {
		e := &v.ends[k]
		e.At, e.Waiting, e.Running, e.Outstanding, e.UsedBlocks = v.now, 32*k, 10-k, 2*k, 250*k
	}
	score := func(p *LLMD, by Score, r *workload.Request) []float64 {
		p.Scorers = []Weighted{{by, 1}}
		p.Route(v, r)
		return append([]float64(nil), p.sums...)
	}
	for _, c := range []struct {
		by   Score
		want []float64
	}{
		{QueueScore, []float64{1, .5, 0}},
		{RunningScore, []float64{0, .5, 1}},
		{KVScore, []float64{1, .75, .5}},
		{LoadAwareScore, []float64{.5, .375, .25}},
		{ActiveScore, []float64{1, .5, 0}},
		{PrefixScore, []float64{0, 0, 0}},
		{SessionScore, []float64{0, 0, 0}},
		{NoHitScore, []float64{1, .5, 0}},
		{TokenScore, []float64{.5, .5, .5}}, // its own tokens
	} {
		p := NewLLMD()
		p.TokenLimit = 200
		if got := score(p, c.by, prompt(0, 100)); !near(got, c.want) {
			t.Errorf("%v: %v, want %v", c.by, got, c.want)
		}
	}
	p := NewLLMD()
	p.BlockTokens, p.TokenLimit = 4, 100
	r := prompt(0, 8, "a", "b")
	r.Session = 3
	p.Scorers = []Weighted{{ActiveScore, 1}, {PrefixScore, 0.1}, {SessionScore, 0.1}, {TokenScore, 0.1},
		{NoHitScore, .1}}
	if k := p.Route(v, r); k != 0 {
		t.Fatalf("the idle endpoint is 0, and it goes to %d", k)
	}
	next := prompt(1, 8, "a", "b")
	next.Session = 3
	for _, c := range []struct {
		by   Score
		want []float64
	}{
		{NoHitScore, []float64{.5, .5, .5}}, // it is not cold
		{PrefixScore, []float64{.5, 0, 0}},  // two blocks of four
		// 16 tokens in flight at 0, where 8 of its own are known
		{TokenScore, []float64{1 - .16 - .08, 1 - .16, 1 - .16}},
		{SessionScore, []float64{1, 0, 0}}, // where the last one went
	} {
		q := *p // a decision changes nothing
		q.known, q.prefillLoad, q.sessions = *clonePrefixes(&p.known),
			prefillLoad{tokens: append([]int64(nil), p.prefillLoad.tokens...)}, map[int32]int32{3: 0}
		if got := score(&q, c.by, next); !near(got, c.want) {
			t.Errorf("second request, %v: %v, want %v", c.by, got, c.want)
		}
	}
	p.Began(v, 0, r)
	if n := p.prefillLoad.of(0); n != 0 {
		t.Errorf("%d tokens are in flight after the first token", n)
	}
}

func clonePrefixes(x *prefixes) *prefixes {
	y := &prefixes{}
	y.tokens = x.tokens
	y.match(0, prompt(0, 8, "a", "b"), 0)
	y.add(0, 0)
	return y
}

func near(a, b []float64) bool {
	for i := range a {
		if math.Abs(a[i]-b[i]) > 1e-12 {
			return false
		}
	}
	return len(a) == len(b)
}

// TestLLMDStale: metrics older than the limit count for nothing.
func TestLLMDStale(t *testing.T) {
	v, p := fleet(2), NewLLMD()
	v.now = clock.Time(clock.Second)
	v.ends[0].At = v.now.Add(-201 * clock.Millisecond)
	v.ends[1].At, v.ends[1].Waiting, v.ends[1].UsedBlocks = v.now.Add(-200*clock.Millisecond), 50, 900
	if k := p.Route(v, prompt(0, 100)); k != 1 {
		t.Errorf("it goes to %d, whose metrics are stale", k)
	}
}

// TestLLMDAffinity: sticky endpoints keep a prompt until they are too far behind.
func TestLLMDAffinity(t *testing.T) {
	v, p := fleet(2), NewLLMD()
	p.Precise, p.Affinity = true, defaultAffinity()
	p.Scorers = []Weighted{{ActiveScore, 1}}
	v.ends[1].cached, v.ends[1].Outstanding = 800, 5
	if k := p.Route(v, prompt(0, 1000)); k != 1 {
		t.Fatalf("eight tenths of it are at 1, and it goes to %d", k)
	}
	v.ends[1].cached = 799
	if k := p.Route(v, prompt(1, 1000)); k != 0 {
		t.Errorf("less than eight tenths are at 1, which is busy, and it goes to %d", k)
	}
	v.ends[1].cached = 1000
	p.prefillLoad.add(1, prompt(2, 0), 18*15928+1001) // 18 s more than what is at the other, and a little
	if k := p.Route(v, prompt(3, 1000)); k != 0 {
		t.Errorf("the sticky endpoint is 18 s behind, and it goes to %d", k)
	}
}

// TestLLMDPickers: random picks are even, and weighted ones are like the scores.
func TestLLMDPickers(t *testing.T) {
	v := fleet(2)
	v.ends[0].UsedBlocks = 750
	for _, c := range []struct {
		pick Picker
		want int // of 4000 at the first
	}{{RandomPick, 2000}, {WeightedRandom, 800}, {MaxScore, 0}} {
		p := NewLLMD()
		p.Scorers, p.Picker = []Weighted{{KVScore, 1}}, c.pick
		n := 0
		for range 4000 {
			n += 1 - p.Route(v, prompt(0, 100))
		}
		if n < c.want-150 || n > c.want+150 {
			t.Errorf("picker %d: %d of 4000 at the first, want about %d", c.pick, n, c.want)
		}
	}
}

// TestDynamo is the worked example of Dynamo's guide: costs of 18, 10 and 11.
func TestDynamo(t *testing.T) {
	p, v := NewDynamo(), fleet(3)
	p.BlockTokens = 4
	r := prompt(100, 40) // ten blocks
	for k, w := range []struct{ cached, active int32 }{{2, 10}, {5, 5}, {8, 9}} {
		v.ends[k].cached = 4 * w.cached
		p.active.add(k, int64(k), nil, w.active)
	}
	if k := p.Route(v, r); k != 1 {
		t.Errorf("it goes to %d, want 1", k)
	}
	for k, want := range []float64{18, 10, 11} {
		// the guide leaves out the request's own active blocks, which are the same for all
		if got := p.costs[k] - 10; got != want {
			t.Errorf("worker %d costs %v, want %v", k, got, want)
		}
	}
	if got := p.prefillLoad.of(1); got != 20 {
		t.Errorf("%d tokens are to be prefilled at 1, want 20", got)
	}
	p.Began(v, 1, r)
	if got := p.prefillLoad.of(1); got != 0 {
		t.Errorf("%d tokens are to be prefilled at 1 after the first token", got)
	}
	if got := p.active.of[1].all; got != 15 {
		t.Errorf("%d blocks are active at 1, want 15", got)
	}
	p.Ended(v, 1, r)
	if got := p.active.of[1].all; got != 5 {
		t.Errorf("%d blocks are active at 1 after the end, want 5", got)
	}
}

// TestDynamoSharing: blocks that requests share are active once.
func TestDynamoSharing(t *testing.T) {
	p, v := NewDynamo(), fleet(1)
	p.BlockTokens = 4
	a, b := prompt(0, 8, "a", "b"), prompt(1, 4, "a", "b", "c")
	v.send(p, a)
	v.send(p, b)
	if got := p.active.of[0].all; got != 6 {
		t.Errorf("%d active blocks, want a, b, c and three of their own", got)
	}
	p.Ended(v, 0, a)
	if got := p.active.of[0].all; got != 4 {
		t.Errorf("%d active blocks, want a, b, c and one", got)
	}
	p.Ended(v, 0, b)
	if got := p.active; got.of[0].all != 0 || got.of[0].again.Len() != 0 || got.held.Len() != 0 ||
		got.holders.Len() != 0 {
		t.Errorf("nothing is left, and there is %+v", got)
	}
}

// TestDynamoTemperature: the softmax of costs scaled to a range of 1.
func TestDynamoTemperature(t *testing.T) {
	p, v := NewDynamo(), fleet(2)
	p.Temperature = 0.5
	v.ends[1].cached = 64
	n := 0
	for range 10_000 {
		r := prompt(0, 640)
		k := p.Route(v, r)
		p.Ended(v, k, r)
		n += k
	}
	if want := 1e4 / (1 + math.Exp(-2)); math.Abs(float64(n)-want) > 150 {
		t.Errorf("%d of 10000 go to the cheaper one, want about %.0f", n, want)
	}
}

// TestDynamoPrunes: beyond the limit the oldest decisions are forgotten.
func TestDynamoPrunes(t *testing.T) {
	p, v := NewDynamo(), fleet(2)
	p.Approximate, p.BlockTokens, p.MaxBlocks, p.PruneTo = true, 4, 10, 0.5
	for id := range int64(5) {
		v.now++
		v.send(p, prompt(id, 0, string(rune('a'+id)), "x"))
	}
	if n := p.known.total(); n != 10 {
		t.Fatalf("%d blocks, want 10", n)
	}
	v.now++
	v.send(p, prompt(5, 4))
	if n := p.known.total(); n != 5 {
		t.Errorf("%d blocks after pruning, want 5", n)
	}
	v.now = v.now.Add(p.TTL)
	p.known.match(v.now, prompt(6, 4), 0)
	if n := p.known.total(); n != 0 {
		t.Errorf("%d blocks after their time, want none", n)
	}
}
