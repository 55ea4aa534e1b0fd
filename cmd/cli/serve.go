package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/live"
	"clifftop/experiments/live/api"
	"clifftop/experiments/live/kvevents"
	"clifftop/experiments/live/monitor"
	"clifftop/experiments/live/text"
	"clifftop/experiments/scenario"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

type serveCommand struct {
	scenario  scenarioFlags
	output    console.OutputFlags
	listen    string
	ports     string // a range of ports, one for each replica
	speed     float64
	keys      []string
	models    []string
	tokenizer string
	journal   string
	events    string // JSON of vLLM's --kv-events-config
	origins   []string
	busy      int
	grace     time.Duration
}

func newServe() *cobra.Command {
	var s serveCommand
	c := &cobra.Command{
		Use:   "serve [SCENARIO]",
		Short: "Answer OpenAI's API at the times of the simulated cluster",
		Long: `Serve OpenAI's and SGLang's HTTP API. Chunks of output leave at the instants at which the ` +
			`simulated cluster
would send them; the text is filler. Prompts are real text: prefix caches and routers see their content. The
length of an output is drawn from the scenario's workload, which sends nothing itself.

/metrics has vLLM's metrics, and / shows what the cluster does. An interrupt or SIGTERM lets requests finish.
The journal of the requests can be simulated again: every token comes at the same picosecond.`,
		Example: `  clifftop serve
  clifftop serve fleet.yaml --ports 8001-8004 --kv-events '{"enable_kv_cache_events": true}'
  clifftop serve scenario.yaml --speed 10 --journal journal.csv
  clifftop run scenario.yaml --trace journal.csv`,
		Args: console.AtMostOne("scenario"),
		RunE: s.run,
	}
	s.scenario.register(c)
	s.scenario.registerFrom(c, false)
	flags := c.Flags()
	flags.StringVar(&s.listen, "listen", "127.0.0.1:8000", "serve at `ADDRESS`")
	flags.StringVar(&s.ports, "ports", "", "serve each replica at a port of its own, such as 8001-8008, past the "+
		"router")
	flags.Float64Var(&s.speed, "speed", 1, "simulated seconds per second")
	flags.StringArrayVar(&s.keys, "api-key", nil, "require `KEY` (default $CLIFFTOP_API_KEY); repeatable")
	flags.StringArrayVar(&s.models, "served-model-name", nil, "`NAME` of the model for clients; repeatable")
	flags.StringVar(&s.tokenizer, "tokenizer", "", "count tokens with a tokenizer.json `FILE` (default an estimate)")
	flags.StringVar(&s.journal, "journal", "", "write the requests to `FILE`, a trace for run --trace; .gz compresses")
	flags.StringVar(&s.events, "kv-events", "", "publish KV events over ZeroMQ as vLLM's --kv-events-config `JSON` "+
		"says")
	flags.StringArrayVar(&s.origins, "allow-origin", nil, "let web pages of `ORIGIN` read answers; * is all")
	flags.IntVar(&s.busy, "busy-status", http.StatusTooManyRequests, "HTTP `STATUS` when a queue is full: 429 or 503")
	flags.DurationVar(&s.grace, "grace", 15*time.Second, "let requests go on for this `TIME` after an interrupt")
	s.output.RegisterQuiet(c, "print no status line and no messages")
	console.AddCheck(c, s.check)
	return c
}

// check reports flags that are out of range.
func (s *serveCommand) check() error {
	switch {
	case !(s.speed > 0 && s.speed <= 1e6):
		return fmt.Errorf("--speed: %v is not allowed (want above 0, at most 1000000)", s.speed)
	case s.busy != http.StatusTooManyRequests && s.busy != http.StatusServiceUnavailable:
		return fmt.Errorf("--busy-status: %d is not allowed (want 429 or 503)", s.busy)
	case s.grace < 0:
		return fmt.Errorf("--grace: %v is negative (want 0 or more)", s.grace)
	}
	if len(s.keys) == 0 && os.Getenv("CLIFFTOP_API_KEY") != "" {
		s.keys = []string{os.Getenv("CLIFFTOP_API_KEY")}
	}
	for _, k := range s.keys {
		if k == "" {
			return errors.New("--api-key: the key is empty (want one, or no flag)")
		}
	}
	return nil
}

