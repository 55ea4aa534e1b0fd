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
)

// directory is where result files go. Each is written under another name first, so that a file is
// either whole or not there.
type directory struct{ path string }

// openDirectory makes the directory and tries to write in it, before anything is simulated.
func openDirectory(path string) (*directory, error) { return openDirectoryOf("--out", path) }

// openDirectoryOf is openDirectory for another flag.
func openDirectoryOf(flag, path string) (*directory, error) {
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

// directory opens that of --out; nil where there is none.
func (f *outputFlags) directory() (*directory, error) {
	if f.out == "" {
		return nil, nil
	}
	return openDirectory(f.out)
}

// cause is an error of the file system without its operation and path.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// readFile reads the file that a flag names.
func readFile(flag, name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	switch {
	case errors.Is(err, syscall.EISDIR):
		return nil, fmt.Errorf("%s: %s: this is a directory (want a file)", flag, name)
	case err != nil:
		return nil, fmt.Errorf("%s: %s: %s", flag, name, cause(err))
	}
	return data, nil
}

// create begins a file.
func (d *directory) create(name string) (*file, error) {
	f, err := os.CreateTemp(d.path, "."+name+"-*")
	if err != nil {
		return nil, &writeError{filepath.Join(d.path, name), err}
	}
	return &file{File: f, name: filepath.Join(d.path, name)}, nil
}

// write makes a whole file.
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

// writeJSON makes a file of an indented value.
func (d *directory) writeJSON(name string, v any) error {
	return d.write(name, func(w io.Writer) error { return printJSON(w, v) })
}

// file is a result file in the making.
type file struct {
	*os.File
	name string
	done bool
}

// writeError says which file could not be written.
type writeError struct {
	name string
	err  error
}

func (e *writeError) Error() string { return fmt.Sprintf("writing %s: %s", e.name, cause(e.err)) }

// Write writes to the file, and names it in the error as it will be called.
func (f *file) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if err != nil {
		err = &writeError{f.name, err}
	}
	return n, err
}

// commit gives the file its name.
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

// abandon removes a file that was not committed.
func (f *file) abandon() {
	if f != nil && !f.done {
		f.Close()
		os.Remove(f.File.Name())
	}
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
