package console

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

// Directory is a directory for result files. Each file is first written under a temporary name, so a file under its own
// name is always complete.
type Directory struct{ Path string }

// OpenDirectory creates the directory that a flag names and checks that files can be written to it. Commands call it
// before they simulate.
func OpenDirectory(flag, path string) (*Directory, error) {
	err := os.MkdirAll(path, 0o777)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(path, ".clifftop-*"); err == nil {
			probe.Close()
			err = os.Remove(probe.Name())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s cannot be written to: %s", flag, path, Cause(err))
	}
	return &Directory{path}, nil
}

// Cause returns the text of a file system error without operation and path.
func Cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// ReadFile reads the file that a flag names.
func ReadFile(flag, name string) ([]byte, error) {
	data, err := input.ReadFile(name)
	switch {
	case errors.Is(err, syscall.EISDIR):
		return nil, fmt.Errorf("%s: %s: this is a directory (want a file)", flag, name)
	case err != nil:
		return nil, fmt.Errorf("%s: %s: %s", flag, name, Cause(err))
	}
	return data, nil
}

// Create opens a new file under a temporary name.
func (d *Directory) Create(name string) (*File, error) {
	f, err := os.CreateTemp(d.Path, "."+name+"-*")
	if err != nil {
		return nil, &WriteError{filepath.Join(d.Path, name), err}
	}
	return &File{File: f, name: filepath.Join(d.Path, name)}, nil
}

// Write creates a file and fills it.
func (d *Directory) Write(name string, fill func(io.Writer) error) error {
	f, err := d.Create(name)
	if err != nil {
		return err
	}
	defer f.Abandon()
	if err := fill(f); err != nil {
		return err
	}
	return f.Commit()
}

// WriteJSON creates a file with a value as indented JSON.
func (d *Directory) WriteJSON(name string, v any) error {
	return d.Write(name, func(w io.Writer) error { return PrintJSON(w, v) })
}

// WriteBytes creates a file with the given content.
func (d *Directory) WriteBytes(name string, data []byte) error {
	return d.Write(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// File is an open result file.
type File struct {
	*os.File
	name string // final path
	done bool   // committed
}

// WriteError is the error for a file that could not be written.
type WriteError struct {
	name string
	err  error
}

func (e *WriteError) Error() string { return fmt.Sprintf("writing %s: %s", e.name, Cause(e.err)) }

// Write implements [io.Writer]. Its error names the final path.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if err != nil {
		err = &WriteError{f.name, err}
	}
	return n, err
}

// Commit closes the file and renames it to its final path.
func (f *File) Commit() error {
	err := f.Chmod(0o644)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.File.Name(), f.name)
	}
	if err != nil {
		os.Remove(f.File.Name())
		return &WriteError{f.name, err}
	}
	f.done = true
	return nil
}

// Abandon removes a file unless it was committed. The file may be nil.
func (f *File) Abandon() {
	if f != nil && !f.done {
		f.Close()
		os.Remove(f.File.Name())
	}
}

// PrintJSON writes a value as indented JSON.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(layout.PlainWriter(w))
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// WriteNew writes a file. It replaces an existing file only if force is set.
func WriteNew(path string, data []byte, force bool) error {
	mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, mode, 0o666)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s already exists (want --force to replace it)", path)
	case err != nil:
		return fmt.Errorf("%s cannot be written to: %s", path, Cause(err))
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return Failed(&WriteError{path, err})
	}
	return nil
}
