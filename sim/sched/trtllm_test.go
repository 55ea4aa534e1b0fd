package sched

import "testing"

// A capacity of 512 tokens, a unit of 64, contexts of 1000 and 300 tokens.
func TestTRTLLMChunking(t *testing.T) {
	for _, c := range []struct {
		chunking Chunking
		want     [3]string
	}{
		{FirstComeFirstServed, [3]string{"[decode 0 X512]", "[decode 0 X488]", "[decode 1 Y300]"}},
		{EqualProgress, [3]string{"[decode 0 X256 Y256]", "[decode 0 X448 Y44]", "[decode 1 X296]"}},
	} {
		v := &fake{page: 64, free: 1000, seats: 8}
		v.wait("X", 1000, 100)
		v.wait("Y", 300, 100)
		p := &TRTLLM{ChunkedContext: true, Chunking: c.chunking, ChunkUnit: 64}
		if err := p.Validate(Limits{MaxNumSeqs: 8, MaxNumBatchedTokens: 512, MaxModelLen: 2000,
			BlockSize: 64}); err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			v.budget = 512
			for _, s := range v.running {
				s.given = false
			}
			p.Schedule(v)
			if got := v.done(); got != want {
				t.Errorf("%v: iteration %d is %s, want %s", c.chunking, i+1, got, want)
			}
		}
	}
}

// The first context has no unit left to get, but the second fits into the rest whole.
func TestTRTLLMLeftover(t *testing.T) {
	v := &fake{page: 64, free: 1000, seats: 8, budget: 40}
	v.wait("X", 1000, 100)
	v.wait("Y", 30, 100)
	p := &TRTLLM{ChunkedContext: true, Chunking: EqualProgress, ChunkUnit: 8}
	p.Schedule(v)
	if got := v.done(); got != "[decode 0 X24 Y16]" {
		t.Error(got)
	}
	v = &fake{page: 64, free: 1000, seats: 8, budget: 100}
	v.wait("X", 1000, 100)
	v.wait("Y", 30, 100)
	p = &TRTLLM{ChunkedContext: true, Chunking: EqualProgress, ChunkUnit: 64}
	p.Schedule(v)
	if got := v.done(); got != "[decode 0 X64 Y30]" {
		t.Error(got)
	}
}
