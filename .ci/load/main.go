// Command load puts load on clifftop serve and holds what its clients get against the simulation of the same requests.
//
// It starts the server on a free port of the loopback interface, lets it write a journal, sends requests over HTTP,
// notes when each chunk of output arrives, ends the server, and simulates the journal as clifftop run does. A request
// finds its simulated twin by the header that numbers it. The clocks are aligned by the arrivals: no request can have
// arrived before its last byte was sent. So the lateness of a chunk includes the time from the server to the client.
//
//	load streams --clifftop ./clifftop --scenario streams.yaml --streams 2000 --tokens 6000
//	load rate    --clifftop ./clifftop --scenario short.yaml --rate 1000 --for 20s
//	load loop    --clifftop ./clifftop --scenario loop.yaml --users 64 --requests 10
//	load record  --clifftop ./clifftop --scenario short.yaml --rate 200 --for 30s
//
// The load record goes to the server first, and then through clifftop record in front of it.
//
// It exits with status 1 if a request fails, a token is missing or early, or a limit is exceeded.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"time"
)

type options struct {
	clifftop, scenario, journal string
	speed                       float64

	streams, tokens, prompt int
	over                    time.Duration

	rate float64
	span time.Duration

	users, requests int

	limits limits
}

// limits of a load; zero is no limit.
type limits struct {
	p50    time.Duration
	p99    time.Duration
	drift  time.Duration // per minute
	growth float64       // of the server's memory, in MiB per minute
	equal  float64       // relative deviation of the latencies of a closed loop; a millisecond is always allowed
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// run parses the command line and measures.
func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("want a kind of load: streams, rate, loop or record")
	}
	kinds := map[string]func(*options) plan{
		"streams": (*options).planStreams, "rate": (*options).planRate, "loop": (*options).planLoop,
		"record": (*options).planStreamedRate,
	}
	kind := kinds[args[0]]
	if kind == nil {
		return fmt.Errorf("unknown kind of load %q (want streams, rate, loop or record)", args[0])
	}
	o, err := parse(args[1:])
	if err != nil {
		return err
	}
	if args[0] == "record" {
		return o.measureRecord(ctx, kind(o), out)
	}
	return o.measure(ctx, kind(o), out)
}

// parse reads the flags.
func parse(args []string) (*options, error) {
	o := new(options)
	f := flag.NewFlagSet("load", flag.ContinueOnError)
	f.StringVar(&o.clifftop, "clifftop", "clifftop", "the program")
	f.StringVar(&o.scenario, "scenario", "", "scenario file")
	f.StringVar(&o.journal, "journal", "", "keep the journal in this file")
	f.Float64Var(&o.speed, "speed", 1, "simulated seconds per second")
	f.IntVar(&o.streams, "streams", 2000, "streams: number of streams")
	f.IntVar(&o.tokens, "tokens", 600, "output tokens of a request")
	f.IntVar(&o.prompt, "prompt", 16, "prompt tokens of a request")
	f.DurationVar(&o.over, "over", 10*time.Second, "streams: they begin within this time")
	f.Float64Var(&o.rate, "rate", 1000, "rate: requests per second")
	f.DurationVar(&o.span, "for", 20*time.Second, "rate: how long requests are sent")
	f.IntVar(&o.users, "users", 64, "loop: number of users")
	f.IntVar(&o.requests, "requests", 10, "loop: requests of each user")
	f.DurationVar(&o.limits.p50, "p50", 0, "limit of the median of the lateness of chunks")
	f.DurationVar(&o.limits.p99, "p99", 0, "limit of the 99th percentile of the lateness of chunks")
	f.DurationVar(&o.limits.drift, "drift", 0, "limit of the drift of the lateness per minute")
	f.Float64Var(&o.limits.growth, "growth", 0, "limit of the growth of the server's memory, in MiB per minute")
	f.Float64Var(&o.limits.equal, "equal", 0, "limit of the deviation of mean latencies and of the throughput")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return o, nil
}

// measure runs the server under a load, simulates its journal and compares.
func (o *options) measure(ctx context.Context, p plan, out io.Writer) error {
	if o.journal == "" {
		dir, err := os.MkdirTemp("", "load")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		o.journal = dir + "/journal.csv"
	}
	s, err := start(ctx, o, "serve", o.scenario, "--journal", o.journal, "--speed",
		strconv.FormatFloat(o.speed, 'g', -1, 64))
	if err != nil {
		return err
	}
	defer s.kill()
	c := newClient(s.url)
	calls := p.send(ctx, c)
	usage := s.usage()
	lag := c.lag(ctx)
	if err := s.stop(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	simulated, err := replay(ctx, o.scenario, o.journal)
	if err != nil {
		return err
	}
	r, err := compare(calls, simulated, o.speed)
	if err != nil {
		return err
	}
	r.usage, r.lag = usage, lag
	r.print(out)
	if p.loop {
		r.printLoop(out)
	}
	return r.judge(&o.limits, p.loop)
}
