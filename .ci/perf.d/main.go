// Command perf counts what commands of Clifftop cost under callgrind, and fails if they cost more than before.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const usage = `.ci/perf [OPTION]...     compares the costs of the working tree with the bases in .ci/perf-base:
                         fails if it is slower. docs/testing.md has more.
.ci/perf count [-case REGEXP] [-sizes FEW,MANY] [-functions N] [-jobs N] BINARY|COMMIT|. ...
                         prints counts of cases; . is the working tree
.ci/perf times [-case REGEXP] [-rounds N] BINARY|COMMIT|. ...
                         prints CPU times and memory of whole processes, run in turn
`

func main() {
	err := command(os.Args[1], os.Args[2:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "perf:", err)
		os.Exit(1)
	}
}

func command(root string, args []string) error {
	scratch, err := os.MkdirTemp("", "clifftop-perf-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	b := &Builder{root: root, scratch: scratch}
	if len(args) > 0 && args[0] == "count" {
		return count(b, args[1:])
	}
	if len(args) > 0 && args[0] == "times" {
		return whole(b, args[1:])
	}
	return check(b, args)
}

// count prints the counts of binaries or commits.
func count(b *Builder, args []string) error {
	set := flag.NewFlagSet("count", flag.ContinueOnError)
	pattern := set.String("case", "", "cases whose names match")
	sizes := set.String("sizes", "", "two sizes in requests, in place of those of the cases")
	jobs := set.Int("jobs", 2, "processes at once")
	functions := set.Int("functions", 0, "print the N functions with the most instructions")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() == 0 {
		return errors.New("count needs a binary, a commit, or . for the working tree")
	}
	list, err := choose(*pattern, *sizes)
	if err != nil {
		return err
	}
	for i, target := range set.Args() {
		binary, err := b.target(target, fmt.Sprintf("binary-%d", i))
		if err != nil {
			return err
		}
		fmt.Printf("%s\n%-22s %14s %10s %10s %10s %12s\n", target, "", "instr", "I1 miss", "D1 miss", "mispred",
			"start-up")
		err = measure(binary, list, *jobs, b.scratch, func(c Case, m *Measured) {
			fmt.Printf("%-22s %14.1f %10.1f %10.1f %10.1f %10.1f M\n", c.Name, m.Counts[0], m.Counts[1], m.Counts[2],
				m.Counts[3], m.Start/1e6)
			m.printFunctions(*functions)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// choose returns the cases whose names match, with other sizes if they are given.
func choose(pattern, sizes string) ([]Case, error) {
	match, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	var list []Case
	for _, c := range cases() {
		if !match.MatchString(c.Name) {
			continue
		}
		if sizes != "" && len(c.Sizes) == 2 {
			few, many, _ := strings.Cut(sizes, ",")
			a, errA := strconv.Atoi(few)
			z, errZ := strconv.Atoi(many)
			if errA != nil || errZ != nil || a < 1 || a >= z {
				return nil, fmt.Errorf("-sizes %s: want two numbers of requests, such as 500,4500", sizes)
			}
			c.Sizes = []int{a, z}
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no case matches %s", pattern)
	}
	return list, nil
}

// target returns the binary of a path, or builds a commit or the working tree.
func (b *Builder) target(target, name string) (Binary, error) {
	if info, err := os.Stat(target); err == nil && info.Mode().IsRegular() {
		path := b.scratch + "/" + name + "/clifftop"
		if err := copyFile(target, path); err != nil {
			return Binary{}, err
		}
		return Binary{Name: target, Path: path}, os.Chmod(path, 0o755)
	}
	commit := target
	if target != "." {
		var err error
		if commit, err = b.commit(target); err != nil {
			return Binary{}, fmt.Errorf("%s is no file, and %w", target, err)
		}
	}
	path, err := b.buildCommit(name, commit)
	return Binary{Name: target, Path: path}, err
}

// printFunctions prints the functions with the most instructions of their own: calls, instructions, and those with
// all that they call.
func (m *Measured) printFunctions(n int) {
	names := slices.Collect(maps.Keys(m.self))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(m.self[b], m.self[a]), strings.Compare(a, b))
	})
	for i, name := range names[:min(n, len(names))] {
		if i == 0 {
			fmt.Printf("  %10s %10s %10s\n", "calls", "own", "all")
		}
		all := m.into(func(other string) bool { return other == name })
		fmt.Printf("  %10.3f %10.1f %10.1f %s\n", all.calls, m.self[name], all.instr, name)
	}
}
