package naive

import (
	"fmt"
	"hash/fnv"
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/sched"
)

// view is the iteration that a policy composes on the naive engine.
type view struct {
	*Engine
	*iteration
	grouping
	at clock.Time
}

var _ sched.View = view{}

// compose calls the policy for the next iteration.
func (n *Engine) compose(at clock.Time) *iteration {
	it := &iteration{budget: int32(n.cfg.MaxNumBatchedTokens), perRow: n.cfg.Speculative.Slots}
	n.blocked = sched.NotBlocked
	for _, s := range n.running {
		s.given, s.found, s.loaded = 0, 0, 0
	}
	n.stashChunks()
	n.raiseCounters(n.running)
	if h, ok := n.kv.(*hybrid); ok {
		clear(h.fresh)
	}
	n.restore()
	v := view{n, it, grouping{n}, at}
	it.before = snapshot{slices.Clone(n.running), n.WaitingLen(), n.place(0), n.joined, n.serials, n.departures}
	decoding := slices.DeleteFunc(slices.Clone(n.running), func(s *sequence) bool { return !s.decodes() })
	room := v.cfg.Hybrid == nil && v.room(decoding)
	n.cfg.Scheduler.Schedule(v)
	if r, ok := n.kv.(*radix); ok {
		r.evictFor(r.needOf(n.running))
	}
	if n.fault == nil && n.gpu.pipeline == nil {
		v.keep(room)
	}
	n.restore()
	return it
}

// stashChunks enters the chunks in flight of prompts that go on into the radix cache, as SGLang does when it composes a
// batch.
func (n *Engine) stashChunks() {
	for _, it := range n.inFlight {
		for k := range it.shares {
			sh := &it.shares[k]
			s := sh.seq
			if s.unpredicted && n.cfg.Radix && sh.chunk && !sh.emits && !sh.stashed && !s.ended &&
				sh.serial == s.serial && slices.Contains(n.running, s) {
				sh.stashed = true
				n.kv.done(s, sh.upTo, false)
			}
		}
	}
}

// wrong records a violation of the policy's rules.
func (v view) wrong(format string, args ...any) {
	if v.fault == nil {
		v.fault = fmt.Errorf("at %v: policy %T: %w", v.at, v.cfg.Scheduler, fmt.Errorf(format, args...))
	}
}

// handle is the handle of s: its request's ID.
func handle(s *sequence) sched.Seq { return sched.Seq(s.rec.Request.ID) }

// seq is the sequence of a handle, which has been admitted.
func (v view) seq(i sched.Seq) *sequence {
	if s := v.byID[int64(i)]; s != nil && s.serial > 0 {
		return s
	}
	v.wrong("there is no sequence %d", i)
	return &sequence{}
}

// runs is the sequence of a handle, which must run.
func (v view) runs(i sched.Seq) *sequence {
	s := v.seq(i)
	if !slices.Contains(v.running, s) {
		v.wrong("sequence %d does not run", i)
	}
	return s
}

func (v view) Now() clock.Time { return v.at }
func (v view) Seats() int      { return v.cfg.MaxNumSeqs - len(v.running) }
func (v view) Blocked(why sched.Cause) {
	if v.WaitingLen() == 0 {
		return
	}
	v.blocked = why
}

func (v view) Booked() int {
	sum := 0
	for _, s := range v.running {
		sum += max(0, v.BlocksFor(s.booked)-v.kv.holds(s)-s.windowed)
	}
	return sum
}

func (v view) Remaining(limit int32) int64 {
	sum := int64(0)
	for _, s := range v.running {
		if !s.fullyScheduled() {
			sum += int64(min(s.declared-s.scheduled, limit))
		}
	}
	return sum
}

func (v view) Next(i sched.Seq) sched.Seq {
	at := v.seq(i).serial
	return v.first(func(s *sequence) bool { return s.serial > at })
}