func (s *serveCommand) run(c *cobra.Command, args []string) error {
	parsed, err := s.scenario.load(args)
	if err != nil {
		return err
	}
	u, err := parsed.ResolveServed()
	if err != nil {
		return err
	}
	tokens, err := readTokenizer(s.tokenizer)
	if err != nil {
		return err
	}
	ports, err := s.open(u)
	if err != nil {
		return err
	}
	defer func() {
		for _, p := range ports {
			p.Close()
		}
	}()
	s.output.Warn(c, warningTexts(u.Warnings))
	x := &serving{flags: s, command: c, setup: u, ports: ports}
	if err := x.assemble(tokens); err != nil {
		return err
	}
	if d := u.StandingFleet(false).Disaggregation; d != nil && s.ports != "" {
		s.output.Say(c, "ports of prefill replicas: %d, followed by %d of decode replicas", d.Prefills,
			len(ports)-d.Prefills)
	}
	for _, p := range ports {
		if _, err := fmt.Fprintf(c.OutOrStdout(), "http://%s\n", p.Addr()); err != nil {
			return console.Failed(err)
		}
		if api.Exposed(p.Addr()) {
			s.output.Warn(c, []string{fmt.Sprintf("other machines can reach %s", p.Addr())})
		}
	}
	err = x.run(c.Context())
	s.output.Say(c, "the server has ended")
	return console.Failed(err)
}

func (s *serveCommand) open(u *scenario.Setup) ([]api.Port, error) {
	if s.ports == "" {
		ports, err := api.Listen(s.listen)
		if err != nil {
			return nil, fmt.Errorf("--listen: %w", err)
		}
		return ports, nil
	}
	first, last, err := api.ParsePorts(s.ports)
	if err != nil {
		return nil, fmt.Errorf("--ports: %w", err)
	}
	replicas := len(u.StandingFleet(false).Replicas)
	if last-first+1 != replicas {
		return nil, fmt.Errorf("--ports: %s has %d ports, but the scenario needs %d, one for each replica (want "+
			"%d-%d)", s.ports,
			last-first+1, replicas, first, first+replicas-1)
	}
	host, _, err := net.SplitHostPort(s.listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %s is no address (want host:port)", s.listen)
	}
	ports, err := api.ListenEach(host, first, replicas)
	if err != nil {
		return nil, fmt.Errorf("--ports: %w", err)
	}
	return ports, nil
}

type serving struct {
	flags   *serveCommand
	command *cobra.Command
	setup   *scenario.Setup
	ports   []api.Port
	driver  *live.Server
	api     *api.Server
	monitor *monitor.Monitor
	status  *monitor.Status
	events  *kvevents.Publisher // nil without KV events
	journal *traceFile          // nil without a journal
}

func (x *serving) assemble(tokens text.Tokenizer) (err error) {
	f := x.flags
	name := x.setup.Scenario.Model
	if len(f.models) > 0 {
		name = f.models[0]
	}
	x.monitor = monitor.New(x.setup, monitor.Options{Speed: f.speed, Model: name, Log: func(text string) {
		f.output.Warn(x.command, []string{text})
	}})
	x.status = x.monitor.NewStatus(x.command.ErrOrStderr(), f.statusMode(x.command))
	x.command.SetErr(x.status) // messages stand above the status line
	ready := api.NewReplicas(x.setup)
	options := live.Options{Speed: f.speed, Observers: []event.Observer{x.monitor.Observer(), ready}}
	note, err := x.publish(&options, name)
	if err != nil {
		return err
	}
	if f.journal != "" {
		if x.journal, err = newTraceFile("--journal", f.journal); err != nil {
			return err
		}
		options.Journal, options.JournalFailed = x.journal, func(err error) {
			f.output.Warn(x.command, []string{fmt.Sprintf("the journal ends: %s: %s", f.journal, console.Cause(err))})
		}
	}
	if x.driver, err = live.New(x.setup, options); err != nil {
		return err
	}
	x.monitor.Follow(x.driver)
	x.api, err = api.New(api.Options{
		Live: x.driver, Tokenizer: tokens, Models: f.models, Version: version(), Keys: f.keys, AllowOrigins: f.origins,
		Replicas: ready, Note: note, BusyStatus: f.busy, Limits: api.Limits{Grace: f.grace},
		Mount: x.mount, Sent: x.sent,
		Log: log.New(x.command.ErrOrStderr(), "clifftop: ", 0),
	})
	return err
}

