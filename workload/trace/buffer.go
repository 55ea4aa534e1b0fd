package trace

import "io"

// maxBufferedRows is the number of rows up to which a trace is buffered in memory, so that it is read only once.
// They take a few megabytes.
const maxBufferedRows = 1 << 15

// bufferingReader buffers the rows that pass through it, up to maxBufferedRows.
type bufferingReader struct {
	Reader
	rows []Row // nil if there were more
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

type bufferedReader struct{ rows []Row }

func (k *bufferedReader) Next() (Row, error) {
	if len(k.rows) == 0 {
		return Row{}, io.EOF
	}
	r := k.rows[0]
	k.rows = k.rows[1:]
	return r, nil
}
