package simtest

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/sched"
	"clifftop/sim/simtest/naive"
	"clifftop/workload"
)

// each runs a configuration on the naive engine, and on the real one with single steps and with spans.
func each(t *testing.T, cfg engine.Config, list []workload.Request, check func(t *testing.T, r *Recorder)) {
	t.Helper()
	t.Run("naive", func(t *testing.T) {
		r := new(Recorder)
		if err := naive.Run(cfg, NewRequests(list), r); err != nil {
			t.Fatal(err)
		}
		check(t, r)
	})
	for _, maxSpan := range []int{1, 0} {
		t.Run(fmt.Sprint("spans of ", maxSpan), func(t *testing.T) {
			cfg, r := cfg, new(Recorder)
			cfg.MaxSpan, cfg.Check = maxSpan, true
			e, err := sim.New(cfg, NewRequests(list), r)
			if err == nil {
				err = e.Run(context.Background())
			}
			if err != nil {
				t.Fatal(err)
			}
			check(t, r)
		})
	}
}

// batchOf is an engine with seats for 256 and steps of a length, whose front end takes 48 µs for a chunk, and 256
// requests that all come at once.
func batchOf(step clock.Duration, outputTokens int32) (engine.Config, []workload.Request) {
	cfg := engine.Config{
		Scheduler: &sched.VLLM{}, Timer: Affine{Base: int64(step) * clock.FemtosPerPico},
		MaxNumSeqs: 256, MaxNumBatchedTokens: 8192, MaxModelLen: 100, BlockSize: 16,
		StreamPerSequence: 48 * clock.Microsecond,
	}
	list := make([]workload.Request, 256)
	for i := range list {
		list[i] = workload.Request{InputTokens: 4, OutputTokens: outputTokens}
	}
	return cfg, list
}

const µs = clock.Time(clock.Microsecond)

// TestDeliveryBehind: 256 sequences take 12.288 ms of the front end, and steps take 9 ms. The k-th sequence gets its
// first chunk at 9 ms + k·48 µs.
//
//	18 ms  the front end has begun with 188 chunks. The others, 189 to 256, go out with two tokens. Sequences 1 to 188
//	       join the queue again: theirs leave at 21.288 ms + k·48 µs.
//	27 ms  it has begun with 375: all of the first round and 119 of the second. 120 to 188 go out with their second and
//	       third tokens. 189 to 256 and then 1 to 119 join for their third and last token, from 30.312 ms on.
func TestDeliveryBehind(t *testing.T) {
	cfg, list := batchOf(9*clock.Millisecond, 3)
	each(t, cfg, list, func(t *testing.T, r *Recorder) {
		for i := range r.Records {
			rec := &r.Records[i]
			k := clock.Time(rec.Request.ID + 1)
			last := 21288*µs + k*48*µs
			switch {
			case k < 120:
				last = 30312*µs + (68+k)*48*µs
			case k > 188:
				last = 30312*µs + (k-188)*48*µs
			}
			if first := 9*ms + k*48*µs; rec.ClientFirst != first || rec.ClientLast != last {
				t.Fatalf("sequence %d: from %v to %v, want %v to %v", k, rec.ClientFirst, rec.ClientLast, first, last)
			}
		}
		chunks := 0
		for gap, n := range r.Chunks {
			if chunks += n; gap != 12288*clock.Microsecond {
				t.Errorf("%d gaps of %v, want 12.288 ms", n, gap)
			}
		}
		if chunks != 188+187 {
			t.Errorf("%d gaps between chunks, want 375", chunks)
		}
	})
}

// TestDeliveryInTime: the front end is idle at the end of every step of 13 ms, so each chunk leaves the place of its
// sequence times 48 µs after the step.
func TestDeliveryInTime(t *testing.T) {
	cfg, list := batchOf(13*clock.Millisecond, 20)
	each(t, cfg, list, func(t *testing.T, r *Recorder) {
		for i := range r.Records {
			rec := &r.Records[i]
			behind := clock.Duration(rec.Request.ID+1) * 48 * clock.Microsecond
			if rec.ClientFirst != (13*ms).Add(behind) || rec.ClientLast != (20*13*ms).Add(behind) {
				t.Fatalf("request %d: from %v to %v", rec.Request.ID, rec.ClientFirst, rec.ClientLast)
			}
		}
		if len(r.Chunks) > 0 {
			t.Errorf("gaps between chunks that are not as long as the step: %v", r.Chunks)
		}
	})
}

// TestStreamInterval: of 20 tokens, with an interval of 8, the client gets tokens 1, 2 to 9, 10 to 17, and 18 to 20.
// All sequences have chunks in the same iterations, so that each keeps its place: two gaps of 8 steps and one of 3.
func TestStreamInterval(t *testing.T) {
	cfg, list := batchOf(13*clock.Millisecond, 20)
	cfg.StreamInterval = 8
	each(t, cfg, list, func(t *testing.T, r *Recorder) {
		for i := range r.Records {
			rec := &r.Records[i]
			behind := clock.Duration(rec.Request.ID+1) * 48 * clock.Microsecond
			if rec.ClientFirst != (13*ms).Add(behind) || rec.ClientLast != (20*13*ms).Add(behind) {
				t.Fatalf("request %d: from %v to %v", rec.Request.ID, rec.ClientFirst, rec.ClientLast)
			}
		}
		want := map[clock.Duration]int{8 * 13 * clock.Millisecond: 512, 3 * 13 * clock.Millisecond: 256}
		if !maps.Equal(r.Chunks, want) {
			t.Errorf("gaps between chunks %v, want %v", r.Chunks, want)
		}
	})
}

// TestStreamIntervalDrains: steps of 9 ms are shorter than the 12.288 ms that the front end takes for a chunk of each
// sequence. With an interval of 2 it is idle before each second step, so that clients get all tokens in time.
func TestStreamIntervalDrains(t *testing.T) {
	cfg, list := batchOf(9*clock.Millisecond, 5)
	cfg.StreamInterval = 2
	each(t, cfg, list, func(t *testing.T, r *Recorder) {
		if want := map[clock.Duration]int{18 * clock.Millisecond: 512}; !maps.Equal(r.Chunks, want) {
			t.Errorf("gaps between chunks %v, want %v", r.Chunks, want)
		}
	})
}

// TestTwoTokenAnswers: with two tokens the gap of a request is its time per output token. Half of the batch ends after
// one token, so that the rest move forward by up to 128 places.
func TestTwoTokenAnswers(t *testing.T) {
	cfg, list := batchOf(13*clock.Millisecond, 2)
	for i := range list {
		list[i].OutputTokens -= int32(i % 2)
	}
	each(t, cfg, list, func(t *testing.T, r *Recorder) {
		want := map[clock.Duration]int{}
		for i := range r.Records {
			if rec := &r.Records[i]; rec.Tokens == 2 {
				want[rec.ClientLast.Sub(rec.ClientFirst)]++
			}
		}
		level := 0
		for _, it := range r.Iterations {
			level += it.ChunkGaps
		}
		if level != 1 || len(want) != 128 || want[13*clock.Millisecond] != 1 {
			t.Fatalf("%d gaps as long as the step, times per token %v", level, want)
		}
		delete(want, 13*clock.Millisecond)
		if fmt.Sprint(want) != fmt.Sprint(r.Chunks) {
			t.Errorf("gaps %v, times per token %v", r.Chunks, want)
		}
	})
}
