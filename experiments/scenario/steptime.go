package scenario

import (
	"encoding/json"
	"fmt"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
)

// StepTime is the model of an iteration's length: a name, or a map of one name to its constants.
type StepTime struct {
	// Kind is kernels (calibrated on measured kernels), roofline (peaks and a few efficiencies), table (measured
	// iterations) or linear.
	Kind     string
	Linear   LinearStep
	Roofline RooflineStep
	Table    TableStep
}

// LinearStep makes every iteration last A + B·n, n being the sequences in it, whatever their
// lengths. The KV pool is then unlimited and the overheads are 0, unless they are set.
type LinearStep struct {
	// AMilliseconds is the length of an iteration without sequences.
	AMilliseconds float64 `json:"a_ms" range:"[0,1000000]"`
	// BMicroseconds is added for each sequence.
	BMicroseconds float64 `json:"b_us" range:"[0,1000000000]"`
}

func (l *LinearStep) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	zero := func(name string) bool {
		v := n.Get(name)
		return v == nil || v.Kind == yamldoc.Null || v.Kind == yamldoc.Number && v.Number == 0
	}
	if zero("a_ms") && zero("b_us") {
		d.Fault(n.At, key, "a_ms and b_us are both 0 (want an iteration that takes time)", "")
	}
}

// stepKinds are the names of the step-time models.
var stepKinds = []string{"kernels", "roofline", "table", "linear"}

// MarshalJSON writes the name, or a map of it to its constants.
func (s StepTime) MarshalJSON() ([]byte, error) {
	switch {
	case s.Kind == "linear":
		return json.Marshal(map[string]any{s.Kind: s.Linear})
	case s.Kind == "roofline":
		return json.Marshal(map[string]any{s.Kind: s.Roofline})
	case s.Kind == "table":
		return json.Marshal(map[string]any{s.Kind: s.Table})
	}
	return json.Marshal(s.Kind)
}

func (s *StepTime) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	const want = "kernels, roofline, or a map such as {linear: {a_ms: 10, b_us: 100}} or {table: steps.csv}"
	*s = StepTime{Kind: "kernels", Roofline: defaultRoofline()}
	switch {
	case n.Kind == yamldoc.Text && n.Text == "linear":
		d.Fault(n.At, key, "linear needs its constants (want {linear: {a_ms: 10, b_us: 100}})", "")
	case n.Kind == yamldoc.Text && n.Text == "table":
		d.Fault(n.At, key, "table needs its file (want {table: steps.csv})", "")
	case n.Kind == yamldoc.Text && (n.Text == "kernels" || n.Text == "roofline"):
		s.Kind = n.Text
	case n.Kind == yamldoc.Text:
		d.Fault(n.At, key, fmt.Sprintf("%q is not known (want %s)", yamldoc.Short(n.Text), want),
			yamldoc.DidYouMean(n.Text, stepKinds))
	case n.Kind != yamldoc.Map:
		d.Wrong(n, key, want)
	case len(n.Fields) != 1:
		d.Fault(n.At, key, fmt.Sprintf("the map has %d keys (want %s)", len(n.Fields), want), "")
	default:
		s.decodeKind(d, n.Fields[0], yamldoc.Join(key, n.Fields[0].Name))
	}
}

func (s *StepTime) decodeKind(d *yamldoc.Decoder, f yamldoc.Field, key string) {
	s.Kind = f.Name
	switch f.Name {
	case "kernels":
		d.Value(f.Value, key, &struct{}{}, "")
	case "roofline":
		d.Value(f.Value, key, &s.Roofline, "")
	case "table":
		d.Value(f.Value, key, &s.Table, "")
		if f.Value.Kind == yamldoc.Null {
			d.Fault(f.At, key, "table needs its file (want {table: steps.csv})", "")
		}
	case "linear":
		if f.Value.Kind == yamldoc.Null {
			f.Value.Kind = yamldoc.Map
		}
		d.Value(f.Value, key, &s.Linear, "")
	default:
		s.Kind = "kernels"
		d.Fault(f.At, key, "unknown key (want "+yamldoc.OneOf(stepKinds)+")", yamldoc.DidYouMean(f.Name, stepKinds))
	}
}

// RooflineStep holds the constants of the roofline. Those left out keep their defaults.
type RooflineStep struct {
	// PeakFraction is the part of the datasheet's arithmetic that is reached.
	PeakFraction float64 `json:"peak_fraction" range:"(0,1]"`
	// BandwidthFraction is the part of the datasheet's memory bandwidth that is reached.
	BandwidthFraction float64 `json:"bandwidth_fraction" range:"(0,1]"`
	// LayerTime is added for every layer.
	LayerTime yamldoc.Duration `json:"layer_time" range:"[0,1]"`
	// StepTime is added for every iteration.
	StepTime yamldoc.Duration `json:"step_time" range:"[0,1]"`
}

func defaultRoofline() RooflineStep {
	o := model.DefaultRooflineOptions()
	return RooflineStep{o.PeakFraction, o.BandwidthFraction, yamldoc.Duration(o.LayerTime),
		yamldoc.Duration(o.StepTime)}
}

// options are the constants as the model package takes them.
func (r *RooflineStep) options() model.RooflineOptions {
	return model.RooflineOptions{
		PeakFraction: r.PeakFraction, BandwidthFraction: r.BandwidthFraction,
		LayerTime: r.LayerTime.Clock(), StepTime: r.StepTime.Clock(),
	}
}

// TableStep takes step times from a file of measured iterations; see [model.ReadIterations] for its columns, and
// [model.Table] for what lies between them. It is written as the file's name, or as a map where its content is held to
// a digest.
type TableStep struct {
	// File is a CSV file, relative to the scenario's.
	File string `json:"file"`
	// SHA256 is the hash of the file, in hexadecimal. Results say it; where it is given, the file must have it.
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
