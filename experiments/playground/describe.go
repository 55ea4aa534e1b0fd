package playground

import (
	"clifftop/experiments"
	"clifftop/experiments/lessons"
	"clifftop/experiments/scenario"
	"clifftop/report"
)

// Description is the information that a page needs before the first run.
type Description struct {
	Clifftop string               `json:"clifftop"` // version of the program
	Models   *experiments.Listing `json:"models"`
	GPUs     *experiments.Listing `json:"gpus"`
	Policies *experiments.Listing `json:"policies"`
	Presets  *experiments.Listing `json:"presets"`
	Routers  *experiments.Listing `json:"routers"`
	// Choices are the possible values of some keys.
	Choices map[string][]string `json:"choices"`
	Tiles   []report.Tile       `json:"tiles"`
	Lessons []Tour              `json:"lessons"`
}

// Tour is a lesson before its run.
type Tour struct {
	Number int            `json:"number"`
	Name   string         `json:"name"`
	Title  string         `json:"title"`
	Idea   string         `json:"idea"`
	Terms  []lessons.Term `json:"terms"`
	Steps  []TourStep     `json:"steps"`
}

// TourStep is a step. A [Query] with the numbers of the lesson and the step gives its scenario.
type TourStep struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// Vary is the varied key, as KEY=V1,V2; empty if the step runs once.
	Vary string `json:"vary"`
}

// Describe returns the description.
func (p *Player) Describe() (*Description, error) {
	d := &Description{Clifftop: experiments.Version, Choices: map[string][]string{},
		Tiles: report.Tiles()}
	for kind, to := range map[string]**experiments.Listing{"models": &d.Models, "gpus": &d.GPUs,
		"policies": &d.Policies, "presets": &d.Presets, "routers": &d.Routers} {
		l, err := experiments.Catalog(kind)
		if err != nil {
			return nil, err
		}
		*to = l
	}
	for _, key := range []string{"deployment.dtype", "deployment.kv_cache_dtype"} {
		d.Choices[key] = scenario.Choices(key)
	}
	all, err := lessons.All()
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		tour := Tour{Number: l.Number, Name: l.Name, Title: l.Title, Idea: l.Idea, Terms: l.Terms}
		for _, s := range l.Steps {
			tour.Steps = append(tour.Steps, TourStep{s.Name, s.Text, s.Vary})
		}
		d.Lessons = append(d.Lessons, tour)
	}
	return d, nil
}
