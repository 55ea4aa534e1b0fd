package export

import (
	"math"
	"slices"
	"strconv"

	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// NewTotals makes metrics that keep only the totals from the start up to now, as a server has them. No counter of them
// ever falls. They get events like other Metrics, but for [Metrics.Finished]: a server calls [Metrics.Admitted],
// [Metrics.Answered], [Metrics.Ended] and [Metrics.Iteration] when it happens.
func NewTotals(info MetricsInfo) *Metrics {
	m := NewMetrics(info)
	m.totals, m.step, m.most = true, math.MaxInt64, 1
	if info.SGLang {
		m.families = sglangHistograms()
	}
	for i := range m.engines {
		m.at(i, 0)
	}
	return m
}

// less takes tokens that were dropped off a number that is to be counted.
func (e *engine) less(n int64) int64 {
	off := min(e.owed, n)
	e.owed -= off
	return n - off
}

// Ended counts a request that has ended. Limited means that its output ended at a limit of its length and not with an
// end-of-sequence token.
func (m *Metrics) Ended(rec *event.Record, limited bool) {
	if rec.Replica < 0 || rec.Refusal != event.NotRefused {
		return
	}
	whole := successStop
	if limited {
		whole = successLength
	}
	m.ended(rec, whole)
}

// endedTotals counts what only servers have.
func (m *Metrics) endedTotals(s *slot, rec *event.Record, reason int) {
	input := int64(rec.Request.InputTokens)
	m.observe(s, prefillComputed, max(0, input-int64(rec.CachedTokens)))
	m.observe(s, retractions, int64(rec.Preemptions))
	if reason == successAbort {
		s.counters[abortedRequests]++
		return
	}
	s.counters[endedRequests]++
	s.counters[endedPrompts] += input
	s.counters[endedGeneration] += int64(rec.Tokens)
	s.counters[endedCached] += int64(rec.CachedTokens)
}

// Params counts the parameters of a request that has ended: n, the largest number of output tokens of its n outputs,
// and max_tokens, 0 if it was not given.
func (m *Metrics) Params(replica, n, most, maxTokens int) {
	s := m.at(replica, 0)
	m.observe(s, paramsN, int64(n))
	m.observe(s, mostTokens, int64(most))
	if maxTokens > 0 {
		m.observe(s, paramsMaxTokens, int64(maxTokens))
	}
}

// Iteration counts the tokens of an iteration in which prompts of so many tokens were completed; cached of them were
// found in the prefix cache by requests that it admits.
func (m *Metrics) Iteration(s *event.Span, prompts, cached int64) {
	e := &m.engines[s.Replica]
	if n := int64(s.Output()); n > 0 {
		m.observe(m.at(s.Replica, s.End(1)), iterationTokens, prompts+n)
	}
	e.recent.cached += cached
	e.recent.batch(int64(s.End(1)), int64(s.Output()), int64(s.PrefillTokens+s.RecomputedTokens))
}

// Totals is a copy of the totals of one replica.
type Totals struct {
	replica int
	slot    slot
	state   event.State
	recent  recentBatches
	shown   [gpuModes]clock.Duration
}

// Copy copies the totals of a replica at an instant. A copy may be copied into again.
func (m *Metrics) Copy(replica int, at clock.Time, into *Totals) {
	if m.info.Lifecycle {
		m.liveUntil(replica, at)
	}
	e := &m.engines[replica]
	was, shown := into.slot.buckets, into.shown
	into.replica, into.slot, into.state, into.recent = replica, e.slots[0], e.life.state, e.recent
	for h := range into.slot.buckets {
		if counts := into.slot.buckets[h].counts; counts != nil {
			into.slot.buckets[h].counts = append(was[h].counts[:0], counts...)
		} else {
			into.slot.buckets[h].counts = was[h].counts[:0]
		}
	}
	for i, d := range into.slot.stateTimes.modes { // an iteration in flight is busy ahead of time
		into.shown[i] = max(shown[i], d)
	}
}

// Label is a label of a series.
type Label struct{ Name, Value string }

// Sample is the value of a series.
type Sample struct {
	Name, Help string
	// Type is gauge, counter or histogram.
	Type   string
	Labels []Label
	// Value of a gauge or a counter, or the sum of a histogram.
	Value float64
	// Count, Bounds and Counts describe a histogram: Counts has the number of values up to each bound.
	Count  uint64
	Bounds []float64
	Counts []uint64
}

// Samples calls f with each series of the given copies. The series of deployments are left out unless all replicas are
// given.
func (m *Metrics) Samples(totals []Totals, f func(*Sample)) {
	w := sampler{m, f}
	for i := range totals {
		w.replica(&totals[i])
	}
	if m.info.Lifecycle && len(totals) == len(m.engines) {
		w.deployments(totals)
	}
}

type sampler struct {
	m *Metrics
	f func(*Sample)
}

func (w sampler) replica(t *Totals) {
	m, info := w.m, &w.m.info.Engines[t.replica]
	labels := []Label{{"engine", strconv.Itoa(t.replica)}, {"model_name", info.Model}}
	scheduler := labels
	if m.info.SGLang {
		scheduler = append(slices.Clip(labels), Label{"engine_type", "unified"}, Label{"pp_rank", "0"},
			Label{"tp_rank", "0"})
	}
	for g := range allGauges {
		if f := m.gauge(g); f.name != "" && (g != kvUsage || info.UsableBlocks > 0) {
			w.value(f, m.gaugeValue(t, g), scheduler...)
		}
	}
	for c := range allCounters {
		f := m.counter(c)
		if f.name == "" || c >= draftsMade && c <= draftsAccepted && !m.info.Speculative {
			continue
		}
		own := labels
		if c == preemptions {
			own = scheduler
		}
		if f.reason != "" {
			own = append(slices.Clip(labels), Label{"finished_reason", f.reason})
		}
		w.value(&f.family, float64(t.slot.counters[c]), own...)
	}
	for h := range m.families {
		if m.writes(h) {
			own := labels
			if h == queueTime {
				own = scheduler
			}
			w.histogram(&m.families[h], &t.slot.buckets[h], own)
		}
	}
	if len(info.Config) > 0 && !m.info.SGLang {
		config := []Label{{"engine", strconv.Itoa(t.replica)}}
		for _, key := range configKeys(info.Config) {
			config = append(config, Label{key, info.Config[key]})
		}
		w.value(&configFamily, 1, config...)
	}
	if m.info.Lifecycle {
		w.value(&healthyFamily, flag(t.state == event.Ready),
			append(slices.Clip(labels), Label{"server", "replica " + strconv.Itoa(t.replica)})...)
	}
	for s := range event.States {
		w.value(&replicaStateFamily, flag(t.state == s), Label{"engine", strconv.Itoa(t.replica)},
			Label{"model_name", info.Model}, Label{"state", s.String()})
	}
}

var replicaStateFamily = family{name: "clifftop_replica_state",
	help: "1 for the state of the replica, 0 for the others."}

// flag is 1 for true.
func flag(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (m *Metrics) gauge(g int) *family {
	if m.info.SGLang {
		return &sglangGauges[g]
	}
	if g < gauges {
		return &gaugeFamilies[g]
	}
	return &family{}
}

func (m *Metrics) counter(c int) *labelled {
	if m.info.SGLang {
		return &sglangCounters[c]
	}
	if c < counters {
		return &counterFamilies[c]
	}
	return &labelled{}
}

// writes reports whether the release has a histogram. vLLM 0.12 hides time_per_output_token_seconds.
func (m *Metrics) writes(h int) bool {
	return m.families[h].name != "" && (h != timePerOutputToken || m.info.Release > 0 && m.info.Release < 12)
}

func (m *Metrics) gaugeValue(t *Totals, g int) float64 {
	info := &m.info.Engines[t.replica]
	switch g {
	case usedTokens:
		return math.Round(t.slot.gauges[kvUsage].value * float64(info.UsableBlocks*info.BlockSize))
	case poolTokens:
		return float64(info.UsableBlocks * info.BlockSize)
	case throughput:
		return t.recent.rate
	case hitRate:
		return t.recent.hit
	}
	return t.slot.gauges[g].value
}

// value writes a gauge or a counter.
func (w sampler) value(f *family, v float64, labels ...Label) {
	name := f.name
	if f.kind == counter {
		name += "_total"
	}
	w.f(&Sample{Name: name, Help: f.help, Type: f.kind.String(), Labels: labels, Value: v})
}

func (w sampler) histogram(f *family, t *tally, labels []Label) {
	s := &Sample{Name: f.name, Help: w.m.help(f), Type: f.kind.String(), Labels: labels,
		Value: t.sum.Float64() / f.unit,
		Count: t.n, Bounds: make([]float64, len(f.bounds)), Counts: make([]uint64, len(f.bounds))}
	var sum uint64
	for i, b := range f.bounds {
		if i < len(t.counts) {
			sum += t.counts[i]
		}
		s.Bounds[i], s.Counts[i] = float64(b)/f.unit, sum
	}
	w.f(s)
}

// help is the help of a histogram. Times are simulated, which matters if they do not pass like those of the reader.
func (m *Metrics) help(f *family) string {
	if f.unit == 1 || m.info.Speed == 0 || m.info.Speed == 1 {
		return f.help
	}
	return f.help + " Simulated time, which passes " + strconv.FormatFloat(m.info.Speed, 'g', -1, 64) +
		" times as fast as the clock."
}

func (w sampler) deployments(totals []Totals) {
	for _, name := range w.m.deployments() {
		var states [event.States]float64
		var seconds [gpuModes]float64
		for i := range totals {
			t := &totals[i]
			if info := &w.m.info.Engines[t.replica]; info.Deployment == name {
				states[t.state]++
				for mode, d := range t.shown {
					seconds[mode] += d.Seconds() * float64(info.GPUs)
				}
			}
		}
		labels := []Label{{"deployment", name}, {"namespace", namespace}}
		for i := range replicaFamilies {
			f, n := &replicaFamilies[i], 0.0
			for _, s := range f.states {
				n += states[s]
			}
			w.value(&f.family, n, labels...)
		}
		for s := range event.States {
			w.value(&stateFamily, states[s], append(slices.Clip(labels), Label{"state", s.String()})...)
		}
		for mode, what := range gpuModeNames {
			w.value(&gpuFamily, seconds[mode], append(slices.Clip(labels), Label{"mode", what})...)
		}
	}
}
