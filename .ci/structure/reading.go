package structure

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// plainRuns are the runs whose functions a reader of the simulator meets first. Each makes 2,000 requests.
var plainRuns = []struct {
	name    string
	measure int
	args    []string
}{
	{"P1", 1, []string{"--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--set", "engine.enable_prefix_caching=false",
		"--set", "engine.max_num_seqs=256", "--set", "workload.arrivals={process: poisson, rate: 20}",
		"--set", "workload.input={distribution: lognormal, mean: 512, cv: 0.8}",
		"--set", "workload.output={distribution: lognormal, mean: 256, cv: 0.8}"}},
	{"P2", 2, []string{"--rate", "10"}},
}

// reading is measures 1, 2 and 3. It builds the program with counters of statements, in a folder for temporary files.
// Measures 1 and 2 are the functions of sim, without simtest, with an executed statement; their lines, from the doc
// comment to the closing brace; their files; and the types of their receivers. Measure 3 is how many of them are in
// files of optional features, which are off in these runs.
func reading(m *module, f *figures, list, temp string) error {
	features, err := optionalFiles(m.root, list)
	if err != nil {
		return err
	}
	program := filepath.Join(temp, "clifftop")
	build := exec.Command("go", "build", "-pgo=off", "-cover", "-coverpkg="+m.path+"/cmd/clifftop,"+m.path+"/sim/...",
		"-o", program, "./cmd/clifftop")
	if err := m.command(build); err != nil {
		return err
	}
	for _, r := range plainRuns {
		counters, profile := filepath.Join(temp, r.name), filepath.Join(temp, r.name+".profile")
		if err := os.Mkdir(counters, 0o777); err != nil {
			return err
		}
		args := append([]string{"run", "--requests", "2000", "--format", "json", "--quiet"}, r.args...)
		run := exec.Command(program, args...)
		run.Env = append(os.Environ(), "GOCOVERDIR="+counters)
		if err := m.command(run); err != nil {
			return err
		}
		covered := exec.Command("go", "tool", "covdata", "textfmt", "-i="+counters, "-o="+profile)
		if err := m.command(covered); err != nil {
			return err
		}
		executed, err := readProfile(profile, m.path)
		if err != nil {
			return err
		}
		m.readingSet(f, r.measure, r.name, executed, features)
	}
	return nil
}

// command runs a command in the module's folder. What it says is part of the error.
func (m *module) command(c *exec.Cmd) error {
	c.Dir = m.root
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, said.String())
	}
	return nil
}

// optional is a file or folder, or the beginning of the names of files, of an optional feature.
type optional struct{ feature, path string }

// optionalFiles reads a list of optional files. Each path must exist below root.
func optionalFiles(root, file string) (list []optional, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(words) != 2 {
			return nil, fmt.Errorf("%s: %q (want feature and path)", file, line)
		}
		if found, _ := filepath.Glob(filepath.Join(root, words[1]) + "*"); len(found) == 0 {
			return nil, fmt.Errorf("%s: no file begins with %s (want its new path)", file, words[1])
		}
		list = append(list, optional{words[0], words[1]})
	}
	return list, nil
}

// readProfile returns the first and last lines of executed statements by file, with paths below the module.
func readProfile(profile, modulePath string) (map[string][][2]int, error) {
	file, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	executed := map[string][][2]int{}
	s := bufio.NewScanner(file)
	for s.Scan() {
		name, block, ok := strings.Cut(strings.TrimPrefix(s.Text(), modulePath+"/"), ":")
		if !ok || name == "mode" {
			continue
		}
		var from, to, column, statements, count int
		_, err := fmt.Sscanf(block, "%d.%d,%d.%d %d %d", &from, &column, &to, &column, &statements, &count)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", profile, s.Text(), err)
		}
		if statements > 0 && count > 0 {
			executed[name] = append(executed[name], [2]int{from, to})
		}
	}
	return executed, s.Err()
}

// readingSet counts the executed functions of a run.
func (m *module) readingSet(f *figures, measure int, run string, executed map[string][][2]int, features []optional) {
	functions, lines, off := 0, 0, 0
	files, receivers := map[string]bool{}, map[string]bool{}
	for _, p := range m.packages {
		if !p.within("sim/...") || p.within("sim/simtest/...") {
			continue
		}
		for _, syntax := range p.Syntax {
			file := m.below(m.fset.Position(syntax.Package).Filename)
			for _, decl := range syntax.Decls {
				d, ok := decl.(*ast.FuncDecl)
				if !ok || d.Body == nil {
					continue
				}
				from, to := m.fset.Position(d.Pos()).Line, m.fset.Position(d.End()).Line
				if !slices.ContainsFunc(executed[file], func(r [2]int) bool { return from <= r[0] && r[1] <= to }) {
					continue
				}
				name := d.Name.Name
				if d.Recv != nil {
					name = receiver(d.Recv.List[0].Type) + "." + name
					receivers[path.Join(p.short, receiver(d.Recv.List[0].Type))] = true
				}
				if d.Doc != nil {
					from = m.fset.Position(d.Doc.Pos()).Line
				}
				functions, lines, files[file] = functions+1, lines+to-from+1, true
				f.detail(measure, p.short, fmt.Sprintf("%s: %s, %d lines", m.position(d.Pos()), name, to-from+1))
				belongs := func(o optional) bool { return strings.HasPrefix(file, o.path) }
				if i := slices.IndexFunc(features, belongs); i >= 0 {
					off++
					f.detail(3, p.short, fmt.Sprintf("%s: %s of %s, in %s", m.position(d.Pos()), name,
						features[i].feature, run))
				}
			}
		}
	}
	f.set(measure, run, "functions", functions)
	f.set(measure, run, "lines", lines)
	f.set(measure, run, "files", len(files))
	f.set(measure, run, "receiver types", len(receivers))
	f.set(3, run, "functions", off)
}
