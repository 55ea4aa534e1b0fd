package main

import (
	"fmt"
	"os/exec"
	"time"
)

// rounds is the number of times that each binary runs. The smallest time of each counts.
const rounds = 10

// times runs the timed cases of all binaries in turn, and prints the smallest CPU time of each. It returns a line for
// each case in which the last binary takes too long beside another one.
func times(binaries []Binary, folder string) (faults []string, err error) {
	fmt.Printf("\nCPU time in seconds, the smallest of %d\n%-22s", rounds, "")
	for _, b := range binaries {
		fmt.Printf(" %10s", b.Name)
	}
	fmt.Println("   times as fast")
	last := len(binaries) - 1
	for _, c := range cases() {
		if c.Timed == 0 {
			continue
		}
		least := make([]time.Duration, len(binaries))
		for range rounds {
			for i, b := range binaries {
				took, err := b.time(c, folder)
				if err != nil {
					return nil, err
				}
				if least[i] == 0 || took < least[i] {
					least[i] = took
				}
			}
		}
		fmt.Printf("%-22s", c.Name)
		for _, t := range least {
			fmt.Printf(" %10.3f", t.Seconds())
		}
		for i, t := range least[:last] {
			ratio := least[last].Seconds() / t.Seconds()
			fmt.Printf(" %7.2f", 1/ratio)
			if ratio > maxTime {
				faults = append(faults, fmt.Sprintf("%s: %.2f times the CPU time of %s (want at most %.2f)", c.Name,
					ratio, binaries[i].Name, maxTime))
			}
		}
		fmt.Println()
	}
	return faults, nil
}

// time runs the command of a case and returns its CPU time.
func (b *Binary) time(c Case, folder string) (time.Duration, error) {
	args, err := c.command(c.Timed, b.Anchor, folder)
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(b.Path, args...)
	cmd.Dir, cmd.Env = folder, append(environment(folder), "GOGC=100")
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s of %s: %w\n%s", c.Name, b.Name, err, out[max(0, len(out)-1500):])
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
