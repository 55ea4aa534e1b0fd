package simtest

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/sched"
	"clifftop/sim/simtest/naive"
	"clifftop/workload"
)

const ms = clock.Time(clock.Millisecond)

// plain is an engine with steps of 10 ms and room for all requests.
func plain() engine.Config {
	return engine.Config{
		Scheduler: &sched.VLLM{}, Timer: Affine{Base: int64(10*ms) * clock.FemtosPerPico},
		MaxNumSeqs: 8, MaxNumBatchedTokens: 100, MaxModelLen: 100, BlockSize: 16,
	}
}

// TestNaiveByHand follows four requests through an engine with two iterations in flight: A and B stay,
// C leaves in the front end, D while its first two tokens are in flight.
//
//	3 ms   A, B in the queue; step 1 (3–13): A4 B4; step 2 (13–23): A1 B1; C leaves
//	8 ms   D in the queue
//	13 ms  step 3 (23–33): B1 D4
//	23 ms  A ends; step 4 (33–43): D1
//	25 ms  D leaves
//	33 ms  D is removed, B ends
func TestNaiveByHand(t *testing.T) {
	cfg := plain()
	cfg.AsyncScheduling = true
	cfg.Frontend, cfg.StreamPerSequence = 3*clock.Millisecond, clock.Millisecond
	src := NewRequests([]workload.Request{
		{InputTokens: 4, OutputTokens: 2},
		{InputTokens: 4, OutputTokens: 3},
		{InputTokens: 4, OutputTokens: 3, Arrival: 1 * ms, Client: workload.ClientWithTimeout(2 * clock.Millisecond)},
		{InputTokens: 4, OutputTokens: 5, Arrival: 5 * ms, Client: workload.ClientWithTimeout(20 * clock.Millisecond)},
	})
	recorder := &StepRecorder{}
	if err := naive.Run(cfg, src, recorder); err != nil {
		t.Fatal(err)
	}
	if err := CheckRecording(&cfg, &recorder.Recorder); err != nil {
		t.Error(err)
	}

	type instants [7]clock.Time // queued, scheduled, first, client's first, last, client's last, released
	const never = clock.Never
	want := map[int64]instants{
		0: {3 * ms, 3 * ms, 13 * ms, 14 * ms, 23 * ms, 24 * ms, 23 * ms},
		1: {3 * ms, 3 * ms, 13 * ms, 15 * ms, 33 * ms, 34 * ms, 33 * ms},
		2: {never, never, never, never, never, never, 3 * ms},
		3: {8 * ms, 13 * ms, never, never, never, never, 33 * ms},
	}
	for _, rec := range recorder.Records {
		got := instants{rec.Queued, rec.Scheduled, rec.FirstToken, rec.ClientFirst, rec.LastToken, rec.ClientLast,
			rec.Released}
		if got != want[rec.Request.ID] {
			t.Errorf("request %d: %v, want %v", rec.Request.ID, got, want[rec.Request.ID])
		}
	}
	if want := []Drop{{33 * ms, 1}, {43 * ms, 1}}; !slices.Equal(recorder.Drops, want) {
		t.Errorf("dropped %v, want %v", recorder.Drops, want)
	}
	gaveUp := func(at clock.Time) workload.End {
		return workload.End{How: workload.TimedOut, At: at, First: never}
	}
	ends := []Ended{
		{2, gaveUp(3 * ms), false}, {0, workload.End{At: 24 * ms, First: 14 * ms, Tokens: 2}, false},
		{3, gaveUp(25 * ms), false}, {1, workload.End{At: 34 * ms, First: 15 * ms, Tokens: 3}, false},
	}
	if !slices.Equal(src.Ended, ends) {
		t.Errorf("done %v, want %v", src.Ended, ends)
	}
	wantLevels := []LevelChange{
		{0, event.Levels{System: 2}},
		{1 * ms, event.Levels{System: 3}},
		{3 * ms, event.Levels{System: 2, Running: 2}},
		{5 * ms, event.Levels{System: 3, Running: 2}},
		{8 * ms, event.Levels{System: 3, Running: 2, Waiting: 1}},
		{13 * ms, event.Levels{System: 3, Running: 3, Decoding: 2}},
		{23 * ms, event.Levels{System: 2, Running: 2, Decoding: 1}},
		{33 * ms, event.Levels{}},
	}
	if !slices.Equal(recorder.Changes, wantLevels) {
		t.Errorf("levels %v, want %v", recorder.Changes, wantLevels)
	}
}

