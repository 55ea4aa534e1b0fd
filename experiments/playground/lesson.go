package playground

import (
	"context"
	"strconv"

	"clifftop/experiments/lessons"
	"clifftop/report/chart"
)

// Lesson is a lesson after its run, with its pictures.
type Lesson struct {
	*lessons.Result
	Pictures []Picture `json:"pictures"`
}

// Picture is a picture of one kind.
type Picture struct {
	Name      string           `json:"name"`
	Lines     *chart.Lines     `json:"lines,omitempty"`
	Timeline  *chart.Timeline  `json:"timeline,omitempty"`
	Waterfall *chart.Waterfall `json:"waterfall,omitempty"`
}

// Hold runs a lesson by its number. progress, unless it is nil, is called with the number of finished runs.
func (p *Player) Hold(ctx context.Context, number int, progress func(done, total int)) (*Lesson, error) {
	l, err := lessons.Find(strconv.Itoa(number))
	if err != nil {
		return nil, err
	}
	r, err := l.Run(ctx, lessons.Options{Jobs: 1, Progress: progress})
	if err != nil {
		return nil, err
	}
	held := &Lesson{Result: r}
	for i := range r.Steps {
		for k := range r.Steps[i].Points {
			r.Steps[i].Points[k].Summary = nil // the table has what matters
		}
	}
	for _, named := range r.Pictures {
		picture := Picture{Name: named.Name}
		switch p := named.Picture.(type) {
		case *chart.Lines:
			picture.Lines = p
		case *chart.Timeline:
			picture.Timeline = p
		case *chart.Waterfall:
			picture.Waterfall = p
		}
		held.Pictures = append(held.Pictures, picture)
	}
	return held, nil
}
