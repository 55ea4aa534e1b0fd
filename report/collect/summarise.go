package collect

import (
	"fmt"
	"math"
	"slices"

	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/report/stats"
	"clifftop/sim/clock"
)

// runEnd is the end of what was seen.
func (c *Collector) runEnd() clock.Time {
	if !c.partial {
		return max(c.now, c.opts.End)
	}
	return c.now
}

// settle accounts for the levels until the end of what was seen.
func (c *Collector) settle() {
	end := c.runEnd()
	c.settleAt(end)
	c.align(end)
}

func (c *Collector) settleAt(end clock.Time) {
	c.occupancy.settle(&c.line, end)
	c.fillLinks(&c.line, end)
	c.fillHeld(end)
}

// Summary is the result so far. It may be asked for again later.
func (c *Collector) Summary() *report.Summary {
	c.settle()
	return summariser{c}.summary()
}

// Peek is the result of a run that has come to an instant and goes on.
func Peek(c *Collector, at clock.Time) *report.Summary {
	seen := c.now // iterations in flight may end later
	c.now = at
	defer func() { c.now = seen }()
	return c.Summary()
}

func (c summariser) summary() *report.Summary {
	s := &report.Summary{Schema: report.SummarySchema, Partial: c.partial,
		Warnings: append([]report.Warning{}, c.warnings...)}
	w := c.window(s)
	sum, detail := c.line.total(w.from, w.to)
	c.counts(s)
	c.rates(s, &w, &sum)
	c.latencies(s, &w, &sum, detail)
	judgeLength(s, &w)
	c.goodput(s, &w, &sum, detail)
	c.concurrency(s, detail)
	c.system(s, &w, &sum, detail)
	s.Energy = c.energy(s, &w, &sum, c.units(&w, &sum, detail))
	if price := c.hourlyPrice(&w); price > 0 {
		s.Cost = &report.Cost{USDPerHour: stats.Finite(price)}
		s.Cost.USDPerMillionOutputAtLoad = report.CostPerMillion(price, s.Throughput.OutputTokensPerS)
		s.Cost.USDPerMillionOutputGood = report.CostPerMillion(price, s.Goodput.OutputTokensPerS)
	}
	s.Stages = c.stageResults()
	s.Classes = c.classResults(&w)
	s.SLOHours, s.Hours = c.hoursMet(&w), c.hours(&w)
	s.Traffic = c.minutes.traffic()
	if c.classes.ownSLOs(&c.opts) {
		s.JudgeByClasses()
	}
	s.Replicas, s.Imbalance = c.replicaResults(&w)
	c.warn(s, &w)
	c.warnOfOneReplica(s)
	c.batchMeans(s, &w)
	return s
}

func (c summariser) counts(s *report.Summary) {
	t := &c.totals
	s.Requests = t.requests()
	all := c.line.whole()
	s.Tokens = report.Tokens{
		Input: t.input, CachedInput: t.cached, Output: all.output, OutputSuccessful: t.successful,
		Recomputed: all.recomputed, Wasted: t.wasted + t.dropped,
	}
	if c.opts.SLO != nil {
		good := t.goodTokens
		s.Tokens.OutputGood = &good
	}
}

func (c summariser) rates(s *report.Summary, w *window, sum *bucket) {
	rate := func(n int64) *float64 { return stats.Ratio(float64(n), w.seconds()) }
	gpuS := w.seconds() * float64(c.opts.GPUs)
	if c.opts.Lifecycle {
		gpuS = c.gpuSecondsPaid(w, c.units(w, sum, nil))
	}
	s.Throughput = report.Throughput{
		OfferedRequestsPerS:        rate(sum.arrivals),
		RequestsPerS:               rate(sum.completions),
		OutputTokensPerS:           rate(sum.output),
		InputTokensPerS:            rate(sum.input),
		TotalTokensPerS:            rate(sum.input + sum.output),
		SuccessfulOutputTokensPerS: rate(max(sum.output-sum.failedOutput, 0)),
		OutputTokensPerSPerGPU:     stats.Ratio(float64(sum.output), gpuS),
	}
}

