// Command release.d builds the archives of a release, and the list of third-party parts. .ci/release builds and starts
// it, in the folder of the module.
//
//	.ci/release dist                                # all archives, SHA256SUMS, bills of materials
//	.ci/release dist linux/amd64,windows/amd64      # some of them
//	.ci/release notices                             # writes internal/notices/THIRD_PARTY_NOTICES.md
//
// The same commit and toolchain give the same bytes on every machine and in every folder.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	out := flags.String("out", "dist", "write into this `folder`, which must be empty or missing")
	only := flags.String("targets", strings.Join(allTargets(), ","), "build for these `platforms`, separated by commas")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() == 0:
		return release(*out, strings.Split(*only, ","))
	case flags.NArg() == 1 && flags.Arg(0) == "notices":
		return updateNotices()
	}
	return fmt.Errorf("%q is unknown (want notices, or nothing)", flags.Args())
}

func allTargets() []string {
	var names []string
	for _, t := range append(slices.Clone(targets), browser) {
		names = append(names, t.String())
	}
	return names
}

func release(out string, names []string) error {
	for _, name := range names {
		if !slices.Contains(allTargets(), name) {
			return fmt.Errorf("-targets: %q is unknown (want %s)", name, strings.Join(allTargets(), ", "))
		}
	}
	s, err := readSource()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	if there, err := os.ReadDir(out); err != nil {
		return err
	} else if len(there) > 0 {
		return fmt.Errorf("-out: %s is not empty", out)
	}
	for _, t := range targets {
		if slices.Contains(names, t.String()) {
			if err := s.programArchive(t, out); err != nil {
				return err
			}
		}
	}
	if slices.Contains(names, browser.String()) {
		if err := s.pageArchive(out); err != nil {
			return err
		}
	}
	return writeSums(out)
}

func updateNotices() error {
	root, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := generateNotices(&b); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "internal", "notices", "THIRD_PARTY_NOTICES.md"), b.Bytes(), 0o644)
}