func (v view) NextPrefill(i sched.Seq) sched.Seq {
	at := int64(0)
	if i != sched.None {
		at = v.seq(i).serial
	}
	return v.first(func(s *sequence) bool { return s.serial > at && s.inPrefill() })
}

func (v view) Prev(i sched.Seq) sched.Seq {
	at := v.seq(i).serial
	return v.last(func(s *sequence) bool { return s.serial < at })
}

func (v view) Missing(i sched.Seq) int32           { return v.runs(i).missing() }
func (v view) Given(i sched.Seq) int32             { return v.runs(i).given }
func (v view) Progress(i sched.Seq) sched.Progress { return v.runs(i).progress() }
func (v view) Urgency(i sched.Seq) sched.Urgency   { return v.rank(v.runs(i)) }
func (v view) Book(i sched.Seq, tokens int32)      { v.runs(i).booked = tokens }

func (v view) DecodeAll() sched.Seq {
	if (v.cfg.Speculative.On() || v.cfg.Hybrid != nil) && v.Decoding() > 0 {
		return v.First()
	}
	prefill := v.NextPrefill(sched.None)
	var decodes []*sequence
	for _, s := range v.running {
		if !s.decodes() {
			continue
		}
		if prefill != sched.None && s.serial > v.seq(prefill).serial {
			return v.First()
		}
		decodes = append(decodes, s)
	}
	if !v.together(decodes) {
		return v.First()
	}
	return prefill
}

func (v view) DecodeFirst() bool {
	if (v.cfg.Speculative.On() || v.cfg.Hybrid != nil) && v.Decoding() > 0 {
		return false
	}
	var decodes []*sequence
	for _, s := range v.running {
		if s.decodes() {
			decodes = append(decodes, s)
		}
	}
	return v.together(decodes)
}

// room reports whether each sequence of the list can have one token.
func (v view) room(list []*sequence) bool {
	need := 0
	for _, s := range list {
		blocks, more := v.need(s, 1)
		if !v.kv.grows(s, blocks) {
			return false
		}
		need += more
	}
	return need <= v.FreeBlocks() && len(list) <= int(v.budget)
}

// together gives each sequence of the list one token, if there is room for all.
func (v view) together(list []*sequence) bool {
	if slices.ContainsFunc(list, func(s *sequence) bool { return s.given > 0 }) {
		v.wrong("decoding sequences are given a token twice")
		return true
	}
	if !v.room(list) {
		if r, ok := v.kv.(*radix); ok && len(list) <= int(v.budget) {
			r.tree.Evict(v.cfg.UsableBlocks()) // SGLang evicts before it finds that this is not enough
		}
		return false
	}
	for _, s := range list {
		v.grow(s, 1)
		v.give(s, 1)
	}
	return true
}

func (v view) Grow(i sched.Seq, tokens int32) bool { return v.grow(v.runs(i), tokens) }

func (v view) Give(i sched.Seq, tokens int32) {
	s := v.runs(i)
	_, pages := v.need(s, tokens)
	switch {
	case tokens < 1 || tokens > s.missing() || tokens > v.Budget():
		v.wrong("request %d is given %d tokens, where it misses %d and %d are left", s.rec.Request.ID, tokens,
			s.missing(), v.Budget())
	case s.given > 0:
		v.wrong("request %d is given tokens twice", s.rec.Request.ID)
	case pages > 0:
		v.wrong("request %d is given %d tokens without blocks", s.rec.Request.ID, tokens)
	default:
		v.give(s, tokens)
	}
}

// give schedules tokens of a sequence that has the blocks for them. Blocks that they fill enter the prefix cache at
// once, as far as their tokens have been delivered.
func (v view) give(s *sequence, tokens int32) {
	s.given = tokens
	v.budget -= tokens + v.perRow
	v.kv.known(s, min(s.computed+tokens, s.prompt+s.delivered))
}

func (v view) Preempt(i sched.Seq)       { v.preempt(v.runs(i), true) }
func (v view) PreemptToTail(i sched.Seq) { v.preempt(v.runs(i), false) }