func (c summariser) latencies(s *report.Summary, w *window, sum *bucket, d *detail) {
	const (
		msPerPico  = 1e-9
		msPerFemto = 1e-12
	)
	failures := sum.arrivals - sum.samples
	columns := c.samplesOf(w).columns(w.start, w.until)
	measure := func(metric int, scale float64) (completed, all report.Distribution) {
		if c.folded {
			h := &d.sketch[metric]
			return report.DistributionOfHistogram(h, scale), withFailures(h, scale, failures)
		}
		if failures > 0 && (metric == ttft || metric == e2e) {
			all = report.DistributionOfValues(slices.Clone(columns[metric]), scale, failures)
			return report.DistributionOfValues(columns[metric], scale, 0), all
		}
		completed = report.DistributionOfValues(columns[metric], scale, 0)
		return completed, completed
	}
	l := &s.Latency
	l.TTFT, l.WithFailures.TTFT = measure(ttft, msPerPico)
	l.TPOT, _ = measure(tpot, msPerPico)
	l.ITL = report.DistributionOfHistogram(&d.itl, msPerFemto)
	l.E2E, l.WithFailures.E2E = measure(e2e, msPerPico)
	l.Queue, _ = measure(queue, msPerPico)
	l.WithFailures.Failures = failures
	speed := 1.0
	if c.folded {
		speed = 1 / sketchScale
	}
	if r := c.opts.Reading; r > 0 {
		streams := slices.Clone(columns[streamTPS])
		surplus, _ := measure(streamTPS, speed/r)
		s.PaceSurplus, columns[streamTPS] = &surplus, streams
	}
	s.StreamTPS, _ = measure(streamTPS, speed)
	s.E2ETPSUser, _ = measure(userTPS, speed)
	s.E2ETPSInFlight, _ = measure(flightTPS, speed)
}

// samplesOf are kept samples, among them all that arrived in the window.
func (c summariser) samplesOf(w *window) *samples {
	if w.kept != nil {
		return w.kept
	}
	return &c.kept
}

// goodput judges the requests that arrived in the window, and the run by them.
func (c summariser) goodput(s *report.Summary, w *window, sum *bucket, d *detail) {
	g := &s.Goodput
	if c.opts.SLO == nil && !c.classes.ownSLOs(&c.opts) {
		return
	}
	all := c.line.whole()
	g.SLO = c.opts.SLO
	g.Attainment = stats.Ratio(float64(sum.good), float64(sum.arrivals))
	g.RequestsPerS = stats.Ratio(float64(sum.good), w.seconds())
	g.OutputTokensPerS = stats.Ratio(float64(sum.goodTokens), w.seconds())
	if v := s.Throughput.OutputTokensPerS; v != nil && g.Attainment != nil {
		g.ProductOutputTokensPerS = stats.Finite(*v * *g.Attainment)
	}
	if g.Attainment != nil {
		g.AnyBadOf10 = stats.Finite(report.AnyBad(1-*g.Attainment, 10))
	}
	if busy := c.totals.busy.Add(c.totals.further).Float64(); busy > 0 {
		const femtosPerS = 1e15
		wall := clock.Duration(c.runEnd()).Seconds() * femtosPerS * float64(c.opts.lines())
		if run := (window{to: len(c.line.buckets), end: c.runEnd()}); c.opts.Lifecycle {
			wall = lineSeconds(&run, c.units(&run, &all, nil)) * femtosPerS
		}
		g.GPUBusyFraction = stats.Ratio(c.totals.goodTime.Float64(), busy)
		g.GPUWallFraction = stats.Ratio(c.totals.goodTime.Float64(), wall)
	}
	g.WorkFraction = stats.Ratio(float64(c.totals.goodWork), float64(all.computed()))
	if sum.arrivals == 0 || c.opts.SLO == nil {
		return
	}
	g.Limits = c.limitResults(w, sum, d)
	g.Judge(s.Throughput.OutputTokensPerS)
}

