package lessons

import (
	"bytes"
	"embed"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"clifftop/experiments"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/experiments/studies"
	"clifftop/experiments/sweep"
)

//go:embed text/*.yaml scenarios/*.yaml
var files embed.FS

// Lesson is a lesson as it is written. Its texts may hold names in braces, such as {tpot}, which stand for numbers
// that the run measures.
type Lesson struct {
	// Number is its place in the course, from 1 on.
	Number int `yaml:"-"`
	// Name is one word.
	Name string `yaml:"name"`
	// Title is a line, and Idea a few sentences.
	Title string `yaml:"title"`
	Idea  string `yaml:"idea"`
	// Terms explain the words that the lesson needs.
	Terms []Term `yaml:"terms"`
	// Steps are the simulations.
	Steps []Step `yaml:"steps"`
	// Look says what to see in the results.
	Look []string `yaml:"look"`
	// Mistakes are common mistakes and their corrections.
	Mistakes []Mistake `yaml:"mistakes"`
	// Question is one for the class, and Answer its answer.
	Question string `yaml:"question"`
	Answer   string `yaml:"answer"`

	hold func(*class) error // reads the results
}

// Term is a word and its meaning.
type Term struct {
	Word    string `yaml:"word"`
	Meaning string `yaml:"meaning"`
}

// Mistake is something that is often said.
type Mistake struct {
	Said  string `yaml:"said"`
	Right string `yaml:"right"`
}

// Step is a scenario that is run, once or for several values of a key.
type Step struct {
	// Name is how the lesson speaks of it; Text says what is done.
	Name string `yaml:"name"`
	Text string `yaml:"text"`
	// Scenario is the name of a scenario's file, or studies/ and that of a study, and Set changes keys of it, as
	// KEY=VALUE.
	Scenario string   `yaml:"scenario"`
	Set      []string `yaml:"set"`
	// Vary is a key and its values, as KEY=V1,V2; empty runs the scenario once.
	Vary string `yaml:"vary"`
	// Watch is a stretch of simulated time whose iterations are kept; nil keeps none.
	Watch *Stretch `yaml:"watch"`
}

// Stretch is a part of a run, in seconds.
type Stretch struct {
	FromS float64 `yaml:"from_s"`
	ToS   float64 `yaml:"to_s"`
}

// All are the lessons in their order.
func All() ([]*Lesson, error) {
	entries, err := files.ReadDir("text") // in the order of their names, which begin with numbers
	if err != nil {
		return nil, err
	}
	var all []*Lesson
	for _, e := range entries {
		first, _, _ := strings.Cut(e.Name(), "-")
		number, err := strconv.Atoi(first)
		if err != nil {
			return nil, fmt.Errorf("lesson %s has no number", e.Name())
		}
		data, err := files.ReadFile(path.Join("text", e.Name()))
		if err != nil {
			return nil, err
		}
		l := &Lesson{Number: number}
		if err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(l); err != nil {
			return nil, fmt.Errorf("lesson %s: %w", e.Name(), err)
		}
		if l.hold = function(l.Name); l.hold == nil {
			return nil, fmt.Errorf("lesson %s: nothing is known of %q", e.Name(), l.Name)
		}
		all = append(all, l)
	}
	return all, nil
}

// function reads the results of the lesson of a name; nil if there is none.
func function(name string) func(*class) error {
	switch name {
	case "batching":
		return batching
	case "interference":
		return interference
	case "cost":
		return cost
	case "kv-limit":
		return kvLimit
	case "little":
		return little
	case "overload":
		return overload
	case "prefix-cache":
		return prefixCache
	case "retries":
		return retries
	case "roofline":
		return roofline
	case "tail":
		return tail
	}
	return nil
}

// Find looks a lesson up by its number or its name.
func Find(text string) (*Lesson, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, l := range all {
		if text == strconv.Itoa(l.Number) || strings.EqualFold(text, l.Name) {
			return l, nil
		}
		names = append(names, l.Name)
	}
	f := &yamldoc.Fault{Where: "lesson",
		Problem: fmt.Sprintf("%.40q is not known (want 1 to %d, or list)", text, all[len(all)-1].Number)}
	if hint := yamldoc.DidYouMean(text, names); hint != "" {
		f.Hint = hint
	}
	return nil, yamldoc.Faults{f}
}

// Listing lists the lessons for the catalog.
func Listing() (*experiments.Listing, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	list := &experiments.Listing{Schema: experiments.CatalogSchema, Kind: "lessons"}
	for _, l := range all {
		list.Items = append(list.Items, experiments.Entry{
			Name: strconv.Itoa(l.Number), Aliases: []string{l.Name},
			Source:     "clifftop lesson " + strconv.Itoa(l.Number),
			Properties: []experiments.Property{{Name: "lesson", Value: l.Name}, {Name: "title", Value: l.Title}},
		})
	}
	return list, nil
}

// Scenarios are the scenario files that the lesson runs, by name.
func (l *Lesson) Scenarios() (map[string][]byte, error) {
	out := map[string][]byte{}
	for i := range l.Steps {
		data, err := l.Steps[i].read()
		if err != nil {
			return nil, err
		}
		out[l.Steps[i].File()] = data
	}
	return out, nil
}

// ofStudies is the prefix of the names of scenarios that belong to a study.
const ofStudies = "studies/"

func (s *Step) read() ([]byte, error) {
	if name, ok := strings.CutPrefix(s.Scenario, ofStudies); ok {
		return studies.Cliffs.ReadFile(name)
	}
	return files.ReadFile(path.Join("scenarios", s.Scenario))
}

// File is the name of the step's scenario without its directory.
func (s *Step) File() string { return path.Base(s.Scenario) }

// Commands returns the commands that repeat a step, with its scenario in dir.
func (s *Step) Commands(dir string) []string {
	base := path.Join(dir, s.File())
	for _, set := range s.Set {
		base += " --set " + quoted(set)
	}
	if s.Vary == "" {
		return []string{"clifftop run " + base}
	}
	key, values, err := sweep.ParseOver(s.Vary)
	if err != nil || numbers(values) {
		return []string{"clifftop sweep " + base + " --over " + quoted(s.Vary)}
	}
	var commands []string
	for _, v := range values {
		commands = append(commands, "clifftop run "+base+" --set "+quoted(key+"="+v))
	}
	return commands
}

// numbers says whether all values can stand on an axis.
func numbers(values []string) bool {
	for _, v := range values {
		if _, err := strconv.ParseFloat(v, 64); err != nil {
			return false
		}
	}
	return true
}

func quoted(word string) string {
	if strings.ContainsAny(word, " {}[]*?'\"") {
		return "'" + word + "'"
	}
	return word
}
