package scenario

import (
	_ "embed"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/input"
)

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
		return nil, yamldoc.Faults{{Where: path, Problem: "there is no scenario in it (want YAML; {} is a scenario " +
			"of defaults)"}}
	}
	return r.Parse(path, data, sets...)
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

// Choices returns the words that a key takes, such as the formats of deployment.dtype; nil for a key that takes
// anything else.
func Choices(key string) []string {
	t := reflect.TypeFor[Scenario]()
	var words []string
	for _, name := range strings.Split(key, ".") {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return nil
		}
		found := false
		for i := range t.NumField() {
			f := t.Field(i)
			if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
				t, words, found = f.Type, yamldoc.NamesOf(f.Type, f.Tag), true
				break
			}
		}
		if !found {
			return nil
		}
	}
	return words
}
