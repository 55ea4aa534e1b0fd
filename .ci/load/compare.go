package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// result has the measurements of a load.
type result struct {
	calls, tokens int
	span          time.Duration // from the first request to the last chunk
	late          []float64     // of each chunk, in seconds, sorted
	drift         float64       // slope of the lateness over time, in seconds per second
	minutes       []float64     // median lateness of each minute, in seconds
	slack         time.Duration // how far the alignment of the clocks is uncertain
	busy          int           // most chunks in a second
	client, sim   latencies
	usage         []sample
	lag           []string
}

// latencies has the latencies of a closed loop, in seconds, and its throughput in tokens per second.
type latencies struct {
	ttft, tpot []float64
	throughput float64
}

// compare holds the calls against their simulation. It reports a call that failed, tokens that are missing, and chunks
// that came before their instant.
func compare(calls []*call, all []twin, speed float64) (*result, error) {
	wall := func(t clock.Time) time.Duration {
		return time.Duration(float64(t) / float64(clock.Nanosecond) / speed)
	}
	low, high := time.Duration(math.MinInt64), time.Duration(math.MaxInt64)
	for k, x := range calls {
		if x == nil || x.err != nil {
			return nil, fmt.Errorf("request %d of %d failed: %w", k+1, len(calls), errorOf(x))
		}
		if x.number < 0 || x.number >= int64(len(all)) {
			return nil, fmt.Errorf("request %d is not in the journal", x.number)
		}
		if err := x.check(&all[x.number]); err != nil {
			return nil, fmt.Errorf("request %d: %w", x.number, err)
		}
		low = max(low, x.sent-wall(all[x.number].arrival()))
	}
	r := &result{calls: len(calls)}
	times := []time.Duration{}
	for _, x := range calls {
		each(x, &all[x.number], func(at time.Duration, due clock.Time) {
			times = append(times, at)
			r.late = append(r.late, (at - low - wall(due)).Seconds())
			high = min(high, at-wall(due))
		})
		r.tokens += int(x.chunks[len(x.chunks)-1].tokens)
	}
	if r.slack = high - low; r.slack < 0 {
		return nil, fmt.Errorf("a chunk came %v before its simulated instant", -r.slack)
	}
	r.overTime(times)
	slices.Sort(r.late)
	r.client, r.sim = loops(calls, all, speed)
	r.span = time.Duration(float64(r.tokens) / r.client.throughput * float64(time.Second))
	return r, nil
}

func errorOf(x *call) error {
	if x == nil {
		return errors.New("it was not sent")
	}
	return x.err
}

// check reports tokens that are missing.
func (x *call) check(t *twin) error {
	if t.record.Outcome != event.Completed || len(t.chunks) == 0 {
		return fmt.Errorf("its simulation has the outcome %v", t.record.Outcome)
	}
	if len(x.chunks) == 0 {
		return errors.New("no output came")
	}
	if got, want := x.chunks[len(x.chunks)-1].tokens, t.record.Tokens; got != want {
		return fmt.Errorf("%d tokens came, the simulation has %d", got, want)
	}
	return nil
}

// each calls a function for every simulated chunk with the instant at which the client had it. Chunks that came
// together have one instant. A response that does not stream comes with the last chunk.
func each(x *call, t *twin, f func(at time.Duration, due clock.Time)) {
	if len(x.chunks) == 1 {
		f(x.chunks[0].at, t.chunks[len(t.chunks)-1].At)
		return
	}
	k := 0
	for _, c := range x.chunks {
		for k < len(t.chunks) && t.chunks[k].Tokens <= c.tokens {
			f(c.at, t.chunks[k].At)
			k++
		}
	}
}