// withFailures describes the sketch's values and as many infinite ones as there are failures.
func withFailures(h *stats.Histogram, scale float64, failures int64) report.Distribution {
	if failures == 0 || h.Count() == 0 {
		d := report.DistributionOfHistogram(h, scale)
		d.N += failures
		return d
	}
	d := report.Distribution{N: int64(h.Count()) + failures}
	quantile := func(q float64) *float64 { return stats.Finite(h.QuantileAmong(q, 0, failures) * scale) }
	d.P50, d.P90, d.P95, d.P99, d.P999 = quantile(.5), quantile(.9), quantile(.95), quantile(.99), quantile(.999)
	return d
}

func (c summariser) concurrency(s *report.Summary, d *detail) {
	level := func(l int) report.Level {
		h := &d.levels[l]
		if h.Count() == 0 {
			return report.Level{}
		}
		return report.Level{Mean: stats.Finite(h.Mean()), P95: stats.Finite(h.Level(.95)),
			P99: stats.Finite(h.Level(.99)), Max: stats.Finite(float64(h.Max()))}
	}
	s.Concurrency = report.Concurrency{
		InSystem: level(inSystem), Running: level(running), Decoding: level(decoding), QueueDepth: level(waiting),
	}
}

// system tells how the engines spent the window. Where a fleet's replicas are told apart, what holds requests up is the
// average over them, and the highest use of a KV pool that of any.
func (c summariser) system(s *report.Summary, w *window, sum *bucket, d *detail) {
	const femtosPerS = 1e15
	y := &s.System
	busyS := sum.busy.Float64() / femtosPerS
	units := c.units(w, sum, d)
	engineS := c.opts.engineSeconds(w, units)
	y.Iterations, y.Preemptions = sum.iterations, sum.preemptions
	y.BusyFraction = stats.Ratio(busyS, engineS)
	y.PrefixHitRate = stats.Ratio(float64(sum.cached), float64(sum.input))
	y.ErrorRate = stats.Ratio(float64(sum.failures), float64(sum.arrivals))
	if n := c.opts.UsableBlocks; n > 0 {
		y.KVBlocks = &n
		blockS := c.opts.blockSeconds(w, units)
		y.KVUsage.Mean = stats.Ratio(sum.blocks.Float64()/femtosPerS, blockS)
		y.KVUsage.ReservedMean = stats.Ratio(sum.empty.Float64()/femtosPerS, blockS)
		if w.end > w.start {
			y.KVUsage.Max = fullest(units)
			if !c.opts.Lifecycle {
				y.KVUsage.SD = c.kvSD(w)
			}
		}
	}
	gaps(y, units, w)
	y.GPUSeconds = c.gpuSeconds(w, units, d)
	if sum.drafted > 0 {
		y.Speculative = &report.Speculative{
			Drafted: sum.drafted, Accepted: sum.accepted,
			AcceptanceRate: stats.Ratio(float64(sum.accepted), float64(sum.drafted)),
			TokensPerStep:  stats.Ratio(float64(sum.decodes+sum.accepted-sum.discarded), float64(sum.decodes)),
		}
	}
	if d != nil {
		y.Offload = c.offload(engineS, sum, d.offload)
	}
	utilisation(y, units, w)
	y.Replicas = c.replicaCounts(w, sum, units)
	if c.opts.PipelineStages > 1 {
		y.PipelineStages = sum.stageTimes(engineS)
	}
}

// fullest is the highest use of any unit's KV pool.
func fullest(units []unit) *float64 {
	highest := 0.0
	for i := range units {
		u := &units[i]
		highest = max(highest, float64(u.sum.maxBlocks*int64(u.Replicas))/float64(u.UsableBlocks))
	}
	return stats.Finite(highest)
}

