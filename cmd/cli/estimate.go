package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/experiments/estimate"
	"clifftop/experiments/scenario/unit"
)

func newEstimate() *cobra.Command {
	c := &cobra.Command{
		Use:   "estimate",
		Short: "Do the arithmetic of capacity, with its formulas",
		Long: `Do by formula what is often done by hand, and show the formulas with the numbers in them. Where a
rule of thumb leaves something out, the result says what.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newEstimateConcurrency(), newEstimateCost(), newEstimateLatency(), newEstimateKV())
	return c
}

// printEstimate prints a result.
func printEstimate(c *cobra.Command, r *estimate.Result, format string) error {
	return failed(printOnce(c.OutOrStdout(), func(w io.Writer) error { return printResult(w, r, format) }))
}

// estimateFormats are the formats of all estimates; the first is the default.
var estimateFormats = [...]string{"table", "json", "csv", "markdown"}

// parsed reads the value of a flag in its own syntax.
func parsed[T any](flag, text string, parse func(string) (T, error)) (T, error) {
	v, err := parse(text)
	if err != nil {
		return v, fmt.Errorf("--%s: %w", flag, err)
	}
	return v, nil
}

// parseSeconds reads a duration.
func parseSeconds(text string) (float64, error) {
	d, ok := unit.ParseDuration(strings.TrimSpace(text))
	if !ok {
		return 0, fmt.Errorf("%q is not a duration (want one with its unit, such as 30s or 800ms)", text)
	}
	return d.Seconds(), nil
}

// concurrencyFlags are those of estimate concurrency.
type concurrencyFlags struct {
	scenario                     scenarioFlags
	output                       outputFlags
	perMinute, people            float64
	active, every, ttft, takes   string
	ofPeople                     string // a flag that was given and tells of people
	hasRate, hasPeople, hasTakes bool
}

func newEstimateConcurrency() *cobra.Command {
	var f concurrencyFlags
	c := &cobra.Command{
		Use:   "concurrency [SCENARIO]",
		Short: "How many requests are in the system at once",
		Long: `Estimate how many requests are in the system at once from how many come per minute, or from how
many people use the service, and how long each takes. With a scenario, --model or --gpu the time
of a request is not given but found by simulation, since it depends on how many there are.`,
		Example: `  clifftop estimate concurrency --per-minute 4 --duration 30s
  clifftop estimate concurrency --people 100 --active 20% --every 5m --ttft 4s --duration 34s
  clifftop estimate concurrency --people 5000 --active 20% --every 1m --model llama-3.1-8b --gpu l40s`,
		Args: atMostOne("scenario"),
		RunE: f.run,
	}
	f.scenario.register(c)
	f.output.register(c, estimateFormats[:]...)
	flags := c.Flags()
	flags.Float64Var(&f.perMinute, "per-minute", 0, "`N` requests per minute at the busiest time")
	flags.Float64Var(&f.people, "people", 0, "`N` people who may use the service, in place of --per-minute")
	flags.StringVar(&f.active, "active", "20%", "`SHARE` of them that is active at the busiest time")
	flags.StringVar(&f.every, "every", "5m", "`TIME` from one request of an active person to the next")
	flags.StringVar(&f.takes, "duration", "", "`TIME` that a request takes, from sending to its last token")
	flags.StringVar(&f.ttft, "ttft", "0", "`TIME` to the first token, a part of --duration")
	return c
}

func (f *concurrencyFlags) run(c *cobra.Command, args []string) error {
	f.noteGiven(c)
	if err := f.output.validate(); err != nil {
		return err
	}
	simulated := len(args) > 0 || len(f.scenario.settings) > 0
	d, crowd, err := f.demand(simulated)
	if err != nil {
		return err
	}
	if !simulated {
		r, err := estimate.Concurrency(d, crowd)
		if err != nil {
			return err
		}
		return printEstimate(c, r, f.output.format)
	}
	s, err := f.scenario.load(args)
	if err != nil {
		return err
	}
	r, err := estimate.AtLoad(c.Context(), s, d, crowd)
	if err != nil {
		return failed(err)
	}
	return printEstimate(c, r, f.output.format)
}

// noteGiven notes which flags were given.
func (f *concurrencyFlags) noteGiven(c *cobra.Command) {
	flags := c.Flags()
	f.hasRate, f.hasPeople, f.hasTakes = flags.Changed("per-minute"), flags.Changed("people"), flags.Changed("duration")
	for _, name := range []string{"active", "every"} {
		if flags.Changed(name) {
			f.ofPeople = name
		}
	}
}

// demand reads the flags. Without a simulation the time of a request is needed.
func (f *concurrencyFlags) demand(simulated bool) (estimate.Demand, *estimate.Crowd, error) {
	var d estimate.Demand
	switch {
	case f.hasRate == f.hasPeople:
		return d, nil, errors.New("want one of --per-minute and --people\nhint: clifftop estimate concurrency --people 100 --active 20% --every 5m --duration 30s")
	case simulated && f.hasTakes:
		return d, nil, errors.New("--duration beside a scenario (want one of them: the simulation finds the time of a request)")
	case !simulated && !f.hasTakes:
		return d, nil, errors.New("--duration is missing (want the time that a request takes, such as 30s, or a scenario that tells it)")
	}
	ttft, err := parsed("ttft", f.ttft, parseSeconds)
	if err != nil {
		return d, nil, err
	}
	takes := ttft + 1
	if !simulated {
		if takes, err = parsed("duration", f.takes, parseSeconds); err != nil {
			return d, nil, err
		}
	}
	if takes < ttft {
		return d, nil, fmt.Errorf("--ttft: %s is longer than --duration %s, of which it is a part", f.ttft, f.takes)
	}
	if f.hasRate {
		if f.ofPeople != "" {
			return d, nil, fmt.Errorf("--%s beside --per-minute (want --people with it: it tells of them)", f.ofPeople)
		}
		return estimate.Demand{PerMinute: f.perMinute, TTFTSeconds: ttft, StreamSeconds: takes - ttft}, nil, nil
	}
	crowd := &estimate.Crowd{People: f.people}
	if crowd.Active, err = parsed("active", f.active, estimate.ParseShare); err != nil {
		return d, nil, err
	}
	if crowd.EverySeconds, err = parsed("every", f.every, parseSeconds); err != nil {
		return d, nil, err
	}
	d, err = crowd.Demand(ttft, takes-ttft)
	return d, crowd, err
}

// costFlags are those of estimate cost.
type costFlags struct {
	output                          outputFlags
	throughput, utilisation, demand string
	price                           estimate.Price
}

func newEstimateCost() *cobra.Command {
	var f costFlags
	c := &cobra.Command{
		Use:   "cost",
		Short: "What tokens cost",
		Long: `Estimate the price of tokens from that of the GPUs and from what they deliver together: at capacity,
and at the utilisation that there is.`,
		Example: `  clifftop estimate cost --gpu-hour 3 --throughput 4000tok/s
  clifftop estimate cost --gpu-hour 3 --gpus 4 --throughput 9000tok/s --utilisation 30%
  clifftop estimate cost --gpu-hour 3 --throughput 4000tok/s --demand 1200tok/s`,
		Args: cobra.NoArgs,
		RunE: f.run,
	}
	f.output.register(c, estimateFormats[:]...)
	flags := c.Flags()
	flags.Float64Var(&f.price.USDPerGPUHour, "gpu-hour", 3, "`USD` that a GPU costs per hour")
	flags.Float64Var(&f.price.GPUs, "gpus", 1, "`N` GPUs")
	flags.StringVar(&f.throughput, "throughput", "", "`RATE` that all GPUs deliver together when busy, such as 4000tok/s")
	flags.StringVar(&f.utilisation, "utilisation", "", "`SHARE` of it that is asked for, such as 30%")
	flags.StringVar(&f.demand, "demand", "", "`RATE` that is asked for, in place of --utilisation")
	return c
}

func (f *costFlags) run(c *cobra.Command, _ []string) error {
	if err := f.output.validate(); err != nil {
		return err
	}
	if err := f.setPrice(); err != nil {
		return err
	}
	r, err := estimate.Cost(f.price)
	if err != nil {
		return err
	}
	return printEstimate(c, r, f.output.format)
}

// setPrice reads the flags with units. What is asked for may be given as a rate or as a share of the throughput.
func (f *costFlags) setPrice() (err error) {
	p := &f.price
	if f.throughput == "" {
		return errors.New("--throughput is missing (want what all GPUs deliver, such as 4000tok/s)")
	}
	if p.TokensPerSecond, err = parsed("throughput", f.throughput, estimate.ParseRate); err != nil {
		return err
	}
	switch {
	case f.demand != "" && f.utilisation != "":
		return errors.New("--demand beside --utilisation (want one of them)")
	case f.demand != "":
		asked, err := parsed("demand", f.demand, estimate.ParseRate)
		if err != nil {
			return err
		}
		if asked > p.TokensPerSecond {
			return fmt.Errorf("--demand: %s is more than the throughput %s", f.demand, f.throughput)
		}
		p.Utilisation = asked / p.TokensPerSecond
	case f.utilisation != "":
		p.Utilisation, err = parsed("utilisation", f.utilisation, estimate.ParseShare)
	}
	return err
}

func newEstimateLatency() *cobra.Command {
	var output outputFlags
	var ttft, speed, against string
	a := estimate.Answer{}
	c := &cobra.Command{
		Use:   "latency",
		Short: "How long an answer takes, and how that feels",
		Long: `Estimate how long an answer takes from its time to first token and the speed of its stream, which is
a time per token (200ms) or a rate (5tok/s): the unit must be given.`,
		Example: `  clifftop estimate latency --ttft 4s --speed 10tok/s --tokens 300
  clifftop estimate latency --ttft 500ms --speed 10tok/s --tokens 400 --against 3s,40tok/s`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			err := output.validate()
			if err != nil {
				return err
			}
			if a.Stream, err = parseStream("ttft", ttft, "speed", speed); err != nil {
				return err
			}
			if against != "" {
				first, then, ok := strings.Cut(against, ",")
				if !ok {
					return fmt.Errorf("--against: %q is not another stream (want TTFT,SPEED such as 3s,40tok/s)", against)
				}
				other, err := parseStream("against", first, "against", then)
				if err != nil {
					return err
				}
				a.Against = &other
			}
			r, err := estimate.Latency(a)
			if err != nil {
				return err
			}
			return printEstimate(c, r, output.format)
		},
	}
	output.register(c, estimateFormats[:]...)
	flags := c.Flags()
	flags.StringVar(&ttft, "ttft", "500ms", "`TIME` to the first token")
	flags.StringVar(&speed, "speed", "20tok/s", "`SPEED` of the stream: a time per token such as 50ms, or a rate such as 20tok/s")
	flags.IntVar(&a.Tokens, "tokens", 300, "`N` tokens of the answer")
	flags.StringVar(&against, "against", "", "compare with another `TTFT,SPEED`")
	flags.Float64Var(&a.WordsPerMinute, "words-per-minute", estimate.ReadingWordsPerMinute, "`N` words that a reader reads in a minute")
	flags.Float64Var(&a.TokensPerWord, "tokens-per-word", estimate.TokensPerWord, "`N` tokens of a word, by tokenizer and language")
	flags.Float64Var(&a.CharsPerToken, "chars-per-token", 0, "`N` characters of a token, by tokenizer and language; 0 is unknown")
	return c
}

func parseStream(ttftFlag, ttft, speedFlag, speed string) (s estimate.Stream, err error) {
	if s.TTFTSeconds, err = parsed(ttftFlag, ttft, parseSeconds); err != nil {
		return s, err
	}
	s.Speed, err = parsed(speedFlag, speed, estimate.ParseSpeed)
	return s, err
}

func newEstimateKV() *cobra.Command {
	var scenario scenarioFlags
	var output outputFlags
	var lengths []int
	c := &cobra.Command{
		Use:   "kv [SCENARIO]",
		Short: "Whether a model fits, and how many requests its KV cache holds",
		Long: `Say whether a model fits its GPUs, what is missing if not, and how many requests its KV cache holds at
once, at the lengths of the scenario's traffic or at those of --length.`,
		Example: `  clifftop estimate kv --model llama-3.1-70b --gpu h200 --set deployment.dtype=fp16
  clifftop estimate kv --model llama-3.1-70b --gpu h100 --tp 4 --length 4096,32768`,
		Args: atMostOne("scenario"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := output.validate(); err != nil {
				return err
			}
			s, err := scenario.load(args)
			if err != nil {
				return err
			}
			r, err := estimate.KV(s, lengths)
			if err != nil {
				return err
			}
			return printEstimate(c, r, output.format)
		},
	}
	scenario.register(c)
	output.register(c, estimateFormats[:]...)
	c.Flags().IntSliceVar(&lengths, "length", nil, "`N` tokens of a request, prompt and answer; may be repeated")
	return c
}
