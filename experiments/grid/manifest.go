package grid

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Schema identifies a [Manifest].
const Schema = "clifftop.grid/1"

// manifestKey is the key of the manifest in a store.
const manifestKey = "manifest"

// A Manifest is the description of the work that all tasks share: the list of runs in order, and the use of the
// results.
type Manifest struct {
	Schema string `json:"schema"`
	// Build is the version of the program.
	Build string `json:"build"`
	// Command names the command that uses the results, and Request has the other inputs of the command.
	Command string          `json:"command"`
	Request json.RawMessage `json:"request"`
	Runs    []Run           `json:"runs"`
}

// Run is one run of a list.
type Run struct {
	Label string `json:"label"` // name of the run in messages
	Key   string `json:"key"`   // key of its result
}

// PutManifest stores the manifest. If the store has one already, it must be equal.
func (s *Store) PutManifest(m *Manifest) error {
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	there, ok, err := s.Get(manifestKey)
	if err != nil {
		return err
	}
	if !ok {
		if err = s.Put(manifestKey, data); err == nil {
			return nil
		}
		if there, ok, _ = s.Get(manifestKey); !ok {
			return err
		}
	}
	if bytes.Equal(there, data) {
		return nil
	}
	old, err := readManifest(s.dir, there)
	if err != nil {
		return err
	}
	return fmt.Errorf("%s holds results of something else: %s (want an empty directory, or the same command)",
		s.dir, m.differs(old))
}

// Manifest returns the manifest of the store, or nil if there is none.
func (s *Store) Manifest() (*Manifest, error) {
	data, ok, err := s.Get(manifestKey)
	if err != nil || !ok {
		return nil, err
	}
	return readManifest(s.dir, data)
}

// Lists reports whether a manifest has runs with the given labels and otherwise equals head, which has no runs.
func (m *Manifest) Lists(head *Manifest, labels []string) bool {
	if len(m.Runs) != len(labels) {
		return false
	}
	for i, label := range labels {
		if m.Runs[i].Label != label {
			return false
		}
	}
	bare := *m
	bare.Runs = head.Runs
	return bare.same(head)
}

// Fits returns an error if the joined results belong to another manifest.
func (j *Joined) Fits(m *Manifest) error {
	if j.Manifest.same(m) {
		return nil
	}
	return fmt.Errorf("%s holds results of something else: %s (want results of this program and scenario)",
		j.stores[0].dir, m.differs(j.Manifest))
}

// differs describes the first difference of another manifest.
func (m *Manifest) differs(o *Manifest) string {
	switch {
	case m.Build != o.Build:
		return fmt.Sprintf("they were made by version %s, not %s", o.Build, m.Build)
	case m.Command != o.Command:
		return fmt.Sprintf("of clifftop %s, not %s", o.Command, m.Command)
	case len(m.Runs) != len(o.Runs):
		return fmt.Sprintf("of %d runs, not %d", len(o.Runs), len(m.Runs))
	}
	for i, r := range m.Runs {
		switch old := o.Runs[i]; {
		case r.Label != old.Label:
			return fmt.Sprintf("run %d is %s, not %s", i, old.Label, r.Label)
		case r.Key != old.Key:
			return fmt.Sprintf("%s was run from another scenario", r.Label)
		}
	}
	return "the same runs were made for another request"
}

// Joined is the results of one list of runs in several stores.
type Joined struct {
	Manifest *Manifest
	stores   []*Store
}

// Join opens directories of results, which must all have the same manifest.
func Join(dirs []string) (*Joined, error) {
	j := &Joined{}
	for _, dir := range dirs {
		s := Read(dir)
		data, ok, err := s.Get(manifestKey)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("%s: there is no manifest of results (want a directory that a shard wrote)",
				filepath.Join(dir, manifestKey+suffix))
		}
		m, err := readManifest(dir, data)
		if err != nil {
			return nil, err
		}
		if j.Manifest == nil {
			j.Manifest = m
		} else if text := m.differs(j.Manifest); !m.same(j.Manifest) {
			return nil, fmt.Errorf("%s and %s do not belong together: the first has results %s",
				dirs[0], dir, strings.TrimPrefix(text, "they were "))
		}
		j.stores = append(j.stores, s)
	}
	return j, nil
}

func (m *Manifest) same(o *Manifest) bool {
	a, err1 := json.Marshal(m)
	b, err2 := json.Marshal(o)
	return err1 == nil && err2 == nil && bytes.Equal(a, b)
}

func readManifest(dir string, data []byte) (*Manifest, error) {
	m := &Manifest{}
	path := filepath.Join(dir, manifestKey+suffix)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%s is not a manifest: %w", path, err)
	}
	if m.Schema != Schema {
		return nil, fmt.Errorf("%s: schema %q is not known (want %s)", path, m.Schema, Schema)
	}
	return m, nil
}

// Get reads the result of run i. It returns ok false if there is none.
func (j *Joined) Get(i int) (data []byte, ok bool, err error) {
	return j.Find(j.Manifest.Runs[i].Key)
}

// Find reads the result with a key. The key need not be in the manifest.
func (j *Joined) Find(key string) (data []byte, ok bool, err error) {
	for _, s := range j.stores {
		if data, ok, err = s.Get(key); ok || err != nil {
			return data, ok, err
		}
	}
	return nil, false, nil
}

// There returns the indices of the runs that have results, in order.
func (j *Joined) There() []int {
	there := make([]int, 0, len(j.Manifest.Runs))
	for i := range j.Manifest.Runs {
		if j.Has(i) {
			there = append(there, i)
		}
	}
	return there
}

// Missing returns the labels of the runs that have no result.
func (j *Joined) Missing() []string {
	var labels []string
	for i, r := range j.Manifest.Runs {
		if !j.Has(i) {
			labels = append(labels, r.Label)
		}
	}
	return labels
}

// Has reports whether run i has a result.
func (j *Joined) Has(i int) bool {
	return slices.ContainsFunc(j.stores, func(s *Store) bool { return s.Has(j.Manifest.Runs[i].Key) })
}