// gaps tells what requests wait for, as an average over the units.
func gaps(y *report.System, units []unit, w *window) {
	var sum [2 * gapClasses]int64
	for i := range units {
		for k, v := range units[i].sum.gaps {
			sum[k] += v
		}
	}
	all := w.seconds() * float64(len(units))
	gap := func(class int) *float64 {
		return stats.Ratio(clock.Duration(sum[2*class]+sum[2*class+1]).Seconds(), all)
	}
	y.GapByCause = report.GapByCause{
		KV: gap(gapKV), TokenBudget: gap(gapBudget), Seats: gap(gapSeats),
		Policy: gap(gapPolicy), Idle: gap(gapIdle), Boundary: gap(gapBoundary),
	}
	var free, seats int64
	for class := gapNone + 1; class < gapClasses; class++ {
		seats += sum[2*class+1]
		if class == gapPolicy || class == gapIdle || class == gapBoundary {
			free += sum[2*class] + sum[2*class+1]
		}
	}
	y.GapFraction = stats.Ratio(clock.Duration(free).Seconds(), all)
	y.GapFractionSeed = stats.Ratio(clock.Duration(seats).Seconds(), all)
}

// utilisation tells how much of the hardware's peaks was used, where that is known of all units.
func utilisation(y *report.System, units []unit, w *window) {
	var flops, bytes, peakFLOPs, peakBytes float64
	for i := range units {
		u, k := &units[i].sum, units[i].Work
		if k == nil {
			return
		}
		tokens, produced := float64(u.computed()), float64(u.output+u.rejected())
		context := float64(u.context)
		engineS := units[i].engineSeconds(w, units[i:i+1])
		flops += k.FLOPsPerToken*tokens + k.FLOPsPerContextToken*context + k.FLOPsPerEmit*produced
		peakFLOPs += engineS * k.PeakFLOPsPerS
		if k.PeakBytesPerS == 0 {
			bytes = math.NaN() // not known
		}
		bytes += k.BytesPerIteration*float64(u.iterations) + k.BytesPerContextToken*context + k.BytesPerToken*tokens
		peakBytes += engineS * k.PeakBytesPerS
	}
	y.MFU, y.MBU = stats.Ratio(flops, peakFLOPs), stats.Ratio(bytes, peakBytes)
}

// kvSD is the standard deviation of the buckets' mean KV usage.
func (c summariser) kvSD(w *window) *float64 {
	var n, sum, squares float64
	for i := w.from; i < w.to; i++ {
		length := float64(min(c.line.end(i), w.end) - c.line.start(i))
		v := c.line.buckets[i].blocks.Float64() / clock.FemtosPerPico / length / float64(c.opts.UsableBlocks)
		n, sum, squares = n+1, sum+v, squares+v*v
	}
	return stats.Finite(math.Sqrt(max(0, squares/n-sum/n*sum/n)))
}

