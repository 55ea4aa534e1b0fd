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

// manifestKey is the manifest's name in a store.
const manifestKey = "manifest"

// A Manifest is what tasks agree on: the list of runs, in order, and what is to be made of their results.
type Manifest struct {
	Schema string `json:"schema"`
	// Build is the version of the program.
	Build string `json:"build"`
	// Command says what becomes of the results; Request is what it needs beside them.
	Command string          `json:"command"`
	Request json.RawMessage `json:"request"`
	Runs    []Run           `json:"runs"`
}

// Run is one run of a list.
type Run struct {
	Label string `json:"label"` // what it is called in messages
	Key   string `json:"key"`   // of its result
}

// PutManifest keeps the manifest. One that is there already must be the same.
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
	return fmt.Errorf("%s holds results of something else: %s (want an empty directory, or the same command)", s.dir, m.differs(old))
}

// Manifest is the manifest of the store; nil where there is none.
func (s *Store) Manifest() (*Manifest, error) {
	data, ok, err := s.Get(manifestKey)
	if err != nil || !ok {
		return nil, err
	}
	return readManifest(s.dir, data)
}

// Lists reports whether a manifest has the runs of the given labels, of what another one says that has none.
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

// Fits makes sure that the results are of this manifest's list of runs.
func (j *Joined) Fits(m *Manifest) error {
	if j.Manifest.same(m) {
		return nil
	}
	return fmt.Errorf("%s holds results of something else: %s (want those of this program and scenario)", j.stores[0].dir, m.differs(j.Manifest))
}

// differs says in what another manifest is different.
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
	return "something else was asked of the same runs"
}

// Joined is what several stores hold of one list of runs.
type Joined struct {
	Manifest *Manifest
	stores   []*Store
}

// Join finds the manifest of directories of results. All must have the same.
func Join(dirs []string) (*Joined, error) {
	j := &Joined{}
	for _, dir := range dirs {
		s := Read(dir)
		data, ok, err := s.Get(manifestKey)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("%s: there is no manifest of results (want a directory that a shard has written)", filepath.Join(dir, manifestKey+suffix))
		}
		m, err := readManifest(dir, data)
		if err != nil {
			return nil, err
		}
		if j.Manifest == nil {
			j.Manifest = m
		} else if text := m.differs(j.Manifest); !m.same(j.Manifest) {
			return nil, fmt.Errorf("%s and %s do not belong together: in the first, %s", dirs[0], dir, strings.TrimPrefix(text, "they "))
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
		return nil, fmt.Errorf("%s is no manifest: %w", path, err)
	}
	if m.Schema != Schema {
		return nil, fmt.Errorf("%s: schema %q is not known (want %s)", path, m.Schema, Schema)
	}
	return m, nil
}

// Get reads the result of run i; ok is false where no task has made it.
func (j *Joined) Get(i int) (data []byte, ok bool, err error) {
	return j.Find(j.Manifest.Runs[i].Key)
}

// Find reads the result with a key, which need not be one of the manifest's.
func (j *Joined) Find(key string) (data []byte, ok bool, err error) {
	for _, s := range j.stores {
		if data, ok, err = s.Get(key); ok || err != nil {
			return data, ok, err
		}
	}
	return nil, false, nil
}

// There are the runs whose results are there, in their order.
func (j *Joined) There() []int {
	there := make([]int, 0, len(j.Manifest.Runs))
	for i := range j.Manifest.Runs {
		if j.Has(i) {
			there = append(there, i)
		}
	}
	return there
}

// Missing are the labels of the runs of which there is no result.
func (j *Joined) Missing() []string {
	var labels []string
	for i, r := range j.Manifest.Runs {
		if !j.Has(i) {
			labels = append(labels, r.Label)
		}
	}
	return labels
}

// Has reports whether the result of run i is there.
func (j *Joined) Has(i int) bool {
	return slices.ContainsFunc(j.stores, func(s *Store) bool { return s.Has(j.Manifest.Runs[i].Key) })
}
