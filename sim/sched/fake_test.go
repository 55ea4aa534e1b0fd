package sched

import (
	"fmt"
	"slices"
)

// fake is a view for tests of single decisions: its methods return values from its fields, and the policy's calls are
// recorded.
type fake struct {
	View
	page, budget      int32
	free, seats       int
	steps, departures int64
	running           []*fakeSequence
	waiting           []fakeWaiting
	log               []string
	why               Cause
}

type fakeSequence struct {
	Progress
	name     string
	computed int32 // of the prompt; all of it in a sequence that decodes
	given    bool
	gone     bool
}

type fakeWaiting struct {
	Waiting
	name      string
	beginning uint64
	path      []int32
}

func (f *fake) say(format string, args ...any) { f.log = append(f.log, fmt.Sprintf(format, args...)) }

func (f *fake) done() string {
	out := fmt.Sprint(f.log)
	f.log = nil
	return out
}

func (f *fake) Budget() int32         { return f.budget }
func (f *fake) Seats() int            { return f.seats }
func (f *fake) FreeBlocks() int       { return f.free }
func (f *fake) DecodeSteps() int64    { return f.steps }
func (f *fake) Departures() int64     { return f.departures }
func (f *fake) WaitingLen() int       { return len(f.waiting) }
func (f *fake) Blocked(why Cause)     { f.why = why }
func (f *fake) Booked() int           { return 0 }
func (f *fake) Book(Seq, int32)       {}
func (f *fake) Urgency(s Seq) Urgency { return Urgency{Request: int64(s)} }
func (f *fake) BlocksFor(tokens int32) int {
	return int((tokens + f.page - 1) / f.page)
}

func (f *fake) RunningLen() int {
	n := 0
	for _, s := range f.running {
		if !s.gone {
			n++
		}
	}
	return n
}

func (s *fakeSequence) decodes() bool { return !s.gone && s.computed == s.Prompt }

func (f *fake) Decoding() int {
	n := 0
	for _, s := range f.running {
		if s.decodes() {
			n++
		}
	}
	return n
}

func (f *fake) Context() int64 {
	var sum int64
	for _, s := range f.running {
		if s.decodes() {
			sum += int64(s.computed)
		}
	}
	return sum
}

func (f *fake) find(from int, ok func(*fakeSequence) bool) Seq {
	for i := from; i < len(f.running); i++ {
		if !f.running[i].gone && ok(f.running[i]) {
			return Seq(i)
		}
	}
	return None
}

func (f *fake) First() Seq     { return f.find(0, func(*fakeSequence) bool { return true }) }
func (f *fake) Next(s Seq) Seq { return f.find(int(s)+1, func(*fakeSequence) bool { return true }) }
func (f *fake) NextPrefill(s Seq) Seq {
	return f.find(int(s)+1, func(s *fakeSequence) bool { return s.computed < s.Prompt })
}

func (f *fake) Missing(s Seq) int32 {
	q := f.running[s]
	switch {
	case q.given:
		return 0
	case q.computed == q.Prompt:
		return 1
	}
	return q.Prompt - q.computed
}

func (f *fake) Progress(s Seq) Progress { return f.running[s].Progress }

func (f *fake) Remaining(limit int32) int64 {
	sum := int64(0)
	for _, s := range f.running {
		if !s.gone {
			sum += int64(min(s.MaxTokens-s.Generated, limit))
		}
	}
	return sum
}

func (f *fake) DecodeFirst() bool {
	n := f.Decoding()
	if n > f.free {
		return false
	}
	f.free -= n
	f.budget -= int32(n)
	f.say("decode %d", n)
	return true
}

func (f *fake) Grow(s Seq, n int32) bool {
	blocks := f.BlocksFor(f.running[s].computed+n) - f.BlocksFor(f.running[s].computed)
	if blocks > f.free {
		return false
	}
	f.free -= blocks
	return true
}

func (f *fake) Give(s Seq, n int32) {
	q := f.running[s]
	q.computed += n
	q.given = true
	f.budget -= n
	f.say("%s%d", q.name, n)
}

func (f *fake) PreemptToTail(s Seq) {
	q := f.running[s]
	f.free += f.BlocksFor(q.Prompt + q.Generated)
	q.gone = true
	f.seats++
	f.departures++
	f.say("-%s", q.name)
}

func (f *fake) Slots(tokens int32) int32 { return tokens }
func (f *fake) MakeRoom(int)             {}

func (f *fake) Waiting(i int) (Waiting, bool) {
	if i >= len(f.waiting) {
		return Waiting{}, false
	}
	return f.waiting[i].Waiting, true
}

func (f *fake) Peek(i int) (Progress, bool) {
	w, ok := f.Waiting(i)
	return w.Progress, ok
}

func (f *fake) Beginning(i int, tokens int32) (uint64, bool) {
	return f.waiting[i].beginning, f.waiting[i].Known >= tokens
}

func (f *fake) Path(i int, to []int32) []int32 { return append(to, f.waiting[i].path...) }

func (f *fake) Admit(i int, n int32) Seq {
	w := f.waiting[i]
	f.waiting = slices.Delete(f.waiting, i, i+1)
	f.seats--
	f.running = append(f.running, &fakeSequence{Progress: w.Progress, name: w.name, computed: w.Cached})
	s := Seq(len(f.running) - 1)
	f.Grow(s, n)
	f.Give(s, n)
	return s
}

func (f *fake) Reserve(s Seq, tokens int32) bool { return true }

// decoding adds a sequence that decodes.
func (f *fake) decoding(name string, prompt, most, generated int32) {
	f.running = append(f.running, &fakeSequence{name: name, computed: prompt,
		Progress: Progress{Prompt: prompt, MaxTokens: most, Generated: generated}})
}

// wait adds a waiting request.
func (f *fake) wait(name string, prompt, most int32) *fakeWaiting {
	f.waiting = append(f.waiting, fakeWaiting{name: name,
		Waiting: Waiting{Known: prompt, Progress: Progress{Prompt: prompt, MaxTokens: most,
			Request: int64(len(f.waiting))}}})
	return &f.waiting[len(f.waiting)-1]
}
