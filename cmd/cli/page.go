package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments"
	"clifftop/report/page"
)

// pageName is the file name of a result as a web page.
const pageName = "report.html"

// writePage writes a result as a web page that names the command which repeats it. The error is the one of making the
// page.
func writePage(c *cobra.Command, dir *console.Directory, p *page.Page, err error) error {
	if err != nil {
		return err
	}
	p.Origin.Command = repeatCommand(c, os.Args[1:])
	return dir.Write(pageName, p.Write)
}

// machine returns the peak rates of a replica for the roofline of a page. The peak may be nil.
func machine(peak *experiments.Peak) page.Machine {
	if peak == nil {
		return page.Machine{}
	}
	return page.Machine{FLOPsPerS: peak.FLOPsPerS, BytesPerS: peak.BytesPerS}
}

// repeatCommand returns the command line for a shell, without the flags that change no result.
func repeatCommand(c *cobra.Command, args []string) string {
	words := []string{"clifftop"}
	for i := 0; i < len(args); i++ {
		name, alone := flagOf(c, args[i])
		switch name {
		case "out", "jobs", "progress", "quiet", "check", "format", "save":
			if !alone && i+1 < len(args) {
				i++ // skip the value
			}
		default:
			words = append(words, quoted(args[i]))
		}
	}
	return strings.Join(words, " ")
}

// flagOf returns the long name of the flag in an argument, or "" for other arguments. The second result reports that
// no value follows in the next argument.
func flagOf(c *cobra.Command, arg string) (name string, alone bool) {
	if !strings.HasPrefix(arg, "-") || len(arg) < 2 {
		return "", true
	}
	name, _, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	f := c.Flags().Lookup(name)
	if !strings.HasPrefix(arg, "--") {
		f, joined = c.Flags().ShorthandLookup(name[:1]), joined || len(name) > 1
	}
	if f == nil {
		return "", true
	}
	return f.Name, joined || f.NoOptDefVal != ""
}

// quoted returns an argument such that a shell reads it as one word.
func quoted(arg string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("-_=.,:/+@%", r)
	}
	if arg != "" && strings.IndexFunc(arg, func(r rune) bool { return !plain(r) }) < 0 {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