// AddWarning adds what the numbers themselves warn of.
func (c summariser) warn(s *report.Summary, w *window) {
	if s.Partial {
		s.AddWarning("partial", "the run was interrupted: the numbers are of what happened before")
	}
	switch {
	case w.growth != nil:
		s.AddWarning("not_stationary", fmt.Sprintf("overload: the system fills up by %s requests/s, so latencies depend "+
			"on how long it runs", layout.Significant(*w.growth, 3)))
	case w.stationary != nil && !*w.stationary:
		s.AddWarning("not_stationary", "the system had not settled after half the run: make it longer")
	}
	if n := s.Latency.TTFT.N; n > 0 && n < report.MinSamplesP99 {
		s.AddWarning("few_samples", fmt.Sprintf("%d requests in the window are too few for a p99 (want %d or more)", n,
			report.MinSamplesP99))
	}
	if n := s.Requests.RejectedLong; n > 0 {
		s.AddWarning("rejected", fmt.Sprintf("%d of %d requests were rejected: they can never fit", n,
			s.Requests.Offered))
	}
	if n := s.Requests.RejectedBusy; n > 0 {
		s.AddWarning("rejected_busy", fmt.Sprintf("%d of %d requests were rejected: the limits of the queue were reached", n,
			s.Requests.Offered))
	}
	if n := s.Requests.TimedOut; n > 0 {
		s.AddWarning("timed_out", fmt.Sprintf("%d of %d requests timed out", n, s.Requests.Offered))
	}
	for i := range s.Goodput.Limits {
		if l := &s.Goodput.Limits[i]; l.N == 0 {
			s.AddWarning("slo_without_samples", fmt.Sprintf("slo.%s judges nothing: no request of the window has this metric "+
				"(remove the limit, or set longer outputs)", l.Key))
		}
	}
	switch g := &s.Goodput; {
	case g.SLO == nil || g.Attainment == nil || s.Latency.WithFailures.Failures == 0:
	case g.Met == nil:
		s.AddWarning("slo_undecided", fmt.Sprintf("whether the SLO is met depends on requests that were still in the "+
			"system at the end (%d in all)", s.Requests.InSystemAtEnd))
	case !*g.Met:
		s.AddWarning("slo_failures", fmt.Sprintf("the SLO counts the %d requests of the window that did not complete as "+
			"infinitely slow", s.Latency.WithFailures.Failures))
	}
	if c.folded {
		s.AddWarning("sketched", fmt.Sprintf("percentiles of more than %d requests are within 1/256 of their value",
			ExactSamples))
	}
}

// Series is the run in time buckets, at most 512, the last of which may not be full.
func (c *Collector) Series() []report.SeriesPoint {
	c.settle()
	w := c.window(&report.Summary{})
	return summariser{c}.series(&w)
}

func (c summariser) series(w *window) []report.SeriesPoint { return c.seriesUpTo(c.runEnd(), w) }

func (c summariser) seriesUpTo(end clock.Time, w *window) []report.SeriesPoint {
	var points []report.SeriesPoint
	for i := range c.line.buckets {
		b := &c.line.buckets[i]
		start, stop := c.line.start(i), min(c.line.end(i), end)
		if stop <= start {
			break
		}
		length := stop.Sub(start).Seconds()
		level := func(l int) float64 {
			switch {
			case c.line.detail == nil && b.watched > 0:
				return b.levels[l].Float64() / float64(b.watched)
			case c.line.detail == nil || c.line.detail[i].levels[l].Count() == 0:
				return 0
			}
			return c.line.detail[i].levels[l].Mean()
		}
		p := report.SeriesPoint{
			StartS: start.Seconds(), EndS: stop.Seconds(),
			Arrivals: b.arrivals, Completions: b.completions, InputTokens: b.input, OutputTokens: b.output,
			Iterations: b.iterations, Preemptions: b.preemptions,
			BusyFraction: b.busy.Float64() / 1e15 / length / float64(c.opts.Replicas),
			InSystemMean: level(inSystem), RunningMean: level(running), DecodingMean: level(decoding),
			QueueMean:     level(waiting),
			PrefillTokens: b.prefill + b.recomputed, ComputedTokens: b.computed(),
			TTFTMeanMs: stats.Ratio(b.ttft.Float64()*1e-9, float64(b.samples)),
			InWindow:   i >= w.from && i < w.to,
		}
		if n := c.opts.UsableBlocks; n > 0 {
			p.KVUsageMean = stats.Ratio(b.blocks.Float64()/1e15, length*float64(n))
		}
		if c.opts.Lifecycle && c.parts != nil {
			c.seriesOfReplicas(&p, i, length)
		}
		points = append(points, p)
	}
	return points
}

// summariser reads the sums of a collector and turns them into results.
type summariser struct{ *Collector }
