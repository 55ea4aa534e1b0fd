package scenario

import (
	"fmt"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/report/collect"
	"clifftop/sim/clock"
)

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
		MaxNumBatchedTokens: u.Scenario.Engine.MaxNumBatchedTokens,
		MaxNumSeqs:          u.Scenario.Engine.MaxNumSeqs,
		PadGraphs:           true,
		TopP:                u.Scenario.Workload.Sampling == "top_p",
		FuseAllReduce:       u.Profile.FuseAllReduce,
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
	}
	return r
}
