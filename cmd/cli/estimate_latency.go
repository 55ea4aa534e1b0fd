package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/estimate"
)

// latencyCommand is the command estimate latency.
type latencyCommand struct {
	output      console.OutputFlags
	ttft, speed string
	against     string
	answer      estimate.Output
}

func newEstimateLatency() *cobra.Command {
	var l latencyCommand
	c := &cobra.Command{
		Use:   "latency",
		Short: "How long an output takes, and how users perceive it",
		Long: `Estimate the duration of an output from the time to first token and the speed of streaming. The
speed is a time per token (200ms) or a rate (5tok/s); the unit is required.`,
		Example: `  clifftop estimate latency --ttft 4s --speed 10tok/s --tokens 300
  clifftop estimate latency --ttft 500ms --speed 10tok/s --tokens 400 --against 3s,40tok/s`,
		Args: cobra.NoArgs,
		RunE: l.run,
	}
	registerEstimate(c, &l.output)
	a := &l.answer
	flags := c.Flags()
	flags.StringVar(&l.ttft, "ttft", "500ms", "`TIME` to the first token")
	flags.StringVar(&l.speed, "speed", "20tok/s", "`SPEED` of streaming: a time per token such as 50ms, or a rate "+
		"such as 20tok/s")
	flags.IntVar(&a.Tokens, "tokens", 300, "`N` output tokens")
	flags.StringVar(&l.against, "against", "", "compare with another system's `TTFT,SPEED`")
	flags.Float64Var(&a.WordsPerMinute, "words-per-minute", estimate.ReadingWordsPerMinute,
		"reading speed of `N` words per minute")
	flags.Float64Var(&a.TokensPerWord, "tokens-per-word", estimate.TokensPerWord, "`N` tokens per word; depends on "+
		"tokenizer and language")
	flags.Float64Var(&a.CharsPerToken, "chars-per-token", 0, "`N` characters per token; depends on tokenizer and "+
		"language; 0 means unknown")
	return c
}

func (l *latencyCommand) run(c *cobra.Command, _ []string) (err error) {
	a := &l.answer
	if a.Stream, err = parseStream("ttft", l.ttft, "speed", l.speed); err != nil {
		return err
	}
	if l.against != "" {
		ttft, speed, ok := strings.Cut(l.against, ",")
		if !ok {
			return fmt.Errorf("--against: %q is not allowed (want TTFT,SPEED such as 3s,40tok/s)", l.against)
		}
		other, err := parseStream("against", ttft, "against", speed)
		if err != nil {
			return err
		}
		a.Against = &other
	}
	r, err := estimate.Latency(*a)
	if err != nil {
		return err
	}
	return console.Failed(l.output.Print(c, r))
}

// parseStream parses a time to first token and a speed, given by flags.
func parseStream(ttftFlag, ttft, speedFlag, speed string) (s estimate.Stream, err error) {
	if s.TTFTSeconds, err = parsed(ttftFlag, ttft, parseSeconds); err != nil {
		return s, err
	}
	s.Speed, err = parsed(speedFlag, speed, estimate.ParseSpeed)
	return s, err
}
