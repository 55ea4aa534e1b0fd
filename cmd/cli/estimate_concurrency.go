package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/estimate"
)

// concurrencyCommand is the command estimate concurrency.
type concurrencyCommand struct {
	scenario           scenarioFlags
	output             console.OutputFlags
	perMinute, people  float64
	active, every      string
	ttft, duration     string
	hasRate, hasPeople bool   // --per-minute, --people
	hasDuration        bool   // --duration
	needsPeople        string // a given flag that only goes with --people
}

func newEstimateConcurrency() *cobra.Command {
	var f concurrencyCommand
	c := &cobra.Command{
		Use:   "concurrency [SCENARIO]",
		Short: "How many requests are in the system at once",
		Long: `Estimate how many requests are in the system at once, from the requests per minute, or from the
number of people who use the service, and from the duration of a request. With a scenario, --model or --gpu a
simulation finds the duration, because it depends on the number of requests.`,
		Example: `  clifftop estimate concurrency --per-minute 4 --duration 30s
  clifftop estimate concurrency --people 100 --active 20% --every 5m --ttft 4s --duration 34s
  clifftop estimate concurrency --people 5000 --active 20% --every 1m --model llama-3.1-8b --gpu l40s`,
		Args: console.AtMostOne("scenario"),
		RunE: f.run,
	}
	f.scenario.register(c)
	registerEstimate(c, &f.output)
	flags := c.Flags()
	flags.Float64Var(&f.perMinute, "per-minute", 0, "`N` requests per minute at the busiest time")
	flags.Float64Var(&f.people, "people", 0, "`N` people who may use the service, instead of --per-minute")
	flags.StringVar(&f.active, "active", "20%", "`SHARE` of people who are active at the busiest time")
	flags.StringVar(&f.every, "every", "5m", "`TIME` between two requests of an active person")
	flags.StringVar(&f.duration, "duration", "", "`TIME` from sending a request to its last token")
	flags.StringVar(&f.ttft, "ttft", "0", "`TIME` to the first token, a part of --duration")
	return c
}

func (f *concurrencyCommand) run(c *cobra.Command, args []string) error {
	f.noteGiven(c)
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
		return console.Failed(f.output.Print(c, r))
	}
	s, err := f.scenario.load(args)
	if err != nil {
		return err
	}
	r, err := estimate.AtLoad(c.Context(), s, d, crowd)
	if err != nil {
		return console.Failed(err)
	}
	return console.Failed(f.output.Print(c, r))
}

// noteGiven notes which flags were given.
func (f *concurrencyCommand) noteGiven(c *cobra.Command) {
	given := c.Flags().Changed
	f.hasRate, f.hasPeople, f.hasDuration = given("per-minute"), given("people"), given("duration")
	for _, name := range []string{"active", "every"} {
		if given(name) {
			f.needsPeople = name
		}
	}
}

// demand returns the demand that the flags describe, and the crowd behind it, if any. A simulation finds the duration
// of a request by itself.
func (f *concurrencyCommand) demand(simulated bool) (estimate.Demand, *estimate.Crowd, error) {
	var d estimate.Demand
	if err := f.checkDemand(simulated); err != nil {
		return d, nil, err
	}
	ttft, err := parsed("ttft", f.ttft, parseSeconds)
	if err != nil {
		return d, nil, err
	}
	duration := ttft + 1 // a simulation ignores it
	if !simulated {
		if duration, err = parsed("duration", f.duration, parseSeconds); err != nil {
			return d, nil, err
		}
	}
	if duration < ttft {
		return d, nil, fmt.Errorf("--ttft: %s is longer than --duration %s (want a part of it)", f.ttft, f.duration)
	}
	if f.hasRate {
		return estimate.Demand{PerMinute: f.perMinute, TTFTSeconds: ttft, StreamSeconds: duration - ttft}, nil, nil
	}
	crowd := &estimate.Crowd{People: f.people}
	if crowd.Active, err = parsed("active", f.active, estimate.ParseShare); err != nil {
		return d, nil, err
	}
	if crowd.EverySeconds, err = parsed("every", f.every, parseSeconds); err != nil {
		return d, nil, err
	}
	d, err = crowd.Demand(ttft, duration-ttft)
	return d, crowd, err
}

// checkDemand rejects missing and conflicting flags.
func (f *concurrencyCommand) checkDemand(simulated bool) error {
	switch {
	case f.hasRate == f.hasPeople:
		return errors.New("want one of --per-minute and --people\n" +
			"hint: clifftop estimate concurrency --people 100 --active 20% --every 5m --duration 30s")
	case simulated && f.hasDuration:
		return errors.New("--duration is given together with a scenario " +
			"(want one of them: the simulation finds the duration)")
	case !simulated && !f.hasDuration:
		return errors.New("--duration is missing (want the time of a request, such as 30s, or a scenario to simulate)")
	case f.hasRate && f.needsPeople != "":
		return fmt.Errorf("--%s is given together with --per-minute (want --people with it)", f.needsPeople)
	}
	return nil
}
