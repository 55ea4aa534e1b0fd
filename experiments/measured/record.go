package measured

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"clifftop/workload/trace"
)

// recordFormat is a trace of clifftop record: requests with measurements at the client.
func recordFormat() format {
	return format{
		Format: Format{Name: "clifftop-record", Layout: "trace of clifftop record", Requests: true,
			Source: "Clifftop's own"},
		is: func(f *file) bool {
			names := recordHeader(f.text)
			return slices.Contains(names, "arrival_s") && slices.Contains(names, "outcome") &&
				slices.Contains(names, "ttft_s")
		},
		read: readRecord,
	}
}

// recordHeader returns the names of the columns, which stand in the first line that is no comment.
func recordHeader(text []byte) []string {
	for line := range bytes.Lines(text[:min(len(text), 1<<14)]) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return strings.Split(string(line), ",")
		}
	}
	return nil
}

func readRecord(f *file, r *Result) {
	d := csv.NewReader(bytes.NewReader(f.text))
	d.Comment, d.ReuseRecord = '#', true
	names, err := d.Read()
	columns := map[string]int{}
	for i, n := range names {
		columns[n] = i
	}
	var run Run
	models := map[string]bool{}
	for err == nil {
		var cells []string
		if cells, err = d.Read(); err != nil {
			break
		}
		line, _ := d.FieldPos(0)
		row := recordRow{f: f, line: line, cells: cells, columns: columns}
		q := Request{Arrival: row.seconds("arrival_s"), Timed: true, Input: row.tokens("input_tokens"),
			Output: row.tokens("received"), TTFT: row.seconds("ttft_s"), E2E: row.seconds("e2e_s"),
			Session: row.text("session"), Failed: row.text("outcome") != "completed"}
		run.Requests = append(run.Requests, q)
		if name := row.text("model"); name != "" && !q.Failed {
			models[name] = true
		}
	}
	if !errors.Is(err, io.EOF) {
		f.fault(f.name, "", "the CSV is damaged: %v (want the whole file)", err)
		return
	}
	if names := sortedKeys(models); len(names) == 1 {
		run.Model = names[0]
	}
	if run.readTrace(f); len(f.faults) == 0 {
		r.note("requests that were cancelled are simulated, and have no latency; those that were rejected or failed " +
			"are left out")
		r.Runs = []Run{run}
	}
}

// readTrace reads the requests with their shared content.
func (run *Run) readTrace(f *file) {
	t, err := trace.Open(bytes.NewReader(f.text), f.name, trace.Options{})
	for err == nil {
		var row trace.Row
		if row, err = t.Next(); err == nil {
			run.Trace = append(run.Trace, row.Request)
		}
	}
	if !errors.Is(err, io.EOF) {
		f.fault("", "", "%v", err)
	}
}

// recordRow is a line of a trace of clifftop record.
type recordRow struct {
	f       *file
	line    int
	cells   []string
	columns map[string]int
}

func (r *recordRow) text(name string) string {
	if i, ok := r.columns[name]; ok {
		return r.cells[i]
	}
	return ""
}

// number is a column; 0 if it is empty.
func (r *recordRow) number(name string) float64 {
	before := len(r.f.faults)
	x := or(r.f.cell(name, r.text(name)), 0)
	if len(r.f.faults) > before {
		r.f.faults[before].Where = fmt.Sprintf("%s:%d", r.f.name, r.line)
	}
	return x
}

func (r *recordRow) tokens(name string) int { return int(min(r.number(name), 1<<40)) }

func (r *recordRow) seconds(name string) time.Duration {
	return time.Duration(min(r.number(name), 1e9) * float64(time.Second))
}