func (v view) preempt(s *sequence, head bool) {
	v.remote.store(s, min(int32(s.kv.entered)*v.cfg.BlockSize, s.computed))
	if s.unpredicted {
		v.dropInFlight(s)
	}
	s.computed, s.produces, s.drafts, s.padding, s.unseen, s.rejected = 0, false, 0, 0, 0, 0
	v.takeOut(s, head)
}

func (v view) SwapOut(i sched.Seq) bool {
	s := v.runs(i)
	blocks := v.BlocksFor(s.computed)
	if s.fullyScheduled() || s.computed == 0 || v.hosted+blocks > v.cfg.HostBlocks {
		return false
	}
	s.hosted = blocks
	v.hosted += blocks
	v.changes.moved += blocks
	v.changes.swapped = append(v.changes.swapped, s.rec.Request.ID)
	v.takeOut(s, true)
	return true
}

// takeOut moves s from the running batch, and from the iteration that is composed, to the queue.
func (v view) takeOut(s *sequence, head bool) {
	v.preempts = true
	if s.given > 0 {
		v.budget += s.given + v.perRow
	}
	s.given, s.decoding = 0, false
	v.leaveRunning(s, false)
	s.rec.Preemptions++
	v.changes.preempted = append(v.changes.preempted, s.rec.Request.ID)
	v.obs.Preempted(v.at)
	if s.fullyScheduled() {
		v.finishing = append(v.finishing, s)
		return
	}
	if !head {
		s.returned = int64(v.at)
	}
	v.enqueue(s, head)
}

// dropInFlight drops the tokens of s, which is retracted, that are in flight. They are produced again.
func (n *Engine) dropInFlight(s *sequence) {
	n.drop(s)
	for _, it := range n.inFlight {
		for k := range it.shares {
			if sh := &it.shares[k]; sh.seq == s && sh.emits && !sh.dropped {
				sh.dropped = true
				s.scheduled -= sh.produces
			}
		}
	}
}

func (v view) Waiting(i int) (sched.Waiting, bool) {
	if i > 0 && v.cfg.Order != nil {
		v.wrong("looks beyond the head of an ordered queue")
	}
	s := v.place(i)
	if s == nil {
		return sched.Waiting{}, false
	}
	w := v.describe(s)
	w.Grouped = v.cfg.Hybrid != nil
	if v.isLoaded(s) {
		w.Computed, w.Held = s.computed, v.kv.holds(s)+s.windowed
		w.Padding = padding(&v.cfg, w.Known, w.Known-w.Computed)
		return w, true
	}
	if v.cfg.PrefixCaching && s.hosted == 0 {
		most := s.known() - 1
		w.Cached, w.Held = v.kv.lookup(s, most)
		answers := slices.ContainsFunc(v.running, func(s *sequence) bool { return s.rec.Request.SharesOutput() })
		w.Live = w.Cached < most/v.cfg.BlockSize*v.cfg.BlockSize && answers && s.rec.Request.SharesPrompt()
	}
	w.Loadable, _, _, _ = v.loadable(s, w.Cached)
	w.Padding = padding(&v.cfg, w.Known, w.Known-max(w.Cached, w.Computed))
	return w, true
}

func (v view) Peek(i int) (sched.Progress, bool) {
	s := v.place(i)
	if i > 0 && v.cfg.Order != nil {
		v.wrong("looks beyond the head of an ordered queue")
	}
	if s == nil {
		return sched.Progress{}, false
	}
	p := s.progress()
	p.InFlight = v.computes(s)
	return p, true
}

// computes reports whether an iteration in flight on a pipeline computes for s.
func (n *Engine) computes(s *sequence) bool {
	return n.gpu.pipeline != nil && slices.ContainsFunc(n.inFlight, func(it *iteration) bool {
		return slices.ContainsFunc(it.shares, func(sh share) bool { return sh.seq == s })
	})
}

