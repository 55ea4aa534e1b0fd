// Package estimate computes estimates by formula and shows each number with its formula and its inputs.
//
// [Concurrency] applies Little's law and adds percentiles. [AtLoad] simulates, for requests whose duration depends on
// the load. [Cost] computes the price of tokens, [Latency] the duration of one output, and [KV] the memory. Notes say
// what common rules of thumb leave out.
package estimate

// Schema identifies the JSON form of a [Result].
const Schema = "clifftop.estimate/1"

// Result is an estimate with its formulas.
type Result struct {
	Schema string   `json:"schema"`
	Kind   string   `json:"kind"` // concurrency, cost, latency or kv
	Of     string   `json:"of"`   // what is estimated
	Lines  []Line   `json:"lines"`
	Notes  []string `json:"notes"`
}

// Line is one number of a result.
type Line struct {
	// Name is for programs. It ends with the unit, except for counts.
	Name string `json:"name"`
	// Text describes the number for people.
	Text string `json:"text"`
	// Value is nil if the number is unknown or the line has only words.
	Value *float64 `json:"value"`
	Unit  string   `json:"unit"`
	// Formula is the formula of the value in words, and Numbers the formula with numbers. Both are empty for a value
	// that was given or measured.
	Formula string `json:"formula"`
	Numbers string `json:"numbers"`
	// Says is the meaning of the value, such as a band or a tier. It may be empty.
	Says string `json:"says"`
}

func newResult(kind, of string) *Result {
	return &Result{Schema: Schema, Kind: kind, Of: of, Lines: []Line{}, Notes: []string{}}
}

// given adds a number that was given or measured.
func (r *Result) given(name, text string, value float64, unit string) {
	r.Lines = append(r.Lines, Line{Name: name, Text: text, Value: &value, Unit: unit})
}

// add adds a number that was computed.
func (r *Result) add(name, text string, value float64, unit, formula, numbers string) *Line {
	r.Lines = append(r.Lines, Line{Name: name, Text: text, Value: &value, Unit: unit, Formula: formula,
		Numbers: numbers})
	return &r.Lines[len(r.Lines)-1]
}

func (r *Result) note(text string) { r.Notes = append(r.Notes, text) }

// Find returns the value with a name, or nil if there is none.
func (r *Result) Find(name string) *float64 {
	for i := range r.Lines {
		if r.Lines[i].Name == name {
			return r.Lines[i].Value
		}
	}
	return nil
}
