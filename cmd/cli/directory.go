package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"clifftop/internal/input"
	"clifftop/report/layout"
)

// directory is a directory for result files. Each file is first written under a temporary name, so a file under its own
// name is always complete.
type directory struct{ path string }

// openDirectory creates the directory that a flag names and checks that files can be written to it. Commands call it
// before they simulate.
func openDirectory(flag, path string) (*directory, error) {
	err := os.MkdirAll(path, 0o777)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(path, ".clifftop-*"); err == nil {
			probe.Close()
			err = os.Remove(probe.Name())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s cannot be written to: %s", flag, path, cause(err))
	}
	return &directory{path}, nil
}

// cause returns the text of a file system error without operation and path.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// readFile reads the file that a flag names.
func readFile(flag, name string) ([]byte, error) {
	data, err := input.ReadFile(name)
	switch {
	case errors.Is(err, syscall.EISDIR):
		return nil, fmt.Errorf("%s: %s: this is a directory (want a file)", flag, name)
	case err != nil:
		return nil, fmt.Errorf("%s: %s: %s", flag, name, cause(err))
	}
	return data, nil
}

// create opens a new file under a temporary name.
func (d *directory) create(name string) (*file, error) {
	f, err := os.CreateTemp(d.path, "."+name+"-*")
	if err != nil {
		return nil, &writeError{filepath.Join(d.path, name), err}
	}
	return &file{File: f, name: filepath.Join(d.path, name)}, nil
}

// write creates a file and fills it.
func (d *directory) write(name string, fill func(io.Writer) error) error {
	f, err := d.create(name)
	if err != nil {
		return err
	}
	defer f.abandon()
	if err := fill(f); err != nil {
		return err
	}
	return f.commit()
}

// writeJSON creates a file with a value as indented JSON.
func (d *directory) writeJSON(name string, v any) error {
	return d.write(name, func(w io.Writer) error { return printJSON(w, v) })
}

// writeBytes creates a file with the given content.
func (d *directory) writeBytes(name string, data []byte) error {
	return d.write(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// file is an open result file.
type file struct {
	*os.File
	name string // final path
	done bool   // committed
}

// writeError is the error for a file that could not be written.
type writeError struct {
	name string
	err  error
}

func (e *writeError) Error() string { return fmt.Sprintf("writing %s: %s", e.name, cause(e.err)) }

// Write implements [io.Writer]. Its error names the final path.
func (f *file) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if err != nil {
		err = &writeError{f.name, err}
	}
	return n, err
}

// commit closes the file and renames it to its final path.
func (f *file) commit() error {
	err := f.Chmod(0o644)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.File.Name(), f.name)
	}
	if err != nil {
		os.Remove(f.File.Name())
		return &writeError{f.name, err}
	}
	f.done = true
	return nil
}

// abandon removes a file unless it was committed. The file may be nil.
func (f *file) abandon() {
	if f != nil && !f.done {
		f.Close()
		os.Remove(f.File.Name())
	}
}

// printJSON writes a value as indented JSON.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(layout.PlainWriter(w))
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
