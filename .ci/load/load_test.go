package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// simulated returns requests that arrive each second and get a token each 100 ms.
func simulated(requests, tokens int) (all []twin) {
	for k := range requests {
		t := twin{record: event.Record{Tokens: int32(tokens), Outcome: event.Completed}}
		begin := clock.Time(0).Add(clock.Duration(k) * clock.Second)
		t.record.Request = workload.Request{ID: int64(k), Arrival: begin}
		for i := range tokens {
			at := begin.Add(clock.Duration(i+1) * 100 * clock.Millisecond)
			t.chunks = append(t.chunks, event.Chunk{Request: int64(k), At: at, Tokens: int32(i + 1)})
		}
		t.record.ClientFirst, t.record.ClientLast = t.chunks[0].At, t.chunks[tokens-1].At
		all = append(all, t)
	}
	return all
}

// seen returns the calls of clients that see each chunk late.
func seen(all []twin, late func(at time.Duration) time.Duration) (calls []*call) {
	const begun = 5 * time.Second // the clocks differ
	wall := func(t clock.Time) time.Duration { return begun + time.Duration(t/clock.Time(clock.Nanosecond)) }
	for k := range all {
		x := &call{number: int64(k), sent: wall(all[k].arrival())}
		for _, c := range all[k].chunks {
			at := wall(c.At)
			x.chunks = append(x.chunks, chunk{at + late(at-begun), c.Tokens})
		}
		calls = append(calls, x)
	}
	return calls
}

func TestCompare(t *testing.T) {
	all := simulated(200, 20)
	drifting := func(at time.Duration) time.Duration { return time.Millisecond + at/10_000 }
	r, err := compare(seen(all, drifting), all, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.drift; math.Abs(got-1e-4) > 1e-7 {
		t.Errorf("drift %g, want 1e-4", got)
	}
	if p := quantile(r.late, 0); math.Abs(p-0.00101) > 1e-9 {
		t.Errorf("least lateness %g, want 0.00101", p)
	}
	if r.tokens != 4000 || len(r.late) != 4000 || len(r.minutes) != 4 {
		t.Errorf("%d tokens, %d chunks, %d minutes", r.tokens, len(r.late), len(r.minutes))
	}
	for _, l := range []limits{{p50: 5 * time.Millisecond}, {p99: 10 * time.Millisecond}, {drift: time.Millisecond}} {
		if r.judge(&l, false) == nil {
			t.Errorf("limits %+v are not exceeded", l)
		}
	}
	if err := r.judge(&limits{p99: 30 * time.Millisecond, drift: 7 * time.Millisecond}, true); err != nil {
		t.Error(err)
	}
}

// TestCompareMerged has chunks that come together: each of them is late.
func TestCompareMerged(t *testing.T) {
	all := simulated(1, 4)
	calls := seen(all, func(time.Duration) time.Duration { return 0 })
	x := calls[0]
	x.chunks = append(x.chunks[:1], x.chunks[2:]...) // the second token comes with the third
	r, err := compare(calls, all, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(r.late); got != "[0 0 0 0.1]" {
		t.Errorf("lateness %s", got)
	}
}

func TestCompareFaults(t *testing.T) {
	for name, x := range map[string]struct {
		change func(calls []*call, all []twin)
		want   string
	}{
		"early":     {func(c []*call, _ []twin) { c[1].chunks[2].at -= time.Millisecond }, "before its simulated instant"},
		"missing":   {func(c []*call, _ []twin) { c[1].chunks = c[1].chunks[:3] }, "3 tokens came, the simulation has 5"},
		"failed":    {func(c []*call, _ []twin) { c[1].err = io.EOF }, "request 2 of 3 failed"},
		"not sent":  {func(c []*call, _ []twin) { c[1] = nil }, "it was not sent"},
		"unknown":   {func(c []*call, _ []twin) { c[1].number = 3 }, "is not in the journal"},
		"cancelled": {func(_ []*call, a []twin) { a[1].record.Outcome = event.Cancelled }, "outcome cancelled"},
	} {
		all := simulated(3, 5)
		calls := seen(all, func(time.Duration) time.Duration { return 0 })
		x.change(calls, all)
		if _, err := compare(calls, all, 1); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestLoop has a client whose first tokens come late.
func TestLoop(t *testing.T) {
	all := simulated(10, 20)
	calls := seen(all, func(time.Duration) time.Duration { return 0 })
	r, err := compare(calls, all, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.judge(&limits{equal: 0.01}, true); err != nil {
		t.Error(err)
	}
	for _, x := range calls {
		x.chunks[0].at += 3 * time.Millisecond
	}
	if r, err = compare(calls, all, 1); err != nil {
		t.Fatal(err)
	}
	if err := r.judge(&limits{equal: 0.01}, true); err == nil || !strings.Contains(err.Error(), "TTFT mean") {
		t.Errorf("error %v", err)
	}
}

// TestEvents reads a stream in pieces of one byte.
func TestEvents(t *testing.T) {
	const event = `data: {"choices":[{"text":"a"}],"usage":{"prompt_tokens":3,"completion_tokens":%d,"total_tokens":9}}` +
		"\n\n"
	text := fmt.Sprintf(event+event+event, 1, 3, 3) + "data: [DONE]\n\n"
	x, c := new(call), newClient("")
	if err := x.events(c, iotest.OneByteReader(strings.NewReader(text))); err != nil {
		t.Fatal(err)
	}
	if len(x.chunks) != 2 || x.chunks[0].tokens != 1 || x.chunks[1].tokens != 3 {
		t.Errorf("chunks %+v", x.chunks)
	}
	for _, bad := range []string{"data: {}\n\n", text[:len(text)-20], strings.Repeat("x", 5000)} {
		if err := new(call).events(c, strings.NewReader(bad)); err == nil {
			t.Errorf("%.30q: no error", bad)
		}
	}
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{{}, {"stream"}, {"loop", "--users=x"}, {"loop", "x"}} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
