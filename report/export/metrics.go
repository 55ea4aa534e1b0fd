package export

import (
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// MetricsInfo says what metrics are of.
type MetricsInfo struct {
	// Engines are the replicas. Their numbers, from 0, are the values of the label engine.
	Engines []EngineInfo
	// MaxModelLen is the longest context, in tokens.
	MaxModelLen int
	// Speculative adds the counters of speculative decoding.
	Speculative bool
	// NetworkIn and NetworkOut lie between clients and the servers, which measure without them.
	NetworkIn, NetworkOut clock.Duration
	// Lifecycle says that replicas start, fail and end; only then are their states and the paid GPU time exported.
	Lifecycle bool
	// End is the instant at which the run is stopped; 0 where it goes on until all requests have ended.
	End clock.Time
	// SGLang gives the totals of a server the names and buckets of SGLang. Exports have those of vLLM.
	SGLang bool
	// Release is the minor number of a release of vLLM 0.x, whose names the totals have; 0 is the newest.
	Release int
	// Speed is the number of simulated seconds per second of the clock of the readers; 0 means 1.
	Speed float64
}

// EngineInfo says what a replica is.
type EngineInfo struct {
	// Model is the value of the label model_name.
	Model string
	// UsableBlocks is the number of KV blocks, 0 for an unlimited pool, which has no usage.
	UsableBlocks int
	// BlockSize is the number of tokens in a block.
	BlockSize int
	// PrefixCaching says that prompts are looked up in a prefix cache; without it none are counted.
	PrefixCaching bool
	// Config is written as the labels of vllm:cache_config_info; all engines that have it have the same ones.
	Config map[string]string
	// Deployment is the pool, the value of the label deployment; GPUs is the number of GPUs of the replica.
	Deployment string
	GPUs       int
}

// Metrics keeps what a Prometheus server would have seen of the engines of a run, had it asked them at equal intervals.
// The interval grows with the run, so that there are at most 256 samples of a series, fewer with many replicas.
//
// It counts as vLLM does: a prompt when its first token comes; an answer's gaps by engine output; a request when
// it ends. Requests that the engine refuses are in none of its metrics, and those in the system when a run is
// over are in the gauges and token counts only.
type Metrics struct {
	event.Ignore
	info     MetricsInfo
	families [allHistograms]family
	step     clock.Duration
	most     int // slots
	slots    int
	engines  []engine
	last     clock.Time // of the last event
	totals   bool       // there is one slot for all time, and counters never fall
}

var (
	_ event.StepObserver  = (*Metrics)(nil)
	_ event.FleetObserver = (*Metrics)(nil)
)

const (
	shortestStep = clock.Second / 4
	mostSlots    = 256
	mostOfAll    = 2048 // slots of all replicas, as long as each has
	leastSlots   = 32
)

// NewMetrics makes metrics for one run.
func NewMetrics(info MetricsInfo) *Metrics {
	m := &Metrics{
		info: info, families: histogramFamilies(info.MaxModelLen), step: shortestStep,
		most:    max(leastSlots, min(mostSlots, mostOfAll/max(1, len(info.Engines)))),
		engines: make([]engine, len(info.Engines)),
	}
	for i := range m.engines {
		m.engines[i].number, m.engines[i].gpus = i, info.Engines[i].GPUs
	}
	return m
}

// engine is the metrics of a replica, what came in each slot of time.
type engine struct {
	end          clock.Time // of the last iteration that was reported
	number, gpus int
	slots        []slot
	life         life
	owed         int64 // tokens that were dropped and are not yet taken off, in totals
	recent       recentBatches
}

// slot has the events in an interval of time, including its end.
type slot struct {
	gauges     [allGauges]reading
	counters   [allCounters]int64
	buckets    [allHistograms]tally
	stateTimes stateTimes
}

// reading is the last value of a gauge in a slot.
type reading struct {
	at    clock.Time
	value float64
	set   bool
}

// read takes a value, unless there is a later one.
func (r *reading) read(at clock.Time, value float64) {
	if !r.set || at >= r.at {
		*r = reading{at, value, true}
	}
}

// tally has the counts of a histogram by bucket; the last bucket has no bound. nil means no counts.
type tally struct {
	counts []uint64
	n      uint64
	sum    clock.Uint128
}

// observe counts a value, which is not negative, so many times.
func (t *tally) observe(f *family, v int64, weight uint64) {
	if weight == 0 {
		return
	}
	if t.counts == nil {
		t.counts = make([]uint64, len(f.bounds)+1)
	}
	i, _ := slices.BinarySearch(f.bounds, v)
	t.counts[i] += weight
	t.n += weight
	t.sum = t.sum.Add(clock.Mul64(uint64(v), weight))
}

func (s *slot) merge(later *slot) {
	for i := range later.gauges {
		if later.gauges[i].set {
			s.gauges[i] = later.gauges[i]
		}
	}
	for i, n := range later.counters {
		s.counters[i] += n
	}
	for i := range later.buckets {
		s.buckets[i].merge(&later.buckets[i])
	}
	s.stateTimes.merge(&later.stateTimes)
}

func (t *tally) merge(u *tally) {
	if u.counts == nil {
		return
	}
	if t.counts == nil {
		t.counts = make([]uint64, len(u.counts))
	}
	for i, n := range u.counts {
		t.counts[i] += n
	}
	t.n += u.n
	t.sum = t.sum.Add(u.sum)
}

// index is the slot that an instant ends in.
func (m *Metrics) index(at clock.Time) int { return int((max(at, 1) - 1) / clock.Time(m.step)) }

func (m *Metrics) at(replica int, at clock.Time) *slot {
	i := m.index(at)
	for ; i >= m.most; i = m.index(at) {
		m.halve()
	}
	m.slots = max(m.slots, i+1)
	m.last = max(m.last, at)
	e := &m.engines[replica]
	for len(e.slots) <= i {
		e.slots = append(e.slots, slot{})
	}
	return &e.slots[i]
}

// halve doubles the interval.
func (m *Metrics) halve() {
	for k := range m.engines {
		e := &m.engines[k]
		for i := range e.slots {
			if i%2 == 1 {
				e.slots[i/2].merge(&e.slots[i])
			} else if i > 0 {
				e.slots[i/2] = e.slots[i]
			}
		}
		half := (len(e.slots) + 1) / 2
		clear(e.slots[half:])
		e.slots = e.slots[:half]
	}
	m.slots = (m.slots + 1) / 2
	m.step *= 2
}

// OfReplica implements [event.FleetObserver].
func (m *Metrics) OfReplica(i int) event.Observer { return engineMetrics{export: m, replica: i} }

// engineMetrics observes a replica.
type engineMetrics atReplica[*Metrics]

func (o engineMetrics) at(t clock.Time) *slot { return o.export.at(o.replica, t) }

// Levels reads the gauges of requests.
func (o engineMetrics) Levels(at clock.Time, l *event.Levels) {
	s := o.at(at)
	s.gauges[runningRequests].read(at, float64(l.Running))
	s.gauges[waitingRequests].read(at, float64(l.Waiting))
	if l.Running == 0 { // no blocks are held
		o.export.engines[o.replica].recent.idle(int64(at))
		// An iteration without effect may end later: it was composed before the last end was known.
		at = max(at, o.export.engines[o.replica].end)
		o.at(at).gauges[kvUsage].read(at, 0)
	}
}

// Step counts what an iteration produces. It is asked for singly because a gauge is read between iterations that
// otherwise run as one.
func (m *Metrics) Step(step *event.Step) {
	s := step.Span
	end := s.End(1)
	m.works(s.Replica, s.Start, end)
	m.engines[s.Replica].end = end
	slot := m.at(s.Replica, end)
	slot.counters[generationTokens] += m.engines[s.Replica].less(int64(s.Output()))
	if s.Drafts > 0 {
		slot.counters[draftsMade] += int64(s.Decodes)
		slot.counters[draftTokens] += int64(s.Drafts)
		slot.counters[draftsAccepted] += int64(s.Accepted)
	}
	if s.Decodes > 0 {
		for _, h := range [...]int{interTokenLatency, timePerOutputToken} {
			slot.buckets[h].observe(&m.families[h], s.First+int64(s.Wait)*clock.FemtosPerPico, uint64(s.Gaps))
		}
	}
	if n := m.info.Engines[s.Replica].UsableBlocks; n > 0 {
		slot.gauges[kvUsage].read(end, float64(s.UsedBlocks)/float64(n))
	}
}

// Gap counts gaps that no span carries.
func (o engineMetrics) Gap(at clock.Time, gap clock.Duration, n int) {
	const longest = clock.Duration(1<<63-1) / clock.FemtosPerPico
	for _, h := range [...]int{interTokenLatency, timePerOutputToken} {
		o.at(at).buckets[h].observe(&o.export.families[h], int64(min(gap, longest))*clock.FemtosPerPico, uint64(n))
	}
}

func (o engineMetrics) Preempted(at clock.Time) {
	o.at(at).counters[preemptions]++
}

// Dropped takes tokens back that were not delivered.
func (o engineMetrics) Dropped(at clock.Time, tokens int) {
	if o.export.totals {
		o.export.engines[o.replica].owed += int64(tokens)
		return
	}
	o.at(at).counters[generationTokens] -= int64(tokens)
}

// Finished counts a request.
func (m *Metrics) Finished(rec *event.Record) {
	if rec.Replica < 0 || rec.Refusal != event.NotRefused {
		return
	}
	if at := rec.Scheduled; at != clock.Never {
		m.Admitted(rec.Replica, at, rec.Request.InputTokens, rec.CachedTokens)
	}
	if at := rec.FirstToken; at != clock.Never {
		seen := at
		if rec.ClientFirst != clock.Never {
			seen = rec.ClientFirst.Add(-m.info.NetworkOut)
		}
		m.Answered(rec.Replica, seen, m.arrival(&rec.Request), rec.Request.InputTokens)
	}
	m.ended(rec, successStop)
}

// arrival is when a request arrives at the server.
func (m *Metrics) arrival(r *workload.Request) clock.Time { return r.Arrival.Add(m.info.NetworkIn) }

// Admitted counts the first admission of a request with a prompt of input tokens, of which the prefix cache has some.
// [Metrics.Finished] calls it; a server calls it, [Metrics.Answered] and [Metrics.Ended] as they happen.
func (m *Metrics) Admitted(replica int, at clock.Time, input, cached int32) {
	if m.info.Engines[replica].PrefixCaching {
		s := m.at(replica, at)
		s.counters[prefixQueries] += int64(input)
		s.counters[prefixHits] += int64(cached)
	}
}

// Answered counts the first token of a request that arrived at the server at an instant.
func (m *Metrics) Answered(replica int, at, arrived clock.Time, input int32) {
	s := m.at(replica, at)
	s.counters[promptTokens] += int64(input)
	m.between(s, timeToFirstToken, arrived, at)
}

// ended counts what is known when a request has ended for the server. A complete output counts under the reason whole.
func (m *Metrics) ended(rec *event.Record, whole int) {
	replica, arrived := rec.Replica, m.arrival(&rec.Request)
	end, reason := rec.Released, successAbort
	if rec.LastToken != clock.Never && rec.Tokens >= rec.Request.OutputTokens {
		end, reason = rec.LastToken, whole
		if rec.ClientLast != clock.Never {
			end = rec.ClientLast.Add(-m.info.NetworkOut)
		}
	}
	if end == clock.Never {
		return // it never came to the engine
	}
	s := m.at(replica, end)
	s.counters[reason]++
	m.between(s, requestLatency, arrived, end)
	m.between(s, queueTime, rec.Queued, rec.Scheduled)
	m.between(s, prefillTime, rec.Scheduled, rec.FirstToken)
	m.between(s, decodeTime, rec.FirstToken, rec.LastToken)
	m.between(s, inferenceTime, rec.Scheduled, rec.LastToken)
	if rec.FirstToken != clock.Never && rec.LastToken != clock.Never {
		each := int64(0) // vLLM counts an answer of one token as 0
		if rec.Tokens > 1 {
			each = int64(rec.LastToken-rec.FirstToken) / int64(rec.Tokens-1)
		}
		m.observe(s, requestTimePerOutputToken, each)
	}
	m.observe(s, requestPromptTokens, int64(rec.Request.InputTokens))
	m.observe(s, requestGenerationTokens, int64(rec.Tokens))
	if m.totals {
		m.endedTotals(s, rec, reason)
	}
}

func (m *Metrics) observe(s *slot, h int, v int64) { s.buckets[h].observe(&m.families[h], v, 1) }

// between counts a time between two instants that were reached.
func (m *Metrics) between(s *slot, h int, from, to clock.Time) {
	if from != clock.Never && to != clock.Never {
		m.observe(s, h, max(0, int64(to-from)))
	}
}

// limited reports whether some KV pool has an end.
func (m *Metrics) limited() bool {
	return slices.ContainsFunc(m.info.Engines, func(e EngineInfo) bool { return e.UsableBlocks > 0 })
}