// overTime computes how the lateness, which is not yet sorted, develops, and the busiest second.
func (r *result) overTime(times []time.Duration) {
	n := float64(len(times))
	var st, sl, stt, stl float64
	seconds, minutes := map[int]int{}, [][]float64{}
	first := slices.Min(times)
	for i, at := range times {
		t, l := at.Seconds(), r.late[i]
		st, sl, stt, stl = st+t, sl+l, stt+t*t, stl+t*l
		seconds[int(t)]++
		m := int((at - first).Minutes())
		for len(minutes) <= m {
			minutes = append(minutes, nil)
		}
		minutes[m] = append(minutes[m], l)
	}
	if d := n*stt - st*st; d > 0 {
		r.drift = (n*stl - st*sl) / d
	}
	for _, c := range seconds {
		r.busy = max(r.busy, c)
	}
	for _, m := range minutes {
		slices.Sort(m)
		r.minutes = append(r.minutes, quantile(m, 0.5))
	}
}

// loops returns the latencies at the client and in the simulation, in seconds of the wall clock.
func loops(calls []*call, all []twin, speed float64) (client, sim latencies) {
	seconds := func(d clock.Duration) float64 { return d.Seconds() / speed }
	begin, end := time.Duration(math.MaxInt64), time.Duration(0)
	simBegin, simEnd := clock.Never, clock.Time(0)
	tokens := 0.0
	for _, x := range calls {
		t := &all[x.number]
		first, last := x.chunks[0], x.chunks[len(x.chunks)-1]
		client.ttft = append(client.ttft, (first.at - x.sent).Seconds())
		sim.ttft = append(sim.ttft, seconds(t.record.ClientFirst.Sub(t.arrival())))
		if n := float64(last.tokens - 1); n > 0 {
			client.tpot = append(client.tpot, (last.at-first.at).Seconds()/n)
			sim.tpot = append(sim.tpot, seconds(t.record.ClientLast.Sub(t.record.ClientFirst))/n)
		}
		tokens += float64(last.tokens)
		begin, end = min(begin, x.sent), max(end, last.at)
		simBegin, simEnd = min(simBegin, t.arrival()), max(simEnd, t.record.ClientLast)
	}
	client.throughput = tokens / (end - begin).Seconds()
	sim.throughput = tokens / seconds(simEnd.Sub(simBegin))
	for _, l := range [][]float64{client.ttft, client.tpot, sim.ttft, sim.tpot} {
		slices.Sort(l)
	}
	return client, sim
}

// quantile returns the value at a share of sorted values.
func quantile(sorted []float64, p float64) float64 {
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}

// ms formats seconds as milliseconds.
func ms(seconds float64) string { return fmt.Sprintf("%.3f ms", seconds*1e3) }

func (r *result) print(w io.Writer) {
	fmt.Fprintf(w, "%d requests, %d tokens in %.1f s: %.0f tokens/s, %.0f requests/s, at most %d chunks in a second\n",
		r.calls, r.tokens, r.span.Seconds(), r.client.throughput, float64(r.calls)/r.span.Seconds(), r.busy)
	fmt.Fprintf(w, "client - simulated: p50 %s, p90 %s, p99 %s, p99.9 %s, max %s of %d chunks (clocks aligned to %s)\n",
		ms(quantile(r.late, .5)), ms(quantile(r.late, .9)), ms(quantile(r.late, .99)), ms(quantile(r.late, .999)),
		ms(r.late[len(r.late)-1]), len(r.late), ms(r.slack.Seconds()))
	fmt.Fprintf(w, "drift: %s per minute; median by minute:", ms(r.drift*60))
	for _, m := range r.minutes {
		fmt.Fprintf(w, " %s", ms(m))
	}
	fmt.Fprintln(w)
	if a, b, ok := r.steady(); ok {
		fmt.Fprintf(w, "server: %.1f MiB at first, %.1f MiB at last, %+.2f MiB per minute; %.0f %% of a core\n",
			a.resident, b.resident, r.growth(), 100*(b.cpu-a.cpu).Seconds()/(b.at-a.at).Seconds())
	}
	if m := r.memory(); len(m) > 1 {
		fmt.Fprint(w, "server: median memory by minute, MiB:")
		for _, x := range m {
			fmt.Fprintf(w, " %.1f", x)
		}
		fmt.Fprintln(w)
	}
	for _, l := range r.lag {
		fmt.Fprintln(w, "server:", l)
	}
}

