// Command corpus runs a fixed list of clifftop commands, keeps every output, and compares two sets of outputs.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
)

func main() {
	if err := start(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "corpus:", err)
		os.Exit(1)
	}
}

// start runs one of the two modes with the cases in folder.
func start(folder string, args []string) error {
	flags := flag.NewFlagSet("corpus", flag.ExitOnError)
	jobs := flags.Int("j", 2, "cases at a time")
	every := flags.Int("every", 1, "run each N-th case only")
	numbers := flags.Bool("numbers", false, "compare numbers only")
	noStderr := flags.Bool("no-stderr", false, "leave the text of stderr out")
	most := flags.Int("most", 3, "files shown for each case that differs")
	compares := len(args) > 0 && args[0] == "compare"
	if compares {
		args = args[1:]
	}
	var places []string
	for len(args) > 0 { // Flags may stand anywhere.
		if err := flags.Parse(args); err != nil {
			return err
		}
		if args = flags.Args(); len(args) > 0 {
			places, args = append(places, args[0]), args[1:]
		}
	}
	if len(places) != 2 && len(places) != 3 {
		return fmt.Errorf("want BINARY OUT [PATTERN], or compare A B [PATTERN]")
	}
	pattern := regexp.MustCompile("")
	if len(places) == 3 {
		var err error
		if pattern, err = regexp.Compile(places[2]); err != nil {
			return err
		}
	}
	if compares {
		return compare(places[0], places[1], pattern, rules{numbers: *numbers, noStderr: *noStderr, most: *most})
	}
	return runAll(folder, places[0], places[1], selection{pattern, max(1, *every)}, *jobs)
}
