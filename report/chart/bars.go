package chart

// Timeline is a picture of events over time: a lane for each object, with a slice for each of its activities.
type Timeline struct {
	// Title is the message of the picture; Caption says what was simulated.
	Title   string `json:"title"`
	Caption string `json:"caption"`
	// Kinds name what slices are; each has its colour.
	Kinds []string `json:"kinds"`
	// Lanes stand from top to bottom.
	Lanes []Lane `json:"lanes"`
	// FromS and ToS are the ends of the stretch that is shown, in seconds.
	FromS float64 `json:"from_s"`
	ToS   float64 `json:"to_s"`
	// Notes stand below.
	Notes []string `json:"notes"`
}

// Message implements [Picture].
func (t *Timeline) Message() string { return t.Title }

// Lane is one thing over time.
type Lane struct {
	Name   string  `json:"name"`
	Slices []Slice `json:"slices"`
}

// Slice is an activity of a lane; Kind is an index of the timeline's kinds.
type Slice struct {
	StartS float64 `json:"start_s"`
	EndS   float64 `json:"end_s"`
	Kind   int     `json:"kind"`
	// Text is a longer description, for tooltips.
	Text string `json:"text,omitempty"`
}

// Waterfall is a picture of amounts that shrink from stage to stage: for each group a bar per stage, with the loss
// since the stage before.
type Waterfall struct {
	// Title is the message of the picture; Caption says what was simulated.
	Title   string `json:"title"`
	Caption string `json:"caption"`
	// Unit stands at the axis.
	Unit string `json:"unit"`
	// Stages name the bars of each group, from the whole amount to the last remainder.
	Stages []string         `json:"stages"`
	Groups []WaterfallGroup `json:"groups"`
	Notes  []string         `json:"notes"`
}

// Message implements [Picture].
func (f *Waterfall) Message() string { return f.Title }

// WaterfallGroup has an amount for each stage.
type WaterfallGroup struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
}
