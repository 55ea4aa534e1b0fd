// Command corpus.d runs a corpus of scenarios and commands with two programs of Clifftop, and compares what they print
// and write: standard output, standard error, exit status and every file, byte by byte. .ci/corpus builds and starts it.
//
//	.ci/corpus                                  # the working tree against the commit before
//	.ci/corpus --quick main                     # a fifth of the scenarios, against main
//	.ci/corpus --expect 'run json saturation\.' # these fields may differ
//
// The scenarios are drawn from a fixed seed by cmd/cli/gate (TestCorpus) and written once, for both programs. Beside them
// are the files of experiments/examples and the commands in commands.go.
//
// A difference is named by command, file and place: "run json latency_ms.ttft.mean", "sweep curve.csv knee". A place in
// JSON has [] for an index; in text it is a line with # for numbers. The exit status is 1 if a difference matches no
// --expect. Keys named effort describe the work of the simulator. They are compared apart, and do not fail.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// Numbers of scenarios.
const (
	fullSize  = 270
	quickSize = 36
)

func main() {
	var expected patterns
	root := flag.String("root", "..", "`folder` of the working tree")
	quick := flag.Bool("quick", false, "run fewer scenarios and commands")
	times := flag.Bool("times", false, "print the CPU time of each case")
	keep := flag.String("keep", "", "keep scenarios and outputs in this new `folder`")
	flag.Var(&expected, "expect", "differences that match this `regex` do not fail; repeatable")
	flag.Func("expect-file", "`file` with an --expect on each line", expected.read)
	flag.Parse()
	if flag.NArg() > 2 {
		fail(fmt.Errorf("%d programs (want OLD and NEW, or less)", flag.NArg()))
	}
	work := *keep
	if work == "" {
		temp, err := os.MkdirTemp("", "corpus-")
		if err != nil {
			fail(err)
		}
		work = temp
	} else if err := os.Mkdir(work, 0o777); err != nil {
		fail(err)
	}
	ok, err := compare(*root, work, flag.Arg(0), flag.Arg(1), *quick, newFindings(expected, *times))
	if *keep == "" {
		os.RemoveAll(work)
	}
	if err != nil {
		fail(err)
	}
	if !ok {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "corpus:", err)
	os.Exit(2)
}

// compare reports whether two programs agree apart from what is expected.
func compare(root, work, oldName, newName string, quick bool, found *findings) (bool, error) {
	begin := time.Now()
	work, err := filepath.Abs(work)
	if err != nil {
		return false, err
	}
	inputs := filepath.Join(work, "in")
	if err := os.MkdirAll(inputs, 0o777); err != nil {
		return false, err
	}
	if oldName == "" {
		if oldName, err = before(root); err != nil {
			return false, err
		}
	}
	var programs [2]program
	for i, name := range []string{oldName, newName} {
		if i > 0 && name == oldName {
			programs[i] = programs[0]
		} else if programs[i], err = prepare(root, filepath.Join(work, sides[i]), name); err != nil {
			return false, err
		}
	}
	size := fullSize
	if quick {
		size = quickSize
	}
	if err := draw(root, inputs, size); err != nil {
		return false, err
	}
	cases, err := corpus(inputs, quick)
	if err != nil {
		return false, err
	}
	if err := runAll(cases, programs, work, inputs, found); err != nil {
		return false, err
	}
	ok := found.print(os.Stdout)
	fmt.Printf("%d cases, %s against %s, in %.0f s on %d processors\n", len(cases), describe(oldName),
		describe(newName), time.Since(begin).Seconds(), runtime.GOMAXPROCS(0))
	return ok, nil
}

func describe(name string) string {
	if name == "" {
		return "the working tree"
	}
	return name
}

// before is the commit to compare the working tree with.
func before(root string) (string, error) {
	changed, err := output(root, "git", "status", "--porcelain")
	if err != nil || changed != "" {
		return "HEAD", err
	}
	return "HEAD~1", nil
}

// program is a program to run.
type program struct {
	path    string
	version *regexp.Regexp // its version, where it stands in an output
}

// prepare returns a program, or builds one from a commit or, without a name, from the working tree.
func prepare(root, folder, name string) (program, error) {
	path := name
	if info, err := os.Stat(name); name == "" || err != nil || info.IsDir() {
		source := root
		if name != "" {
			source = filepath.Join(folder, "source")
			if err := extract(root, source, name); err != nil {
				return program{}, err
			}
		}
		path = filepath.Join(folder, "clifftop")
		_, err := output(source, "go", "build", "-trimpath", "-buildvcs=false", "-pgo=off", "-o", path, "./cmd/clifftop")
		if err != nil {
			return program{}, err
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return program{}, err
	}
	text, err := output(".", path, "version")
	if err != nil {
		return program{}, err
	}
	version := regexp.QuoteMeta(strings.TrimPrefix(text, "clifftop "))
	return program{path, regexp.MustCompile(`((?i:clifftop)(?:[" :/=]|version)*)` + version)}, nil
}

// extract writes the files of a commit into a folder.
func extract(root, folder, commit string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	archive := folder + ".tar"
	if _, err := output(root, "git", "archive", "-o", archive, commit); err != nil {
		return fmt.Errorf("%s is neither a program nor a commit: %w", commit, err)
	}
	defer os.Remove(archive)
	_, err := output(folder, "tar", "-xf", archive)
	return err
}

// draw writes scenarios into a folder.
func draw(root, folder string, size int) error {
	_, err := output(root, "go", "test", "./cmd/cli/gate", "-run", "^TestCorpus$", "-count=1", "-corpus", folder,
		"-corpus.size", fmt.Sprint(size))
	if err != nil {
		return err
	}
	for _, from := range []struct{ name, folder string }{
		{"examples", "experiments/examples"}, {"launch", "experiments/launch/export/testdata"},
		{"launch", "experiments/launch/manifest/testdata"}, {"data", ".ci/corpus.d/testdata"},
	} {
		if err := os.CopyFS(filepath.Join(folder, from.name), os.DirFS(filepath.Join(root, from.folder))); err != nil {
			return err
		}
	}
	return nil
}

// output runs a command in a folder and returns what it prints.
func output(folder string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir = folder
	text, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, text)
	}
	return strings.TrimSpace(string(text)), nil
}

// patterns are the differences that do not fail.
type patterns []*regexp.Regexp

func (p *patterns) String() string { return "" }

func (p *patterns) Set(text string) error {
	r, err := regexp.Compile(text)
	if err == nil {
		*p = append(*p, r)
	}
	return err
}

// read adds the lines of a file. Empty lines and those that begin with # are left out.
func (p *patterns) read(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := p.Set(line); err != nil {
			return err
		}
	}
	return nil
}

func (p patterns) match(text string) bool {
	for _, r := range p {
		if r.MatchString(text) {
			return true
		}
	}
	return false
}
