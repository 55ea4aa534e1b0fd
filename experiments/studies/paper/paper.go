// Package paper writes the results of a study: a Markdown page and pictures beside it.
package paper

import (
	"context"
	"errors"
	"flag"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"clifftop/report/plot"
)

// Main is the main function of a study. It parses the flags, including -out for the directory, and calls run. It uses
// the exit statuses of clifftop.
func Main(run func(ctx context.Context, out string) error) {
	const usage, interrupted = 2, 130
	log.SetFlags(0)
	out := flag.String("out", ".", "write results.md and pictures into this `directory`")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Printf("unknown argument %q (only flags such as -out are allowed)", flag.Arg(0))
		os.Exit(usage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *out)
	stop()
	switch {
	case errors.Is(err, context.Canceled):
		log.Print("interrupted")
		os.Exit(interrupted)
	case err != nil:
		log.Fatal(err)
	}
}

// Paper collects the results of a study. [Paper.Save] writes them.
type Paper struct {
	// Text is results.md.
	Text strings.Builder
	dir  string
}

// Meaning points to the page that explains the results of a study.
const Meaning = "; [README.md](README.md) explains them."

// New starts the results of a study in dir, which it creates if necessary. study is the name of the study's directory.
// The first sentence gives the command and ends with rest.
func New(dir, study, rest string) (*Paper, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	p := &Paper{dir: dir}
	p.Text.WriteString("# Results\n\nWritten by `go run ./experiments/studies/" + study + "`" + rest + "\n")
	return p, nil
}

// Draw writes a picture, NAME.png.
func (p *Paper) Draw(name string, figure *plot.Figure) error {
	f, err := os.Create(filepath.Join(p.dir, name+".png"))
	if err != nil {
		return err
	}
	if err := figure.WritePNG(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// Save writes results.md, with lines of at most 120 columns outside tables.
func (p *Paper) Save() error {
	return os.WriteFile(filepath.Join(p.dir, "results.md"), []byte(wrap(p.Text.String())), 0o644)
}

// wrap breaks long lines between words. The lines of a list item after the first are indented. Tables stay as they are.
func wrap(text string) string {
	const columns = 120
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#") {
			b.WriteString(line)
			continue
		}
		indent := ""
		if strings.HasPrefix(line, "* ") {
			indent = "  "
		}
		width := 0
		for i, word := range strings.Split(strings.TrimSuffix(line, "\n"), " ") {
			n := utf8.RuneCountInString(word)
			switch {
			case i == 0:
			case width+1+n > columns:
				b.WriteString("\n" + indent)
				width = len(indent)
			default:
				b.WriteByte(' ')
				width++
			}
			b.WriteString(word)
			width += n
		}
		b.WriteByte('\n')
	}
	return b.String()
}