// statusMode says how the status is shown: as a line at the end of a terminal, or as lines of a log.
func (s *serveCommand) statusMode(c *cobra.Command) monitor.StatusMode {
	switch {
	case s.output.Quiet():
		return monitor.StatusOff
	case console.IsTerminal(c.ErrOrStderr()):
		return monitor.StatusLine
	}
	return monitor.StatusPlain
}

// publish adds a publisher of KV events to the observers, if one is configured, and returns the function by which the
// API reports prompts.
func (x *serving) publish(options *live.Options, model string) (func(*workload.Content, []uint32), error) {
	if x.flags.events == "" {
		return nil, nil
	}
	config, err := kvevents.Parse(x.flags.events)
	switch {
	case err != nil:
		return nil, eventsFault(err)
	case !config.Enabled():
		return nil, nil
	}
	var addresses []string
	for i := range len(x.setup.StandingFleet(false).Replicas) {
		addresses = append(addresses, x.ports[min(i, len(x.ports)-1)].Addr().String())
	}
	x.events, err = kvevents.New(x.setup, kvevents.Options{
		Config: config, Model: model, Addresses: addresses,
		Output:  func(request int64, k int) uint32 { return x.api.Output(request, k) },
		Adapter: func(number int32) string { return x.api.AdapterName(number) },
		Wall:    func(at clock.Time) time.Time { return x.driver.Wall(at) },
	})
	if err != nil {
		return nil, eventsFault(err)
	}
	options.Observers = append(options.Observers, x.events)
	return x.events.Note, nil
}

// eventsFault names the flag in an error of KV events.
func eventsFault(err error) error {
	return fmt.Errorf("--kv-events: %s", strings.TrimPrefix(err.Error(), "KV events: "))
}

// mount returns what a port serves besides the API. /metrics has the metrics of the port's replica, or of all. The page
// at / shows all replicas.
func (x *serving) mount(replica int32) map[string]http.Handler {
	return map[string]http.Handler{
		"GET /metrics": x.monitor.Metrics(int(replica) - 1),
		"GET /{$}":     x.monitor.Page(int(replica) - 1), monitor.EventsPattern: x.monitor.Events(),
	}
}

// sent gives the monitor the parameters of a request.
func (x *serving) sent(r api.Sent) {
	x.monitor.Expect(r.ID, monitor.Params{N: r.Outputs, MaxTokens: r.MaxTokens, Limited: r.Limited})
}

// run serves until ctx is done or the simulation fails.
func (x *serving) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	driving, end := context.WithCancel(context.Background())
	defer end()
	driven := make(chan error, 1)
	go func() {
		driven <- x.driver.Run(driving)
		stop()
	}()
	var watching sync.WaitGroup
	watching.Go(func() { x.monitor.Run(ctx) })
	watching.Go(func() { x.status.Run(driving) })
	err := x.api.Serve(ctx, x.ports)
	end()
	err = cmp.Or(err, <-driven)
	stop()
	watching.Wait()
	if x.events != nil {
		x.events.Close()
	}
	if x.journal != nil {
		err = cmp.Or(err, x.journal.Close())
	}
	return err
}