// steady returns the first and the last sample of the second half, in which the memory has settled.
func (r *result) steady() (a, b sample, ok bool) {
	if len(r.usage) < 4 {
		return a, b, false
	}
	return r.usage[len(r.usage)/2], r.usage[len(r.usage)-1], true
}

// memory returns the median of the memory in each minute, in MiB.
func (r *result) memory() (minutes []float64) {
	var of [][]float64
	for _, x := range r.usage {
		m := int(x.at.Minutes())
		for len(of) <= m {
			of = append(of, nil)
		}
		of[m] = append(of[m], x.resident)
	}
	for _, l := range of {
		slices.Sort(l)
		if len(l) > 0 {
			minutes = append(minutes, quantile(l, 0.5))
		}
	}
	return minutes
}

// growth returns the slope of the memory in the second half, in MiB per minute.
func (r *result) growth() float64 {
	var st, sm, stt, stm float64
	half := r.usage[len(r.usage)/2:]
	for _, x := range half {
		t := x.at.Minutes()
		st, sm, stt, stm = st+t, sm+x.resident, stt+t*t, stm+t*x.resident
	}
	n := float64(len(half))
	return (n*stm - st*sm) / (n*stt - st*st)
}

// rows are the numbers of a closed loop: at the client, and in the simulation.
func (r *result) rows() []row {
	var rows []row
	for _, m := range []struct {
		name        string
		client, sim []float64
	}{{"TTFT", r.client.ttft, r.sim.ttft}, {"TPOT", r.client.tpot, r.sim.tpot}} {
		if len(m.client) == 0 {
			continue
		}
		rows = append(rows, row{m.name + " mean", mean(m.client), mean(m.sim)})
		for _, p := range []float64{.5, .95, .99} {
			rows = append(rows, row{fmt.Sprintf("%s p%.0f", m.name, 100*p), quantile(m.client, p), quantile(m.sim, p)})
		}
	}
	return rows
}

// row is a latency in seconds.
type row struct {
	name        string
	client, sim float64
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// printLoop writes the latencies of a closed loop.
func (r *result) printLoop(w io.Writer) {
	for _, x := range r.rows() {
		fmt.Fprintf(w, "%-9s client %s, simulated %s: %+.2f %%\n", x.name, ms(x.client), ms(x.sim),
			100*(x.client/x.sim-1))
	}
	fmt.Fprintf(w, "tokens/s  client %.1f, simulated %.1f: %+.2f %%\n", r.client.throughput, r.sim.throughput,
		100*(r.client.throughput/r.sim.throughput-1))
}

// judge reports the limits that are exceeded.
func (r *result) judge(l *limits, loop bool) error {
	var all []error
	if p := quantile(r.late, .5); l.p50 > 0 && p > l.p50.Seconds() {
		all = append(all, fmt.Errorf("the median of the lateness is %s (want %v or less)", ms(p), l.p50))
	}
	if p := quantile(r.late, .99); l.p99 > 0 && p > l.p99.Seconds() {
		all = append(all, fmt.Errorf("the 99th percentile of the lateness is %s (want %v or less)", ms(p), l.p99))
	}
	if l.drift > 0 && math.Abs(r.drift*60) > l.drift.Seconds() {
		all = append(all, fmt.Errorf("the drift is %s per minute (want %v or less)", ms(r.drift*60), l.drift))
	}
	if _, _, ok := r.steady(); ok && l.growth > 0 && r.growth() > l.growth {
		all = append(all, fmt.Errorf("the memory grows by %.2f MiB per minute (want %g or less)", r.growth(), l.growth))
	}
	if !loop || l.equal == 0 {
		return errors.Join(all...)
	}
	for _, x := range r.rows() {
		if d := math.Abs(x.client - x.sim); d > max(1e-3, l.equal*x.sim) {
			all = append(all, fmt.Errorf("%s is %s at the client and %s in the simulation", x.name,
				ms(x.client), ms(x.sim)))
		}
	}
	if q := r.client.throughput / r.sim.throughput; math.Abs(q-1) > l.equal {
		all = append(all, fmt.Errorf("the throughput at the client is %.4f of the simulated one", q))
	}
	return errors.Join(all...)
}
