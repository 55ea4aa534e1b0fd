package trace

import (
	"io"

	"clifftop/workload"
)

// keptRows is the length up to which a trace is kept in memory, to be read only once: some megabytes.
const keptRows = 1 << 15

// keeper keeps the rows that pass through it, unless there are more than keptRows.
type keeper struct {
	Reader
	rows []workload.Request // nil when there were too many
	many bool
}

func (k *keeper) Next() (workload.Request, error) {
	r, err := k.Reader.Next()
	switch {
	case err != nil || k.many:
	case len(k.rows) == keptRows:
		k.rows, k.many = nil, true
	default:
		k.rows = append(k.rows, r)
	}
	return r, err
}

// kept reads rows from memory.
type kept struct{ rows []workload.Request }

func (k *kept) Next() (workload.Request, error) {
	if len(k.rows) == 0 {
		return workload.Request{}, io.EOF
	}
	r := k.rows[0]
	k.rows = k.rows[1:]
	return r, nil
}
