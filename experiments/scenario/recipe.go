package scenario

import "errors"

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
