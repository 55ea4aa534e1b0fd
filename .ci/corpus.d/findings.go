package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// findings collects the differences of all cases.
type findings struct {
	expected patterns
	times    bool // print the CPU time of each case

	mu        sync.Mutex
	artifacts int
	groups    map[string]*group
	effort    map[string]*group
	runs      runs
}

// A group is the differences at one place.
type group struct {
	file    string // command and name of the artifact
	cases   map[string]bool
	example difference
	inCase  string
}

// mostPrinted bounds the places that are printed of one kind of file.
const mostPrinted = 40

// runs counts the results of run, each scenario once.
type runs struct {
	scenarios int
	preempted int // with a preemption or more
	judged    int // whose effort says how many compositions were plain
	mixed     int // with some plain compositions, but not all
	plain     int // with plain compositions only
	searching int // with more than a tenth of their requests in a search
	repeated  int // with requests that were simulated again
}

func newFindings(expected patterns, times bool) *findings {
	return &findings{expected: expected, times: times, groups: map[string]*group{}, effort: map[string]*group{}}
}

// compare records how the artifacts of a case differ.
func (f *findings) compare(c testCase, a, b map[string]artifact, took [2]time.Duration) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.times {
		fmt.Printf("%5d ms %5d ms %s\n", took[0].Milliseconds(), took[1].Milliseconds(), c.name)
	}
	for key, artifact := range all {
		f.artifacts++
		var found, effort []difference
		if _, ok := a[key]; !ok {
			found = []difference{{"(file)", "missing", "present"}}
		} else if _, ok := b[key]; !ok {
			found = []difference{{"(file)", "present", "missing"}}
		} else {
			found, effort = differ(a[key], b[key])
		}
		place := artifact.command + " " + artifact.name
		record(f.groups, c.name, place, found)
		record(f.effort, c.name, place, effort)
	}
	if first, ok := b["0 stdout"]; ok && first.command == "run" && first.name == "json" {
		f.runs.add(first.data)
	}
}

func record(groups map[string]*group, name, place string, found []difference) {
	for _, d := range found {
		key := strings.TrimSpace(place + " " + d.place)
		g := groups[key]
		if g == nil {
			g = &group{place, map[string]bool{}, d, name}
			groups[key] = g
		}
		if name < g.inCase { // the same example each time
			g.example, g.inCase = d, name
		}
		g.cases[name] = true
	}
}

// add counts the result of a run.
func (r *runs) add(data []byte) {
	var v struct {
		System struct {
			Preemptions float64 `json:"preemptions"`
		} `json:"system"`
		Effort *struct {
			Requests     float64  `json:"requests"`
			Search       float64  `json:"search_requests"`
			Repeated     float64  `json:"repeated_requests"`
			Compositions *float64 `json:"compositions"`
			Plain        *float64 `json:"plain_compositions"`
		} `json:"effort"`
	}
	if json.Unmarshal(data, &v) != nil {
		return
	}
	r.scenarios++
	if v.System.Preemptions > 0 {
		r.preempted++
	}
	e := v.Effort
	if e == nil {
		return
	}
	if e.Search > .1*e.Requests {
		r.searching++
	}
	if e.Repeated > 0 {
		r.repeated++
	}
	if e.Compositions != nil && e.Plain != nil {
		r.judged++
		switch {
		case *e.Plain == *e.Compositions:
			r.plain++
		case *e.Plain > 0:
			r.mixed++
		}
	}
}

// print lists the differences and reports whether all are expected and the corpus has enough of each kind.
func (f *findings) print(w io.Writer) bool {
	ok := true
	printed := map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(f.groups)) {
		g, sign := f.groups[key], "expected"
		if !f.expected.match(key) {
			sign, ok = "DIFFERENT", false
		}
		if printed[sign+" "+g.file]++; printed[sign+" "+g.file] <= mostPrinted {
			g.print(w, sign, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(printed)) {
		if more := printed[key] - mostPrinted; more > 0 {
			fmt.Fprintf(w, "%s: %d places more\n", key, more)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.effort)) {
		f.effort[key].print(w, "effort", key)
	}
	fmt.Fprintf(w, "%d outputs and files, %d places differ\n", f.artifacts, len(f.groups))
	r := f.runs
	fmt.Fprintf(w, "%d of %d scenarios preempt sequences\n", r.preempted, r.scenarios)
	if 3*r.preempted < r.scenarios {
		fmt.Fprintln(w, "TOO FEW: a third must preempt (see TestCorpus in cmd/cli/gate)")
		ok = false
	}
	if r.searching+r.repeated > 0 {
		fmt.Fprintf(w, "%d scenarios search with more than 10 %% of their requests, %d repeat requests\n", r.searching,
			r.repeated)
	}
	if r.judged > 0 {
		fmt.Fprintf(w, "%d of %d scenarios are plain in part of their compositions, %d in all\n", r.mixed, r.judged, r.plain)
	}
	return ok
}

func (g *group) print(w io.Writer, sign, key string) {
	fmt.Fprintf(w, "%-9s %s: %d cases, such as %s", sign, key, len(g.cases), g.inCase)
	if g.example.old+g.example.new != "" {
		fmt.Fprintf(w, ": %s -> %s", brief(g.example.old), brief(g.example.new))
	}
	fmt.Fprintln(w)
}

// brief is a text on one line, cut to a few characters.
func brief(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "nothing"
	}
	if runes := []rune(text); len(runes) > 80 {
		return string(runes[:80]) + "..."
	}
	return text
}
