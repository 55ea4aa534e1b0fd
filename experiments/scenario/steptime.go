package scenario

import (
	"encoding/json"
	"fmt"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/report/collect"
	"clifftop/sim/clock"
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

// newTimer makes the model of step times. It is the list of them: add a case to add one.
func (u engineResolver) newTimer() (model.StepTimer, error) {
	s := u.Scenario
	switch s.StepTime.Kind {
	case "kernels":
		return model.NewKernels(u.Deployment, u.KernelOptions())
	case "roofline":
		r := s.StepTime.Roofline
		return model.NewRoofline(u.Deployment, model.RooflineOptions{
			PeakFraction: r.PeakFraction, BandwidthFraction: r.BandwidthFraction,
			LayerTime: r.LayerTime.Clock(), StepTime: r.StepTime.Clock(),
		})
	case "table":
		return u.newTable()
	case "linear":
		l := s.StepTime.Linear
		return model.NewLinear(clock.FromSeconds(l.AMilliseconds/1e3), clock.FromSeconds(l.BMicroseconds/1e6)), nil
	}
	return nil, fmt.Errorf("%q is not known (want %s)", s.StepTime.Kind, yamldoc.OneOf(stepKinds))
}

// KernelOptions are those of the calibrated step times.
func (u *Setup) KernelOptions() model.KernelOptions {
	drafts := 0
	if p := u.Scenario.Engine.Speculative; p != nil {
		drafts = p.NumSpeculativeTokens
	}
	return model.KernelOptions{
		Drafts:              drafts,
		MaxNumBatchedTokens: *u.Scenario.Engine.MaxNumBatchedTokens,
		MaxNumSeqs:          *u.Scenario.Engine.MaxNumSeqs,
		PadGraphs:           true,
		PadRanks:            u.Profile.PadRanks,
		TopP:                u.Scenario.Workload.Sampling == "top_p",
		AllReduce:           u.Profile.AllReduce,
		FuseAllReduce:       u.Scenario.Engine.FuseAllReduceRMS == On,
		UnfusedRecurrence:   u.Scenario.Engine.host(&u.policy).unfusedRecurrence,
		UnfusedSparse:       u.Scenario.Engine.host(&u.policy).vllmHost,
		TritonRecurrence:    u.Profile.TritonRecurrence || u.Scenario.Engine.host(&u.policy).tritonRecurrence,
		DenseShortPrefill:   u.Scenario.Engine.host(&u.policy).denseShortPrefill,
		HostLaunches:        u.Scenario.Engine.Policy == "vllm" && u.Scenario.Engine.ownKernels(),
		MaxCapture:          optional.Value(u.Scenario.Engine.MaxCudagraphCaptureSize),
	}
}

// work says what the hardware does for each unit of a run, for its utilisation; nil where the step time
// has nothing to do with the hardware. Arithmetic of several formats is converted to that of 16 bits by
// the time that it takes at the peak. The bytes of a mixture of experts do not follow from sums, because experts are
// read once for all tokens that visit them, and are left out.
func (u reportResolver) work() *collect.Work {
	if u.Scenario.StepTime.Kind == "linear" {
		return nil
	}
	d := u.Deployment
	w := d.Work()
	gpus := float64(d.TensorParallel * d.PipelineParallel) // of a rank
	peak := d.GPU.BF16FLOPs * gpus
	flops := func(b model.Batch) float64 { return w.ComputeSeconds(&b) * peak }
	bytes := func(b model.Batch) float64 { return w.Bytes(&b) * gpus }
	const context = 1000
	token := model.Batch{Decodes: 1}
	attending := model.Batch{Decodes: 1, Context: context}
	emitting := model.Batch{Decodes: 1, Emit: 1}
	r := &collect.Work{
		FLOPsPerToken:        flops(token),
		FLOPsPerContextToken: (flops(attending) - flops(token)) / context,
		FLOPsPerEmit:         flops(emitting) - flops(token),
		PeakFLOPsPerS:        peak,
	}
	if d.LLM.Experts == 0 {
		r.BytesPerIteration = bytes(emitting)
		r.BytesPerContextToken = (bytes(attending) - bytes(token)) / context
		r.BytesPerToken = float64(d.KVBytesPerToken()) * gpus
		r.PeakBytesPerS = d.GPU.HBMBytesPerSecond * gpus
		// In the mean, an iteration is a part of one with drafts, and reads that part.
		if p := u.meanDecoding(); p != nil {
			yield := model.ExpectedYield(p.NumSpeculativeTokens, p.matched())
			r.BytesPerIteration, r.BytesPerContextToken = r.BytesPerIteration/yield, r.BytesPerContextToken/yield
		}
	}
	return r
}

// meanDecoding is the speculative decoding whose mean is in the step times of decodes; nil if there is none.
func (u reportResolver) meanDecoding() *Speculative {
	p := u.Scenario.Engine.Speculative
	if p == nil || u.role == "prefill" || !engineResolver(u).meanDrafts() {
		return nil
	}
	return p
}

// stepPower is the energy of iterations; nil beside a step time that has nothing to do with the hardware.
func (u reportResolver) stepPower() *model.StepPower {
	if u.Scenario.StepTime.Kind == "linear" {
		return nil
	}
	if p := u.meanDecoding(); p != nil {
		return model.NewMeanDraftedPower(u.Deployment, p.NumSpeculativeTokens, p.matched())
	}
	return model.NewStepPower(u.Deployment)
}
