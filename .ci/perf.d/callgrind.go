package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const noValgrind = "valgrind is not installed: apt-get install valgrind (Debian's package is named valgrind)"

// Events that are counted, as names of callgrind. A count is the sum of its events.
var counted = [...]struct {
	name   string
	events []string
}{
	{"instr", []string{"Ir"}},
	{"I1 misses", []string{"I1mr"}},
	{"D1 misses", []string{"D1mr", "D1mw"}},
	{"mispredictions", []string{"Bcm", "Bim"}},
}

// Counts of a process: instructions, instruction and data misses of a first-level cache of 32 kB, mispredictions.
type Counts [len(counted)]float64

// arc is a call of one function by another.
type arc struct{ caller, callee string }

// traffic has the calls over an arc, and their instructions with all that the callee calls.
type traffic struct{ calls, instr float64 }

// Profile is what callgrind writes about a process.
type Profile struct {
	Counts Counts
	self   map[string]float64 // instructions of a function without callees
	arcs   map[arc]traffic
}

func newProfile() *Profile {
	return &Profile{self: map[string]float64{}, arcs: map[arc]traffic{}}
}

// fixed are variables of the environment without which counts vary: threads, preemption by a timer, collection.
var fixed = []string{"GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1"}

// environment is the same on every machine but for the path: its size moves the stack.
func environment(folder string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "TMPDIR=" + folder}, fixed...)
}

// profile runs a binary under callgrind in folder and reads what it counts.
func profile(binary string, args []string, folder string) (*Profile, error) {
	valgrind, err := exec.LookPath("valgrind")
	if err != nil {
		return nil, errors.New(noValgrind)
	}
	file, err := os.CreateTemp(folder, "callgrind")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	options := []string{"--tool=callgrind", "--max-stackframe=1000000000", "--callgrind-out-file=" + file.Name(),
		"--cache-sim=yes", "--branch-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"}
	cmd := exec.Command(valgrind, append(append(options, binary), args...)...)
	cmd.Dir, cmd.Env = folder, environment(folder)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		text := stderr.String()
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(binary), strings.Join(args, " "), err,
			text[max(0, len(text)-1500):])
	}
	return parse(file)
}

// parse reads a file of callgrind. Its lines name the current function (fn=), or a callee (cfn=) whose calls (calls=)
// and inclusive cost (the line after it) follow. Other lines that begin with a position are costs of the function.
// A number in parentheses stands for a name that was given before.
func parse(r io.Reader) (*Profile, error) {
	p := newProfile()
	names := map[string]string{}
	name := func(text string) string {
		id, long, found := strings.Cut(text, " ")
		if found {
			names[id] = long
		}
		return names[id]
	}
	var events []string
	var caller, callee string
	var calls float64
	called, totals := false, false
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		line := lines.Text()
		key, value, _ := strings.Cut(line, "=")
		switch {
		case line == "":
		case key == "fn":
			caller = name(value)
		case key == "cfn":
			callee = name(value)
		case key == "calls":
			count, _, _ := strings.Cut(value, " ")
			calls, _ = strconv.ParseFloat(count, 64)
			called = true
		case strings.HasPrefix(line, "events: "):
			events = strings.Fields(line)[1:]
		case strings.HasPrefix(line, "totals: "):
			totals = true
			p.Counts = totalled(events, strings.Fields(line)[1:])
		case strings.IndexByte("+-*0123456789", line[0]) >= 0:
			// Instr are the first cost.
			fields := strings.Fields(line)
			var cost float64
			if len(fields) > 1 {
				cost, _ = strconv.ParseFloat(fields[1], 64)
			}
			if !called {
				p.self[caller] += cost
				continue
			}
			between := p.arcs[arc{caller, callee}]
			p.arcs[arc{caller, callee}] = traffic{between.calls + calls, between.instr + cost}
			called = false
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if !totals || len(events) == 0 || events[0] != "Ir" {
		return nil, errors.New("callgrind wrote no totals")
	}
	return p, nil
}

func totalled(events, totals []string) (counts Counts) {
	for i, event := range events[:min(len(events), len(totals))] {
		number, _ := strconv.ParseFloat(totals[i], 64)
		for k, count := range counted {
			for _, name := range count.events {
				if name == event {
					counts[k] += number
				}
			}
		}
	}
	return counts
}

// minus returns the difference of two profiles divided by each.
func (p *Profile) minus(q *Profile, each float64) *Profile {
	d := newProfile()
	for i := range d.Counts {
		d.Counts[i] = (p.Counts[i] - q.Counts[i]) / each
	}
	for name, instr := range p.self {
		d.self[name] = (instr - q.self[name]) / each
	}
	for a, many := range p.arcs {
		few := q.arcs[a]
		d.arcs[a] = traffic{(many.calls - few.calls) / each, (many.instr - few.instr) / each}
	}
	return d
}

// into returns the calls of functions that match from others, and the instructions of these calls with all that is
// called. What one function of the group calls of another counts once, unless a function between them does not match.
func (p *Profile) into(match func(string) bool) (sum traffic) {
	for a, t := range p.arcs {
		if match(a.callee) && !match(a.caller) {
			sum.calls += t.calls
			sum.instr += t.instr
		}
	}
	return sum
}
