package cli

import (
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"strings"

	"clifftop/cmd/cli/console"
)

// traceFile is a trace that grows. What was written can be read, whenever the program ends.
type traceFile struct {
	flag string // that names it
	file *os.File
	zip  *gzip.Writer // nil unless the name ends in .gz
}

// newTraceFile makes a file, which must not exist. flag names it in errors.
func newTraceFile(flag, name string) (*traceFile, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		if i, err := os.Stat(name); err == nil && !i.Mode().IsRegular() { // a pipe or a device
			f, err = os.OpenFile(name, os.O_WRONLY, 0)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %s", flag, name, console.Cause(err))
			}
			return &traceFile{flag: flag, file: f}, nil
		}
		return nil, fmt.Errorf("%s: %s exists (want a new name)", flag, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %s", flag, name, console.Cause(err))
	}
	t := &traceFile{flag: flag, file: f}
	if strings.HasSuffix(name, ".gz") {
		t.zip = gzip.NewWriter(f)
	}
	return t, nil
}

// Write implements io.Writer. It takes whole rows, once a second or many at once.
func (t *traceFile) Write(p []byte) (int, error) {
	if t.zip == nil {
		return t.file.Write(p)
	}
	n, err := t.zip.Write(p)
	return n, cmp.Or(err, t.zip.Flush())
}

func (t *traceFile) Close() error {
	var err error
	if t.zip != nil {
		err = t.zip.Close()
	}
	if err = cmp.Or(err, t.file.Close()); err != nil {
		return fmt.Errorf("%s: %s: %s", t.flag, t.file.Name(), console.Cause(err))
	}
	return nil
}