// TestNaiveClosedLoop checks that a client that sends its next request as it leaves is heard at that
// instant, while the engine learns of its leaving only at the boundary.
func TestNaiveClosedLoop(t *testing.T) {
	cfg := plain()
	src := NewClosedLoop([]workload.Request{
		{InputTokens: 4, OutputTokens: 3, Client: workload.ClientWithTimeout(4 * clock.Millisecond)},
		{InputTokens: 4, OutputTokens: 1, Arrival: 1 * ms}, // 1 ms after the first was done
	}, 1)
	recorder := &Recorder{}
	if err := naive.Run(cfg, src, recorder); err != nil {
		t.Fatal(err)
	}
	if err := CheckRecording(&cfg, recorder); err != nil {
		t.Error(err)
	}
	want := []LevelChange{
		{0, event.Levels{System: 1, Running: 1}},
		{5 * ms, event.Levels{System: 2, Running: 1, Waiting: 1}},
		{10 * ms, event.Levels{System: 1, Running: 1}},
		{20 * ms, event.Levels{}},
	}
	if !slices.Equal(recorder.Changes, want) {
		t.Errorf("levels %v, want %v", recorder.Changes, want)
	}
}

// TestNaiveRejects checks the requests that can never run.
func TestNaiveRejects(t *testing.T) {
	cfg := plain()
	cfg.NumGPUBlocks, cfg.MaxModelLen = 3, 40
	src := NewRequests([]workload.Request{
		{InputTokens: 40, OutputTokens: 1},  // reaches the longest sequence
		{InputTokens: 31, OutputTokens: 3},  // computes 33 tokens, which take 3 blocks
		{InputTokens: 31, OutputTokens: 2},  // fits
		{InputTokens: 33, OutputTokens: 90}, // does not fit, however it is cut
	})
	recorder := &Recorder{}
	if err := naive.Run(cfg, src, recorder); err != nil {
		t.Fatal(err)
	}
	for _, rec := range recorder.Records {
		if want := rec.Request.ID != 2; (rec.Outcome == event.Rejected) != want {
			t.Errorf("request %d: %v, want rejected %v", rec.Request.ID, rec.Outcome, want)
		}
	}
}

// TestCheckRecordingFinds spoils a recording in several ways.
func TestCheckRecordingFinds(t *testing.T) {
	for _, test := range []struct {
		want  string
		spoil func(*Recorder)
	}{
		{"never ended", func(t *Recorder) { t.Records = t.Records[1:] }},
		{"delivered", func(t *Recorder) { t.Iterations[2].Decodes-- }},
		{"budget", func(t *Recorder) { t.Iterations[0].PrefillTokens += 100 }},
		{"starts before", func(t *Recorder) { t.Iterations[1].Start-- }},
		{"Little's law: system", func(t *Recorder) { t.Changes[1].At++ }},
		{"levels at the end", func(t *Recorder) { t.Changes = t.Changes[:len(t.Changes)-1] }},
		{"idle", func(t *Recorder) { t.Iterations = t.Iterations[:2] }},
		{"BlockFemtos", func(t *Recorder) { t.BlockFemtos.Lo++ }},
		{"gaps", func(t *Recorder) { t.Iterations[1].Gaps = 0 }},
	} {
		cfg := plain()
		recorder := &Recorder{}
		src := NewRequests([]workload.Request{
			{InputTokens: 4, OutputTokens: 4},
			{InputTokens: 4, OutputTokens: 9, Arrival: 3 * ms},
		})
		if err := naive.Run(cfg, src, recorder); err != nil {
			t.Fatal(err)
		}
		test.spoil(recorder)
		if err := CheckRecording(&cfg, recorder); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("want an error with %q, got %v", test.want, err)
		}
	}
}

// TestNaiveInvariants runs every policy on the naive engine on random cases and checks what holds in every run.
func TestNaiveInvariants(t *testing.T) {
	for _, p := range append(Policies(), FuzzPolicy) {
		t.Run(p.Name, func(t *testing.T) {
			seen := make(map[string]int)
			rapid.Check(t, func(t *rapid.T) {
				c := p.Draw(t)
				recorder, _ := c.runNaive(t, nil)
				count(seen, &recorder.Recorder)
			})
			t.Log(seen)
		})
	}
}

// TestReservationNeverPreempts: a policy that takes or counts the blocks of the longest outputs on admission never
// preempts.
func TestReservationNeverPreempts(t *testing.T) {
	for _, p := range Policies() {
		if !slices.Contains([]string{"orca", "static", "tgi", "trtllm"}, p.Name) {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := p.Draw(t)
				if trt, ok := c.policy.New(c.knobs).(*sched.TRTLLM); ok && trt.Capacity == sched.MaxUtilization {
					t.Skip("it pauses requests")
				}
				if recorder, _ := c.runNaive(t, nil); len(recorder.Preemptions) > 0 {
					t.Fatalf("%d preemptions\n%v", len(recorder.Preemptions), c)
				}
			})
		})
	}
}
