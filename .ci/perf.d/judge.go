package main

import (
	"fmt"
	"math"
	"regexp"
	"strings"
)

// What a commit may lose against the accepted one.
const (
	maxInstr  = 1.02
	maxMisses = 1.05
	maxTime   = 1.25
	// Fewer misses more than this do not count: the place of code in memory moves the misses of retries by 7.
	fewMisses = 8
)

// losses returns a line for each count that is too much more than that of a base.
func losses(c Case, base, now Figures) (faults []string) {
	fault := func(count string, limit float64) {
		faults = append(faults, fmt.Sprintf("%s: %s %s in place of %s (%+.1f %%, want at most +%.0f %%)", c.Name,
			cell(now, count), count, cell(base, count), 100*(now[count]/base[count]-1), 100*(limit-1)))
	}
	if now[instr] > maxInstr*base[instr] {
		fault(instr, maxInstr)
	}
	if now[misses] > maxMisses*base[misses] && now[misses] > base[misses]+fewMisses {
		fault(misses, maxMisses)
	}
	return faults
}

// overLimit returns a line for each count whose ratio to the anchor is over its limit.
func overLimit(c Case, anchor, now, limits Figures) (faults []string) {
	for _, count := range []string{instr, misses} {
		limit, ok := limits[count]
		ratio := now[count] / anchor[count]
		switch {
		case !ok:
			faults = append(faults, fmt.Sprintf("%s: .ci/%s has no limit of %s", c.Name, limitsFile, count))
		case ratio > limit:
			faults = append(faults, fmt.Sprintf("%s: %.3f of the anchor's %s (want at most %.3f)", c.Name, ratio, count,
				limit))
		}
	}
	return faults
}

// otherUnits returns a line for each number of units that is not the one in the table.
func otherUnits(c Case, table, now Figures) (faults []string) {
	if len(table) != len(now) {
		return []string{fmt.Sprintf("%s: .ci/%s has %d units, wanted are %d", c.Name, unitsFile, len(table), len(now))}
	}
	for name, n := range now {
		within := 0.0011
		if name == "allocations" { // the runtime draws the seeds of hash tables, and rarely a start takes 2,000 more
			within = 0.11
		}
		if want, ok := table[name]; !ok || math.Abs(n-want) > within+0.001*math.Abs(want) {
			faults = append(faults, fmt.Sprintf("%s: %g %s per request in place of %g", c.Name, n, name, want))
		}
	}
	return faults
}

const reasonLine = "`perf-limit: REASON`"

var reasoned = regexp.MustCompile(`(?m)^perf-limit: \S`)

// raisedIn returns the limits that are higher in one table than in an older one, or missing.
func raisedIn(old, now map[string]Figures) (raised []string) {
	for _, c := range cases() {
		for count, limit := range old[c.Name] {
			if newer, ok := now[c.Name][count]; !ok || newer > limit {
				raised = append(raised, fmt.Sprintf("%s %s from %g to %g", c.Name, count, limit, newer))
			}
		}
	}
	return raised
}

// raisedLimits returns a line for each commit after the accepted one that raises a limit without a reason in its
// message, and one for the working tree if it does.
func (b *Builder) raisedLimits(accepted string) (faults []string, err error) {
	path := ".ci/" + limitsFile
	list, err := b.git("rev-list", "--first-parent", accepted+"..HEAD", "--", path)
	if err != nil {
		return nil, err
	}
	at := func(commit string) map[string]Figures {
		text, err := b.git("show", commit+":"+path)
		if err != nil {
			return nil // the file did not exist
		}
		limits, err := table(text)
		if err != nil {
			return nil
		}
		return limits
	}
	for _, commit := range strings.Fields(list) {
		message, err := b.git("show", "-s", "--format=%B", commit)
		if err != nil {
			return nil, err
		}
		if raised := raisedIn(at(commit+"^"), at(commit)); len(raised) > 0 && !reasoned.MatchString(message) {
			faults = append(faults, fmt.Sprintf("commit %.8s raises limits (%s), and its message has no line %s",
				commit, strings.Join(raised, ", "), reasonLine))
		}
	}
	text, err := b.read(limitsFile)
	if err != nil {
		return nil, err
	}
	now, err := table(text)
	if err != nil {
		return nil, err
	}
	if raised := raisedIn(at("HEAD"), now); len(raised) > 0 {
		faults = append(faults, fmt.Sprintf("limits are raised (%s): commit them with a line %s in the message",
			strings.Join(raised, ", "), reasonLine))
	}
	return faults, nil
}

// excused reports whether a commit after the accepted one gives a reason for its cost.
func (b *Builder) excused(accepted string) (bool, error) {
	messages, err := b.git("log", "--format=%B", accepted+"..HEAD")
	return reasoned.MatchString(messages), err
}

// grouped writes a count with commas between thousands; from a million it is in millions.
func grouped(n float64) string {
	if n >= 1e6 {
		return fmt.Sprintf("%.2f M", n/1e6)
	}
	digits := fmt.Sprintf("%.0f", n)
	if len(digits) > 3 {
		digits = digits[:len(digits)-3] + "," + digits[len(digits)-3:]
	}
	return digits
}
