package scenario

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/input"
)

// Origin remembers where a scenario came from.
type origin struct {
	root   *yamldoc.Node // what was given, flags included
	file   string
	lines  []byte
	sets   []Setting                // that were applied to them, in order
	places map[string]yamldoc.Place // of dotted keys
	shared *shared                  // with all scenarios that were made of this one

	renamed []yamldoc.Renaming // old names that were found

	pool  string                   // the key of the pool that the scenario is of; empty for the whole
	fleet map[string]yamldoc.Place // Places of the whole, beside pool
}

//go:embed example.yaml
var example []byte

// Example is a scenario with comments, to start from.
func Example() []byte { return slices.Clone(example) }

// Load reads a scenario file and applies the settings to it. An empty path is the default scenario, and "-" is
// standard input. A file without any YAML is an error.
func Load(path string, sets ...Setting) (*Scenario, error) { return BuiltIn().Load(path, sets...) }

// Load is [Load] of a scenario that names the rules.
func (r *Rules) Load(path string, sets ...Setting) (*Scenario, error) {
	var data []byte
	var err error
	switch path {
	case "":
	case "-":
		data, err = io.ReadAll(io.LimitReader(input.Stdin(), yamldoc.MaxBytes+1))
		path = "standard input"
	default:
		data, err = readFile(path)
	}
	if err != nil {
		return nil, yamldoc.Faults{{Where: path, Problem: PlainFileError(err)}}
	}
	if path != "" && yamldoc.Blank(data) {
		return nil, yamldoc.Faults{{Where: path, Problem: "there is no scenario in it (want YAML; {} is a scenario of " +
			"defaults)"}}
	}
	return r.Parse(path, data, sets...)
}

// readFile reads a file of at most MaxBytes and one byte more.
func readFile(path string) ([]byte, error) { return readUpTo(path, yamldoc.MaxBytes) }

// readUpTo reads a file of at most so many bytes and one more.
func readUpTo(path string, most int64) ([]byte, error) {
	f, err := input.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, errors.New("this is a directory (want a file)")
	}
	return io.ReadAll(io.LimitReader(f, most+1))
}

// PlainFileError strips the operation and the path from an error of the file system.
func PlainFileError(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// Parse reads a scenario from YAML, applies the settings in order, and checks the whole. The file's
// name serves messages and relative paths. The error is [yamldoc.Faults], and names everything that was found
// wrong at once.
func Parse(file string, data []byte, sets ...Setting) (*Scenario, error) {
	return BuiltIn().Parse(file, data, sets...)
}

// Parse is [Parse] of a scenario that names the rules.
func (r *Rules) Parse(file string, data []byte, sets ...Setting) (*Scenario, error) {
	root, err := yamldoc.Parse(file, data, false)
	if err != nil {
		return nil, err
	}
	d := r.decoder(file, data)
	if root.Kind == yamldoc.Null {
		root.Kind = yamldoc.Map
	}
	for _, s := range sets {
		if f := apply(root, s); f != nil {
			d.Faults = append(d.Faults, f)
		}
	}
	return decodeScenario(d, root, sets, &shared{rules: r})
}

// decodeScenario decodes a tree, to which the settings have been applied, over the defaults.
func decodeScenario(d *yamldoc.Decoder, root *yamldoc.Node, sets []Setting, shared *shared) (*Scenario, error) {
	s := Default()
	d.Value(root, "", s, "")
	s.origin = &origin{root: root, file: d.File, lines: d.Source, sets: sets, places: d.Places, shared: shared}
	s.inherit(d)
	s.origin.renamed = d.Renamed
	if d.Faults != nil {
		return nil, d.Faults
	}
	return s, nil
}

// shared is what the scenario has in common with those made of it; nil without any.
func (s *Scenario) shared() *shared {
	if s.origin == nil {
		return nil
	}
	return s.origin.shared
}

// With is the scenario with further settings applied, checked as a whole.
func (s *Scenario) With(sets ...Setting) (*Scenario, error) {
	if s.origin == nil {
		return nil, errors.New("experiments: a scenario made in Go has no file to set keys in; use Parse")
	}
	d := s.rules().decoder(s.origin.file, s.origin.lines)
	root := s.origin.root.Clone()
	for _, set := range sets {
		if f := apply(root, set); f != nil {
			d.Faults = append(d.Faults, f)
		}
	}
	return decodeScenario(d, root, slices.Concat(s.origin.sets, sets), s.origin.shared)
}

// At is where a key, or else the nearest map around it, was written. A key that its pool has is called by that one's.
func (s *Scenario) at(key string) (p yamldoc.Place, called string, ok bool) {
	called = key
	if s.origin == nil {
		return p, called, false
	}
	for key != "" {
		if p, ok = s.origin.places[key]; ok {
			if _, own := s.origin.fleet[yamldoc.Join(s.origin.pool, key)]; own {
				called = yamldoc.Join(s.origin.pool, called)
			}
			return p, called, true
		}
		key = key[:max(0, strings.LastIndexByte(key, '.'))]
	}
	return yamldoc.Place{Origin: s.origin.file}, called, s.origin.file != ""
}

// Fault says what is wrong with the value of a key.
func (s *Scenario) Fault(key, format string, args ...any) *yamldoc.Fault {
	f := &yamldoc.Fault{Key: key, Problem: fmt.Sprintf(format, args...)}
	if p, called, ok := s.at(key); ok {
		f.Key = called
		f.Where = p.String()
		if p.Origin == s.origin.file {
			f.Excerpt = yamldoc.Excerpt(s.origin.lines, p)
		}
	}
	return f
}

// path makes a path given under a key relative to the scenario file, or, where a flag set it, to
// the working directory.
func (s *Scenario) path(key, path string) string {
	if filepath.IsAbs(path) || s.origin == nil || s.origin.file == "" {
		return path
	}
	if p, ok := s.origin.places[key]; ok && p.Origin != s.origin.file {
		return path
	}
	return filepath.Join(filepath.Dir(s.origin.file), path)
}

// YAML is a file that gives this scenario: what was given, by a file and by settings, and nothing of the defaults. It
// is empty for a scenario made in Go. Comments are lost.
func (s *Scenario) YAML() []byte {
	if s.origin == nil || s.origin.root == nil {
		return nil
	}
	return yamldoc.Marshal(s.origin.root)
}

// Recipe is a scenario as it was given: a text, and what flags set in it. Another process can make the same of it.
type Recipe struct {
	File     string    `json:"file"` // for messages, and for relative paths
	Text     string    `json:"text"`
	Settings []Setting `json:"settings"`
}

// Recipe is what the scenario was made of.
func (s *Scenario) Recipe() (Recipe, error) {
	if s.origin == nil {
		return Recipe{}, errors.New("experiments: a scenario made in Go cannot be given to other processes; use Parse")
	}
	return Recipe{s.origin.file, string(s.origin.lines), s.origin.sets}, nil
}

// Parse makes the scenario again; see [Parse].
func (g Recipe) Parse() (*Scenario, error) { return Parse(g.File, []byte(g.Text), g.Settings...) }

// Given reports whether a key was given by the file or a flag.
func (s *Scenario) Given(key string) bool {
	if s.origin == nil {
		return false
	}
	_, ok := s.origin.places[key]
	return ok
}

// FirstGiven is the first of the keys that was given, or the first of all.
func (s *Scenario) FirstGiven(keys ...string) string {
	for _, key := range keys {
		if s.Given(key) {
			return key
		}
	}
	return keys[0]
}
