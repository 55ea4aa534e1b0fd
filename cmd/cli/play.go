package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
)

type playCommand struct {
	output         console.OutputFlags
	port           int
	static, source string
}

func newPlay() *cobra.Command {
	var p playCommand
	c := &cobra.Command{
		Use:   "play [DIR]",
		Short: "Run the simulator in a browser, with sliders, charts and lessons",
		Long: `Serve a web page that contains the simulator, compiled to WebAssembly. It has sliders for model, GPU,
traffic and engine, charts of the curve, the batch and the KV pool, and the ten lessons. The state of the
page can be shared as a URL or copied as a scenario for the command line. The page is served to this machine
only and loads nothing from other hosts.

The first start compiles the page's program with the Go toolchain from the source of clifftop, which takes
some seconds. Later starts reuse it. With --static, the page is written into a directory for any web server.
play DIR serves such a directory and needs no Go toolchain.`,
		Example: `  clifftop play
  clifftop play --port 8080
  clifftop play --static public`,
		Args: console.AtMostOne("directory"),
		RunE: p.run,
	}
	flags := c.Flags()
	flags.IntVarP(&p.port, "port", "p", 0, "serve at port `N` (default any free port)")
	flags.StringVar(&p.static, "static", "", "write the page into `DIR` instead of serving it")
	flags.StringVar(&p.source, "source", "", "`DIR` with the source of clifftop (default where this program was "+
		"compiled, or the working directory)")
	p.output.RegisterQuiet(c, "print no messages")
	return c
}

func (p *playCommand) run(c *cobra.Command, args []string) error {
	if p.port < 0 || p.port > 65535 {
		return fmt.Errorf("--port: %d is not allowed (want 1 to 65535, or 0 for any free port)", p.port)
	}
	if len(args) == 0 {
		return p.build(c)
	}
	if p.static != "" || p.source != "" {
		return fmt.Errorf("play %s serves a page that exists already (want no --static and no --source)", args[0])
	}
	site, err := readSite(args[0])
	if err != nil {
		return err
	}
	return p.serve(c, site)
}

// build builds the page from the source, and serves it or writes it.
func (p *playCommand) build(c *cobra.Command) error {
	var dir *console.Directory
	if p.static != "" {
		var err error
		if dir, err = console.OpenDirectory("--static", p.static); err != nil {
			return err
		}
	}
	site, err := buildSite(c.Context(), p.source, func(text string) { p.output.Say(c, "%s", text) })
	if err != nil {
		return err
	}
	if dir == nil {
		return p.serve(c, site)
	}
	for _, name := range site.names() {
		if err := dir.WriteBytes(name, site.files[name]); err != nil {
			return console.Failed(err)
		}
	}
	p.output.Say(c, "wrote the page into %s; any web server can serve it, and so can clifftop play %[1]s", dir.Path)
	return nil
}

// serve serves the page on the loopback interface until it is interrupted.
func (p *playCommand) serve(c *cobra.Command, site *site) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return console.Failed(fmt.Errorf("--port: %d is in use (want another port, or no --port for any free port)",
			p.port))
	case errors.Is(err, fs.ErrPermission):
		return console.Failed(fmt.Errorf("--port: %d needs special permission (want 1024 or more)", p.port))
	case err != nil:
		return console.Failed(fmt.Errorf("--port: %w", err))
	}
	server := &http.Server{Handler: site, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(c.Context(), func() {
		end, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = server.Shutdown(end)
	})
	defer stop()
	if _, err := fmt.Fprintf(c.OutOrStdout(), "http://%s/\n", listener.Addr()); err != nil {
		return console.Failed(cmp.Or(err, listener.Close()))
	}
	p.output.Say(c, "open this address in a browser; an interrupt (Ctrl-C) ends the server")
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return console.Failed(err)
	}
	p.output.Say(c, "the server has ended")
	return nil
}
