package main

import (
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"syscall"
)

// process is a command line whose whole cost is measured natively: its CPU time, and the most memory that it held.
type process struct {
	Name string
	Args []string
	// Goal is how many times as fast as the anchor it shall be, or 0.
	Goal float64
}

// processes are the command lines of the table of whole processes in BENCHMARKS.md.
func processes() []process {
	p1 := func(rate, requests int, more ...string) []string {
		args := append([]string{"run"}, plain...)
		args = append(args, "--set", fmt.Sprintf("workload.arrivals={process: poisson, rate: %d}", rate),
			"--set", fmt.Sprintf("run.requests=%d", requests))
		return append(args, more...)
	}
	fleet := func(replicas, requests int, router string) []string {
		return p1(27*replicas, requests, "--replicas", fmt.Sprint(replicas), "--router", router)
	}
	p2 := func(requests int) []string {
		return []string{"run", "--format", "json", "--quiet", "--rate", "10", "--requests", fmt.Sprint(requests),
			"--set", "engine.max_num_seqs=1024"}
	}
	return []process{
		{"p1-10-500k", p1(10, 500_000), 2.5},
		{"p1-35-500k", p1(35, 500_000), 2},
		{"p1-60-500k", p1(60, 500_000), 1.5},
		{"p1-22-10k", p1(22, 10_000), 1.9},
		{"p1-22-100k", p1(22, 100_000), 2.1},
		{"p2-10-500k", p2(500_000), 2.5},
		{"fleet-64-round-robin", fleet(64, 300_000, "round-robin"), 1.5},
		{"fleet-64-least-requests", fleet(64, 300_000, "least-requests"), 1.3},
		{"fleet-4096-round-robin", fleet(4096, 200_000, "round-robin"), 5},
		{"sweep", []string{"sweep", "--quiet"}, 1.0 / 3},
	}
}

// whole measures the processes of several binaries in turn, and prints medians. The first binary is the one that the
// others are compared with. They are built as users build them, with the compiler's profile.
func whole(b *Builder, args []string) error {
	set := flag.NewFlagSet("times", flag.ContinueOnError)
	pattern := set.String("case", "", "processes whose names match")
	rounds := set.Int("rounds", 5, "runs of each")
	if err := set.Parse(args); err != nil {
		return err
	}
	match, err := regexp.Compile(*pattern)
	if err != nil {
		return err
	}
	if set.NArg() == 0 || *rounds < 1 {
		return errors.New("times needs binaries, commits, or . for the working tree, and at least one round")
	}
	var list []process
	for _, p := range processes() {
		if match.MatchString(p.Name) {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return fmt.Errorf("no process matches %s", *pattern)
	}
	b.profile = true
	var binaries []Binary
	for i, target := range set.Args() {
		binary, err := b.target(target, fmt.Sprintf("binary-%d", i))
		if err != nil {
			return err
		}
		binaries = append(binaries, binary)
	}
	fmt.Printf("CPU seconds and peak MB, medians of %d runs in turn\n%-24s", *rounds, "")
	for _, binary := range binaries {
		fmt.Printf(" %18.12s", binary.Name)
	}
	fmt.Println("   times as fast")
	for _, p := range list {
		if err := p.print(binaries, *rounds, b.scratch); err != nil {
			return err
		}
	}
	return nil
}

// print runs the process with each binary in turn, and prints a line.
func (p *process) print(binaries []Binary, rounds int, folder string) error {
	seconds := make([][]float64, len(binaries))
	memory := make([][]float64, len(binaries))
	for range rounds {
		for i := range binaries {
			took, held, err := p.run(&binaries[i], folder)
			if err != nil {
				return err
			}
			seconds[i], memory[i] = append(seconds[i], took), append(memory[i], held)
		}
	}
	fmt.Printf("%-24s", p.Name)
	for i := range binaries {
		fmt.Printf(" %8.3f s %5.0f MB", median(seconds[i]), median(memory[i]))
	}
	for i := range binaries[1:] {
		fmt.Printf(" %7.2f", median(seconds[0])/median(seconds[i+1]))
	}
	if p.Goal > 0 {
		fmt.Printf("   (goal %.2f beside the anchor)", p.Goal)
	}
	fmt.Println()
	return nil
}

// run runs the process once, and returns its CPU time in seconds and the most memory it held in MB.
func (p *process) run(b *Binary, folder string) (seconds, megabytes float64, err error) {
	cmd := exec.Command(b.Path, p.Args...)
	cmd.Dir, cmd.Env = folder, append(environment(folder), "GOGC=100")
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("%s of %s: %w\n%s", p.Name, b.Name, err, out[max(0, len(out)-1500):])
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, 0, errors.New("this system does not tell the memory of a process")
	}
	state := cmd.ProcessState
	return (state.UserTime() + state.SystemTime()).Seconds(), float64(usage.Maxrss) / 1e3, nil
}

// median is the middle value, or the mean of the two middle ones.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
