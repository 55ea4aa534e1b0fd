package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/live/api"
	"clifftop/experiments/live/text"
	"clifftop/experiments/record"
)

type recordCommand struct {
	output    console.OutputFlags
	upstream  string
	listen    string
	out       string
	tokenizer string
	grace     time.Duration
}

func newRecord() *cobra.Command {
	var r recordCommand
	c := &cobra.Command{
		Use:   "record --upstream URL --out FILE",
		Short: "Record the traffic of a real endpoint as a trace",
		Long: `Forward requests to an OpenAI-compatible or SGLang server, and write a trace: arrivals, lengths, ` +
			`outcomes, the
times of the output, conversations, and the prefixes that prompts share as salted hashes. The trace has no text, no
keys and no addresses. Point clients at this address instead of the server's; headers and bodies pass unchanged.

run --trace simulates the same requests; verify holds a simulation against the times that the clients saw. The
request lengths are those that the server reports. Without its usage report, a chunk of a stream is one token.`,
		Example: `  clifftop record --upstream http://10.0.0.7:8000 --out trace.csv.gz
  clifftop run scenario.yaml --trace trace.csv.gz
  clifftop verify scenario.yaml --measured trace.csv.gz`,
		Args: cobra.NoArgs,
		RunE: r.run,
	}
	flags := c.Flags()
	flags.StringVar(&r.upstream, "upstream", "", "`URL` of the server, such as http://10.0.0.7:8000")
	flags.StringVar(&r.listen, "listen", "127.0.0.1:8000", "serve at `ADDRESS`")
	flags.StringVarP(&r.out, "out", "o", "", "write the trace to `FILE`; .gz compresses")
	flags.StringVar(&r.tokenizer, "tokenizer", "", "find shared prefixes with a tokenizer.json `FILE` (default an "+
		"estimate)")
	flags.DurationVar(&r.grace, "grace", 15*time.Second, "let requests go on for this `TIME` after an interrupt")
	r.output.RegisterQuiet(c, "print no messages")
	return c
}

func (r *recordCommand) server() (*url.URL, error) {
	const want = "(want for example http://10.0.0.7:8000)"
	if r.upstream == "" {
		return nil, fmt.Errorf("--upstream is missing %s", want)
	}
	u, err := url.Parse(r.upstream)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("--upstream: %q is not the URL of a server %s", r.upstream, want)
	case u.User != nil:
		return nil, errors.New("--upstream: the URL has a name or a password (want them in the headers of the clients)")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("--upstream: %q has more than a path %s", r.upstream, want)
	}
	return u, nil
}

func (r *recordCommand) run(c *cobra.Command, _ []string) error {
	upstream, err := r.server()
	switch {
	case err != nil:
		return err
	case r.out == "":
		return errors.New("--out is missing (want the name of the trace, such as trace.csv.gz)")
	case r.grace < 0:
		return fmt.Errorf("--grace: %v is negative (want 0 or more)", r.grace)
	}
	tokens, err := readTokenizer(r.tokenizer)
	if err != nil {
		return err
	}
	ports, err := api.Listen(r.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	at := ports[0].Addr()
	defer ports[0].Close()
	if at.String() == upstream.Host {
		return fmt.Errorf("--listen: %s is the server itself (want another port)", at)
	}
	file, err := newTraceFile("--out", r.out)
	if err != nil {
		return err
	}
	logger := log.New(c.ErrOrStderr(), "clifftop: ", 0)
	recorder, err := record.New(record.Options{Upstream: upstream, Out: file, Tokenizer: tokens, Log: logger,
		Failed: func(err error) {
			r.output.Warn(c, []string{fmt.Sprintf("recording ends, and requests are still forwarded: %s: %s", r.out,
				console.Cause(err))})
		}})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c.OutOrStdout(), "http://%s\n", at); err != nil {
		return console.Failed(err)
	}
	if api.Exposed(at) {
		r.output.Warn(c, []string{fmt.Sprintf("other machines can reach %s", at)})
	}
	err = forward(c.Context(), ports[0], recorder, logger, r.grace)
	recorder.Close()
	if recorder.Failed() {
		file.Close()
		err = cmp.Or(err, fmt.Errorf("--out: %s is not complete: recording ended before the requests", r.out))
	} else {
		err = cmp.Or(err, file.Close())
	}
	r.output.Say(c, "%s", recorder.Summary())
	return console.Failed(err)
}

// forward serves until ctx is done, and lets requests go on for the grace period.
func forward(ctx context.Context, l net.Listener, h http.Handler, logger *log.Logger, grace time.Duration) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute,
		MaxHeaderBytes: 1 << 20, ErrorLog: logger}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if s.Shutdown(end) != nil {
		s.Close()
	}
	return err
}

// readTokenizer reads a tokenizer.json; without a name it is nil, which stands for the estimate.
func readTokenizer(name string) (text.Tokenizer, error) {
	if name == "" {
		return nil, nil
	}
	data, err := console.ReadFile("--tokenizer", name)
	if err != nil {
		return nil, err
	}
	v, err := text.NewVocabulary(data)
	if err != nil {
		return nil, fmt.Errorf("--tokenizer: %s: %w", name, err)
	}
	return v, nil
}