func (v view) Skip() {
	if s := v.place(0); s != nil {
		s.passed, s.skipped = true, true
	}
}

func (v view) Beginning(i int, tokens int32) (key uint64, ok bool) {
	if v.place(i) == nil || v.place(i).known() < tokens {
		return 0, false
	}
	h := fnv.New64a()
	for _, t := range Tokens(&v.place(i).rec.Request, tokens) {
		fmt.Fprint(h, t)
	}
	return h.Sum64(), true
}

func (v view) Path(i int, to []int32) []int32 {
	s := v.place(i)
	if s == nil {
		return to
	}
	return append(to, v.kv.path(s, s.known())...)
}

func (v view) Admit(i int, tokens int32) sched.Seq {
	if v.place(i) == nil || i > 0 && v.cfg.Order != nil || v.Seats() == 0 {
		v.wrong("admits request %d of %d with %d seats", i, v.WaitingLen(), v.Seats())
		return sched.None
	}
	s := v.place(i)
	if s.rec.Scheduled == clock.Never {
		v.accounts.admit(s)
	}
	wasLoaded := v.isLoaded(s)
	if wasLoaded {
		v.loaded = without(v.loaded, s)
	}
	v.waiting, s.skipped = without(v.waiting, s), false
	v.running = append(v.running, s)
	v.serials++
	s.serial = v.serials
	switch {
	case s.hosted > 0:
		v.hosted -= s.hosted
		v.changes.moved += s.hosted
		s.hosted, s.found, s.loaded = 0, 0, s.computed
	case !wasLoaded:
		s.lostFrom, s.lostTo = v.kv.lost(s, s.known()-1)
		s.found, s.loaded = v.kv.admit(s, s.known()-1), 0
		s.computed = s.found
	}
	if s.rec.Preemptions > 0 {
		s.rec.LaterCachedTokens += max(0, s.found+s.loaded-s.highest)
	}
	s.highest = max(s.highest, s.found+s.loaded)
	s.reserved, s.inFlight = 0, 0
	if wasLoaded {
		s.reserved = v.kv.holds(s)
	}
	if s.rec.Scheduled == clock.Never {
		s.rec.Scheduled = v.at
		s.rec.PassedOver = s.rec.Queued <= v.gpu.lastComposed
		s.rec.CachedTokens = s.found
		if wasLoaded && s.pulled {
			s.rec.PulledTokens = s.loaded
		} else {
			s.rec.LoadedTokens = s.loaded
		}
	}
	if missing := s.known() - s.computed; tokens > missing {
		s.padding = min(padding(&v.cfg, s.known(), missing), s.computed+tokens)
	}
	if !v.growAdmitted(s, tokens) {
		v.wrong("admits request %d with %d tokens, for which there are not enough blocks", s.rec.Request.ID, tokens)
	}
	if tokens < 1 || tokens > s.missing() || tokens > v.Budget() {
		v.wrong("request %d is given %d tokens, where it misses %d and %d are left", s.rec.Request.ID, tokens,
			s.missing(), v.Budget())
		return handle(s)
	}
	v.give(s, tokens)
	return handle(s)
}

func (v view) Reserve(i sched.Seq, tokens int32) bool {
	s := v.runs(i)
	blocks := v.blocksFor(tokens)
	if blocks <= v.kv.holds(s) {
		return true
	}
	ok := v.reserve(s, blocks)
	if ok {
		s.reserved = blocks
	}
	return ok
}

// reserve gives s blocks up to a number in all, which is more than it holds.
func (v view) reserve(s *sequence, blocks int) bool {
	if !v.cfg.Contiguous {
		return v.hold(s, blocks)
	}
	if s.serial <= v.before.serials {
		v.wrong("reserves for request %d in a contiguous pool after its admission", s.rec.Request.ID)
	}
	v.kv.release(s, false)
	if !v.hold(s, blocks) {
		return v.hold(s, v.blocksFor(s.computed+s.given)) && false
	}
	return true
}
