package scenario

import (
	"encoding/json"

	"clifftop/experiments/scenario/yamldoc"
)

// TableStep takes step times from a file of measured iterations; see [model.ReadIterations] for its columns, and
// [model.Table] for what lies between them. It is written as the file's name, or as a map where its content is held to
// a digest.
type TableStep struct {
	// File is a CSV file, relative to the scenario's.
	File string `json:"file"`
	// SHA256 is that of the file, in hexadecimal. Results say it; where it is given, the file must have it.
	SHA256 string `json:"sha256,omitempty"`
}

// tableKeys is TableStep without its short form.
type tableKeys TableStep

func (t *TableStep) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	const want = "a CSV file of measured iterations such as steps.csv"
	switch {
	case n.Kind == yamldoc.Text && n.Text != "":
		t.File = n.Text
	case n.Kind != yamldoc.Map:
		d.Wrong(n, key, want)
	default:
		d.Value(n, key, (*tableKeys)(t), "")
		if t.File == "" {
			d.Fault(n.At, key, "file is missing (want "+want+")", "")
		}
	}
}

// MarshalJSON writes the file's name, or the map.
func (t TableStep) MarshalJSON() ([]byte, error) {
	if t.SHA256 == "" {
		return json.Marshal(t.File)
	}
	return json.Marshal(tableKeys(t))
}
