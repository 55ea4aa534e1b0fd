package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// playFlags are those of play.
type playFlags struct {
	port           int
	static, source string
	quiet          bool
}

func newPlay() *cobra.Command {
	var f playFlags
	c := &cobra.Command{
		Use:   "play [DIR]",
		Short: "The simulator in a browser, with sliders, curves and the lessons",
		Long: `Serve a page in which the simulator itself runs, compiled to WebAssembly: sliders for model, GPU,
traffic and engine, the curve, the batch and the KV pool as they change, and the ten lessons as tours.
What is shown can be shared as an address and copied as a scenario for the command line. Nothing
leaves the machine: the page is served to this machine alone and asks nobody else for anything.

The first start compiles the page's program with the Go toolchain from the source of clifftop, which
takes some seconds; later ones find it compiled. With --static the page is written into a
directory, for any web server, and play DIR serves such a directory where there is no Go.`,
		Example: `  clifftop play
  clifftop play --port 8080
  clifftop play --static public`,
		Args: atMostOne("directory"),
		RunE: f.run,
	}
	flags := c.Flags()
	flags.IntVarP(&f.port, "port", "p", 0, "serve at port `N` (default any that is free)")
	flags.StringVar(&f.static, "static", "", "write the page into `DIR` instead of serving it")
	flags.StringVar(&f.source, "source", "", "the source of clifftop is in `DIR` (default where this program was made, or the working directory)")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no word of what is done")
	return c
}

func (f *playFlags) run(c *cobra.Command, args []string) error {
	if f.port < 0 || f.port > 65535 {
		return fmt.Errorf("--port: %d is not allowed (want 1 to 65535, or 0 for any that is free)", f.port)
	}
	say := func(format string, a ...any) {
		if !f.quiet {
			fmt.Fprintf(c.ErrOrStderr(), "clifftop: "+format+"\n", a...)
		}
	}
	if len(args) == 0 {
		return f.build(c, say)
	}
	if f.static != "" || f.source != "" {
		return fmt.Errorf("play %s serves a page that is whole (want it without --static and --source)", args[0])
	}
	site, err := writtenSite(args[0])
	if err != nil {
		return err
	}
	return serveSite(c, site, f.port, say)
}

// build makes the page from the source, and serves it or writes it.
func (f *playFlags) build(c *cobra.Command, say func(string, ...any)) error {
	var dir *directory
	if f.static != "" {
		var err error
		if dir, err = openDirectoryOf("--static", f.static); err != nil {
			return err
		}
	}
	site, err := buildSite(c.Context(), f.source, say)
	if err != nil {
		return err
	}
	if dir != nil {
		return writeSite(dir, site, say)
	}
	return serveSite(c, site, f.port, say)
}

// writeSite writes the page for another web server.
func writeSite(dir *directory, site *site, say func(string, ...any)) error {
	for _, name := range site.names() {
		err := dir.write(name, func(w io.Writer) error {
			_, err := w.Write(site.files[name])
			return err
		})
		if err != nil {
			return failed(err)
		}
	}
	say("wrote the page into %s; any web server can serve it, and clifftop play %[1]s does", dir.path)
	return nil
}

// serveSite serves the page on the loopback interface until it is interrupted.
func serveSite(c *cobra.Command, site *site, port int, say func(string, ...any)) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return failed(fmt.Errorf("--port: %d is in use (want another, or none for any that is free)", port))
	case errors.Is(err, fs.ErrPermission):
		return failed(fmt.Errorf("--port: %d is not for everybody (want 1024 or more)", port))
	case err != nil:
		return failed(fmt.Errorf("--port: %w", err))
	}
	server := &http.Server{Handler: site, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(c.Context(), func() {
		end, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = server.Shutdown(end)
	})
	defer stop()
	if _, err := fmt.Fprintf(c.OutOrStdout(), "http://%s/\n", listener.Addr()); err != nil {
		return failed(cmp.Or(err, listener.Close()))
	}
	say("open this in a browser; interrupt (Ctrl-C) ends it")
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return failed(err)
	}
	say("the page is no longer served")
	return nil
}
