package grid

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
)

// suffix is the file extension of results.
const suffix = ".json"

// A Store is a directory of results in JSON. A file that is not JSON, such as one that a full disk or a crash has cut
// off, is no result: it is as if it were not there.
type Store struct {
	dir      string
	replaced atomic.Int64
}

// Replaced returns how many damaged files [Store.Put] has replaced.
func (s *Store) Replaced() int { return int(s.replaced.Load()) }

// Open creates the directory if necessary, and checks that results can be written to it.
func Open(dir string) (*Store, error) {
	err := os.MkdirAll(dir, 0o777)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(dir, ".probe-*"); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written to: %w", dir, cause(err))
	}
	return &Store{dir: dir}, nil
}

// Read returns the store of an existing directory, for reading.
func Read(dir string) *Store { return &Store{dir: dir} }

// Dir returns the directory.
func (s *Store) Dir() string { return s.dir }

// Key returns the key of a run's result: a hash of all its inputs, in order.
func Key(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (s *Store) path(key string) string { return filepath.Join(s.dir, key+suffix) }

// Has reports whether there is a result with a key.
func (s *Store) Has(key string) bool {
	_, ok, err := s.Get(key)
	return ok && err == nil
}

// Get reads a result. It returns ok false if there is none.
func (s *Store) Get(key string) (data []byte, ok bool, err error) {
	data, err = os.ReadFile(s.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading %s: %w", s.path(key), cause(err))
	}
	if !json.Valid(data) {
		return nil, false, nil
	}
	return data, true, nil
}

// Put stores a result. The file gets its name when it is complete. A damaged file is replaced. An existing result
// stays; it is an error if it differs, because equal runs give equal bytes.
func (s *Store) Put(key string, data []byte) error {
	path := s.path(key)
	fail := func(err error) error { return fmt.Errorf("writing %s: %w", path, cause(err)) }
	f, err := os.CreateTemp(s.dir, "."+key+"-*")
	if err != nil {
		return fail(err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return fail(err)
	}
	err = os.Link(f.Name(), path) // unlike a rename, a link does not replace a file
	if err != nil {
		_, there := os.Stat(path)
		if there == nil && s.Has(key) {
			return s.same(path, data)
		}
		// The file is damaged, or the file system does not support links.
		if err = os.Rename(f.Name(), path); err == nil && there == nil {
			s.replaced.Add(1)
		}
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

// same returns an error if a file differs from the data.
func (s *Store) same(path string, data []byte) error {
	there, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, cause(err))
	}
	if !bytes.Equal(there, data) {
		return fmt.Errorf("%s has another result of the same run; it was left as it is "+
			"(want results of one build of the program in a directory)", path)
	}
	return nil
}

// cause returns an error of the file system without operation and path.
func cause(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}
