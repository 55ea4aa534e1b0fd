package trace

import "io"

// maxBufferedRows is the length up to which a trace is kept in memory, to be read only once: some megabytes.
const maxBufferedRows = 1 << 15

// bufferingReader keeps the rows that pass through it, unless there are more than maxBufferedRows.
type bufferingReader struct {
	Reader
	rows []Row // nil when there were too many
	many bool
}

func (k *bufferingReader) Next() (Row, error) {
	r, err := k.Reader.Next()
	switch {
	case err != nil || k.many:
	case len(k.rows) == maxBufferedRows:
		k.rows, k.many = nil, true
	default:
		k.rows = append(k.rows, r)
	}
	return r, err
}

// kept reads rows from memory.
type bufferedReader struct{ rows []Row }

func (k *bufferedReader) Next() (Row, error) {
	if len(k.rows) == 0 {
		return Row{}, io.EOF
	}
	r := k.rows[0]
	k.rows = k.rows[1:]
	return r, nil
}
