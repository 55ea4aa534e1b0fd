package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"clifftop/sim/event"
)

// delays are the times that the way to the server and back adds to the simulated latencies of each request, in seconds,
// sorted.
type delays struct{ ttft, e2e []float64 }

// delaysOf compares calls with their simulation. The clocks need no alignment.
func delaysOf(calls []*call, all []twin) (d delays, err error) {
	for k, x := range calls {
		if x == nil || x.err != nil {
			return d, fmt.Errorf("request %d of %d failed: %w", k+1, len(calls), errorOf(x))
		}
		t := &all[x.number]
		if err := x.check(t); err != nil {
			return d, fmt.Errorf("request %d: %w", x.number, err)
		}
		d.ttft = append(d.ttft, (x.chunks[0].at-x.sent).Seconds()-t.record.ClientFirst.Sub(t.arrival()).Seconds())
		last := x.chunks[len(x.chunks)-1]
		d.e2e = append(d.e2e, (last.at-x.sent).Seconds()-t.record.ClientLast.Sub(t.arrival()).Seconds())
	}
	slices.Sort(d.ttft)
	slices.Sort(d.e2e)
	return d, nil
}

// measureRecord sends the same load to the server, and through clifftop record. It compares the delays, and the
// simulation of the trace with that of the server's journal.
func (o *options) measureRecord(ctx context.Context, p plan, out io.Writer) error {
	dir, err := os.MkdirTemp("", "load")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var of [2]delays
	for k, trace := range []string{"", filepath.Join(dir, "trace.csv.gz")} {
		o.journal = filepath.Join(dir, fmt.Sprintf("journal%d.csv", k))
		calls, err := o.pass(ctx, p, trace, out)
		if err != nil {
			return err
		}
		all, err := replay(ctx, o.scenario, o.journal)
		if err != nil {
			return err
		}
		if of[k], err = delaysOf(calls, all); err != nil {
			return err
		}
		way := "direct"
		if trace != "" {
			way = "through record"
		}
		fmt.Fprintf(out, "%-14s %d requests; client - simulated: TTFT p50 %s, p99 %s, E2E p50 %s, p99 %s\n",
			way, len(calls), ms(quantile(of[k].ttft, .5)), ms(quantile(of[k].ttft, .99)), ms(quantile(of[k].e2e, .5)),
			ms(quantile(of[k].e2e, .99)))
		if trace == "" {
			continue
		}
		if err := o.judgeTrace(ctx, trace, all, out); err != nil {
			return err
		}
	}
	var faults []error
	for _, x := range []struct {
		name         string
		direct, with []float64
	}{{"TTFT", of[0].ttft, of[1].ttft}, {"E2E", of[0].e2e, of[1].e2e}} {
		added := quantile(x.with, .99) - quantile(x.direct, .99)
		fmt.Fprintf(out, "record adds %s to the 99th percentile of the %s\n", ms(added), x.name)
		if o.limits.p99 > 0 && added > o.limits.p99.Seconds() {
			faults = append(faults, fmt.Errorf("record adds %s to the %s (want %v or less)", ms(added), x.name,
				o.limits.p99))
		}
	}
	return errors.Join(faults...)
}

// pass sends the load, through clifftop record if trace names its file.
func (o *options) pass(ctx context.Context, p plan, trace string, out io.Writer) ([]*call, error) {
	s, err := start(ctx, o, "serve", o.scenario, "--journal", o.journal)
	if err != nil {
		return nil, err
	}
	defer s.kill()
	url := s.url
	var proxy *server
	if trace != "" {
		if proxy, err = start(ctx, o, "record", "--upstream", s.url, "--out", trace); err != nil {
			return nil, err
		}
		defer proxy.kill()
		url = proxy.url
	}
	calls := p.send(ctx, newClient(url))
	if proxy != nil {
		if u := proxy.usage(); len(u) > 0 {
			last := u[len(u)-1]
			fmt.Fprintf(out, "record: %.1f MiB, %.0f %% of a core\n", last.resident,
				100*last.cpu.Seconds()/last.at.Seconds())
		}
		if err := proxy.stop(); err != nil {
			return nil, err
		}
		if want := fmt.Sprintf("%d completed", len(calls)); !strings.Contains(proxy.output.String(), want) {
			return nil, fmt.Errorf("record says %q (want %s)", proxy.output.String(), want)
		}
	}
	if err := s.stop(); err != nil {
		return nil, err
	}
	return calls, ctx.Err()
}

// judgeTrace compares the simulation of a trace with that of the journal.
func (o *options) judgeTrace(ctx context.Context, trace string, served []twin, out io.Writer) error {
	recorded, err := replay(ctx, o.scenario, trace)
	if err != nil {
		return err
	}
	if len(recorded) != len(served) {
		return fmt.Errorf("the trace has %d requests, the journal %d", len(recorded), len(served))
	}
	var faults []error
	names := []string{"TTFT", "TPOT", "E2E"}
	a, b := percentiles(recorded), percentiles(served)
	for k, name := range names {
		for _, p := range []float64{.5, .9, .99} {
			x, y := quantile(a[k], p), quantile(b[k], p)
			fmt.Fprintf(out, "%s p%.0f of the trace %s, of the journal %s: %+.2f %%\n", name, 100*p, ms(x),
				ms(y), 100*(x/y-1))
			if d := x/y - 1; o.limits.equal > 0 && max(d, -d) > o.limits.equal {
				faults = append(faults, fmt.Errorf("%s p%.0f of the trace is %s, of the journal %s", name, 100*p,
					ms(x), ms(y)))
			}
		}
	}
	return errors.Join(faults...)
}

// percentiles returns the sorted TTFT, TPOT and E2E latencies of requests that completed, in seconds.
func percentiles(all []twin) (out [3][]float64) {
	for i := range all {
		t := &all[i]
		if t.record.Outcome != event.Completed {
			continue
		}
		out[0] = append(out[0], t.record.ClientFirst.Sub(t.arrival()).Seconds())
		out[2] = append(out[2], t.record.ClientLast.Sub(t.arrival()).Seconds())
		if n := float64(t.record.Tokens - 1); n > 0 {
			out[1] = append(out[1], t.record.ClientLast.Sub(t.record.ClientFirst).Seconds()/n)
		}
	}
	for _, l := range out {
		slices.Sort(l)
	}
	return out
}
