package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	limit   = 20 * time.Minute // for one command, which may use 60 s of CPU time
	packing = 128 << 10        // larger files are kept gzipped
)

// result is what became of one case.
type result struct {
	hash string
	cpu  time.Duration
	err  error
}

// selection chooses cases: every so many of those whose name matches.
type selection struct {
	pattern *regexp.Regexp
	every   int
}

// runAll runs the chosen cases, jobs at a time, and prints a hash for each.
func runAll(folder, binary, out string, choice selection, jobs int) error {
	cases, err := readCases(folder)
	if err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	var wanted []testCase
	links := map[string]string{"in": filepath.Join(folder, "in")}
	for link, place := range map[string]string{"traces": os.Getenv("CLIFFTOP_TRACES"),
		"reference": filepath.Dir(os.Getenv("CLIFFTOP_REFERENCE"))} {
		if _, err := os.Stat(filepath.Join(place, "LICENCES.md")); err == nil {
			links[link] = place
		}
	}
	for i, c := range cases {
		if !choice.pattern.MatchString(c.name) || i%choice.every != 0 {
			continue
		}
		if c.needs("traces") && links["traces"] == "" || c.needs("reference") && links["reference"] == "" {
			fmt.Fprintln(os.Stderr, "left out:", c.name)
		} else {
			wanted = append(wanted, c)
		}
	}
	if err := prepare(binary, out); err != nil {
		return err
	}
	start := time.Now()
	results := make([]result, len(wanted))
	work := make(chan int)
	var group sync.WaitGroup
	for range jobs {
		group.Go(func() {
			for i := range work {
				results[i] = execute(wanted[i], out, links)
			}
		})
	}
	for i := range wanted {
		work <- i
	}
	close(work)
	group.Wait()
	os.RemoveAll(filepath.Join(out, ".bin"))
	return tell(wanted, results, out, time.Since(start))
}

// prepare empties out and puts the binary where commands find it.
func prepare(binary, out string) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	if _, err := os.Stat(binary); err != nil {
		return err
	}
	if entries, _ := os.ReadDir(out); len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(out, "HASHES")); err != nil {
			return fmt.Errorf("%s is not empty and holds no earlier results", out)
		}
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(out, ".bin"), 0o755); err != nil {
		return err
	}
	return os.Symlink(binary, filepath.Join(out, ".bin", "clifftop"))
}

// tell prints the hashes, keeps them in the file HASHES, and names the slowest cases on standard error.
func tell(cases []testCase, results []result, out string, took time.Duration) error {
	var hashes strings.Builder
	var failures []error
	order := make([]int, len(cases))
	for i, c := range cases {
		order[i] = i
		fmt.Fprintf(&hashes, "%s  %s\n", results[i].hash, c.name)
		if results[i].err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", c.name, results[i].err))
		}
	}
	fmt.Print(hashes.String())
	sort.Slice(order, func(a, b int) bool { return results[order[a]].cpu > results[order[b]].cpu })
	for _, i := range order[:min(15, len(order))] {
		fmt.Fprintf(os.Stderr, "%6.1f s  %s\n", results[i].cpu.Seconds(), cases[i].name)
	}
	var cpu time.Duration
	for _, r := range results {
		cpu += r.cpu
	}
	fmt.Fprintf(os.Stderr, "%d cases, %.0f s of CPU time in %.0f s\n", len(cases), cpu.Seconds(), took.Seconds())
	return errors.Join(append(failures, os.WriteFile(filepath.Join(out, "HASHES"), []byte(hashes.String()), 0o644))...)
}

// execute runs the commands of a case in a directory of its own and packs what they wrote.
func execute(c testCase, out string, links map[string]string) result {
	place := filepath.Join(out, c.name)
	if err := os.MkdirAll(place, 0o755); err != nil {
		return result{err: err}
	}
	for link, target := range links {
		if err := os.Symlink(target, filepath.Join(place, link)); err != nil {
			return result{err: err}
		}
	}
	scenario := filepath.Join(place, "scenario.yaml")
	if c.scenario != "" {
		if err := os.WriteFile(scenario, []byte(c.scenario), 0o644); err != nil {
			return result{err: err}
		}
	}
	var cpu time.Duration
	for i, command := range c.commands {
		took, err := shell(command, place, filepath.Join(out, ".bin"), fmt.Sprintf("%d", i+1))
		if err != nil {
			return result{err: err}
		}
		cpu += took
	}
	for link := range links {
		os.Remove(filepath.Join(place, link))
	}
	if c.scenario != "" {
		os.Remove(scenario)
	}
	hash, err := pack(place)
	return result{hash: hash, cpu: cpu, err: err}
}

// shell runs a command with bash and keeps its outputs and status in files that begin with name. It returns its CPU
// time.
func shell(command, place, bin, name string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var stdout, stderr bytes.Buffer
	run := exec.CommandContext(ctx, "bash", "-c", "ulimit -t 60; "+command)
	run.Dir, run.Stdout, run.Stderr = place, &stdout, &stderr
	run.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + place, "TZ=UTC", "LC_ALL=C.UTF-8",
		"GOCOVERDIR=" + os.Getenv("GOCOVERDIR")}
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	run.Cancel = func() error { return syscall.Kill(-run.Process.Pid, syscall.SIGKILL) }
	status := "0\n"
	if err := run.Run(); ctx.Err() != nil {
		return 0, fmt.Errorf("no end after %v: %s", limit, command)
	} else if err != nil {
		status = err.Error() + "\n"
	}
	for suffix, text := range map[string][]byte{".stdout": stdout.Bytes(), ".stderr": stderr.Bytes(),
		".status": []byte(status)} {
		if err := os.WriteFile(filepath.Join(place, name+suffix), text, 0o644); err != nil {
			return 0, err
		}
	}
	return run.ProcessState.UserTime() + run.ProcessState.SystemTime(), nil
}

// pack replaces pictures by their hash and gzips large files. It returns the hash of everything that was there.
func pack(place string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(place, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, _ := filepath.Rel(place, path)
		fmt.Fprintf(sum, "%s %d\n", relative, len(text))
		sum.Write(text)
		if strings.HasSuffix(path, ".png") {
			os.Remove(path)
			return os.WriteFile(path+".sha256", fmt.Appendf(nil, "%x\n", sha256.Sum256(text)), 0o644)
		}
		if len(text) < packing || strings.HasSuffix(path, ".gz") {
			return nil
		}
		os.Remove(path)
		var packed bytes.Buffer
		writer, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
		writer.Write(text)
		writer.Close()
		return os.WriteFile(path+".packed", packed.Bytes(), 0o644)
	})
	return fmt.Sprintf("%x", sum.Sum(nil))[:16], err
}
