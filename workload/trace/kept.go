package trace

import "io"

// keptRows is the length up to which a trace is kept in memory, to be read only once: some megabytes.
const keptRows = 1 << 15

// keeper keeps the rows that pass through it, unless there are more than keptRows.
type keeper struct {
	Reader
	rows []Row // nil when there were too many
	many bool
}

func (k *keeper) Next() (Row, error) {
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
type kept struct{ rows []Row }

func (k *kept) Next() (Row, error) {
	if len(k.rows) == 0 {
		return Row{}, io.EOF
	}
	r := k.rows[0]
	k.rows = k.rows[1:]
	return r, nil
}
