package live

import (
	"io"

	"clifftop/experiments/scenario"
	"clifftop/sim/event"
	"clifftop/workload"
	"clifftop/workload/trace"
)

// journal writes the requests as a trace, in order of arrival. A request is written when it and all earlier ones have
// ended, because the row says when its client left. A nil journal writes nothing.
type journal struct {
	to     *trace.Writer
	failed func(error) // nil after its call
	first  int64       // ID of the first row
	rows   []row
	broken bool
}

// row is a request that was sent.
type row struct {
	workload.Request
	over bool
}

// newJournal writes the header of a journal. failed may be nil.
func newJournal(w io.Writer, u *scenario.Setup, failed func(error)) *journal {
	var classes []string
	for _, c := range u.Traffic.Spec.Classes {
		classes = append(classes, c.Name)
	}
	columns := trace.Columns{LoRA: true, Replica: true, Cancel: true, KV: u.Scenario.Disaggregation != nil}
	return &journal{to: trace.NewWriter(w, columns, classes), failed: failed}
}

func (j *journal) sent(r *workload.Request) {
	if j == nil || j.broken {
		return
	}
	if len(j.rows) == 0 {
		j.first = r.ID
	}
	j.rows = append(j.rows, row{Request: *r})
}

func (j *journal) ended(rec *event.Record) {
	if j == nil || j.broken {
		return
	}
	j.rows[rec.Request.ID-j.first].over = true
	n := 0
	for n < len(j.rows) && j.rows[n].over {
		j.write(&j.rows[n])
		n++
	}
	j.drop(n)
}

// drop removes the first n rows.
func (j *journal) drop(n int) {
	if n == 0 {
		return
	}
	m := copy(j.rows, j.rows[n:])
	clear(j.rows[m:])
	j.rows, j.first = j.rows[:m], j.first+int64(n)
}

func (j *journal) write(r *row) {
	if j.broken {
		return
	}
	out := r.Request
	if out.Client != nil && out.Client.Cancel == 0 {
		out.Client = nil
	}
	j.check(j.to.Write(&out))
}

// check ends the journal if it cannot be written.
func (j *journal) check(err error) {
	if err == nil || j.broken {
		return
	}
	j.broken, j.rows = true, nil
	if j.failed != nil {
		j.failed(err)
	}
}

func (j *journal) flush() {
	if j != nil && !j.broken {
		j.check(j.to.Flush())
	}
}

// close writes all rows, those of requests that have not ended included.
func (j *journal) close() {
	if j == nil || j.broken {
		return
	}
	for i := range j.rows {
		j.write(&j.rows[i])
	}
	j.rows = nil
	j.flush()
}
