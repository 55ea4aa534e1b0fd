// Package estimate does the arithmetic that people do by hand before they simulate, and shows it: each number
// stands with its formula and with the numbers that were put into it.
//
// [Concurrency] and [Crowd] are Little's law with the spread that a mean hides, [AtLoad] the same where the time
// that a request takes depends on how many there are, [Cost] the price of tokens, [Latency] the time of one answer
// and [Fit] the memory. What common rules of thumb leave out, the notes say.
package estimate

// Schema identifies the JSON form of a [Result].
const Schema = "clifftop.estimate/1"

// Result is an answer with its arithmetic.
type Result struct {
	Schema string   `json:"schema"`
	Kind   string   `json:"kind"` // concurrency, cost, latency or kv
	Of     string   `json:"of"`   // what is estimated, in words
	Lines  []Line   `json:"lines"`
	Notes  []string `json:"notes"`
}

// Line is one number of a result.
type Line struct {
	// Name is for programs and ends with the unit, but for what merely counts.
	Name string `json:"name"`
	// Text says for people what it is.
	Text string `json:"text"`
	// Value is nil where the line says something in words only, or where the number is unknown.
	Value *float64 `json:"value"`
	Unit  string   `json:"unit"`
	// Formula is how the value comes about, in words and signs, and Numbers the same with numbers in place of the words;
	// both are empty for what was given or measured.
	Formula string `json:"formula"`
	Numbers string `json:"numbers"`
	// Says is what the value means: its band, its tier, a verdict; often empty.
	Says string `json:"says"`
}

func newResult(kind, of string) *Result {
	return &Result{Schema: Schema, Kind: kind, Of: of, Lines: []Line{}, Notes: []string{}}
}

// given adds a number that the user gave.
func (r *Result) given(name, text string, value float64, unit string) {
	r.Lines = append(r.Lines, Line{Name: name, Text: text, Value: &value, Unit: unit})
}

// add adds a number that was computed.
func (r *Result) add(name, text string, value float64, unit, formula, numbers string) *Line {
	r.Lines = append(r.Lines, Line{Name: name, Text: text, Value: &value, Unit: unit, Formula: formula, Numbers: numbers})
	return &r.Lines[len(r.Lines)-1]
}

func (r *Result) note(text string) { r.Notes = append(r.Notes, text) }

// Find is the value under a name; nil if there is none.
func (r *Result) Find(name string) *float64 {
	for i := range r.Lines {
		if r.Lines[i].Name == name {
			return r.Lines[i].Value
		}
	}
	return nil
}
