package scenario

import (
	"fmt"
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/model/catalog"
	"clifftop/report/collect"
	"clifftop/sim/clock"
)

// resolveReport says what is measured of the requests.
func resolveReport(s *Scenario, w *Workload, t *Traffic) (r collect.Options, found findings) {
	r.Warmup = collect.Warmup{Auto: s.Run.Warmup.Auto, Duration: s.Run.Warmup.Length.Clock()}
	r.Closed = t.Closed && !slices.ContainsFunc(t.clients, leavesWork)
	r.Lifecycle = s.Lifecycle != nil
	slo, err := s.SLO.Objective()
	if err != nil {
		return r, s.refuse("slo", "%v", err)
	}
	r.SLO = slo
	if d := s.Run.Duration; d != nil {
		r.End = clock.Time(d.Clock())
	}
	if w.Arrivals != nil && w.Arrivals.Listed {
		for _, x := range t.Spec.Windows() {
			r.Stages = append(r.Stages, collect.StageSpan{Name: x.Name, End: x.End})
		}
	}
	var more findings
	r.Classes, more = resolveClasses(s, w.Classes, t)
	found.add(more)
	return r, found
}

// resolveClasses returns the kinds of requests to report apart.
func resolveClasses(s *Scenario, classes []Class, t *Traffic) (spans []collect.ClassSpan, found findings) {
	if t.Recording != nil {
		for i, name := range t.Recording.classes {
			if name == "" && i == 0 {
				name = "none"
			}
			spans = append(spans, collect.ClassSpan{Name: name})
		}
		return spans, found
	}
	for i, c := range t.Spec.Classes {
		span := collect.ClassSpan{Name: c.Name}
		if i < len(classes) {
			slo, err := classes[i].SLO.Objective()
			if err != nil {
				return nil, s.refuse(fmt.Sprintf("workload.classes.%d.slo", i), "%v", err)
			}
			span.SLO = slo
		}
		spans = append(spans, span)
	}
	return spans, found
}

func measured(r collect.Options, s *Scenario, l pools) collect.Options {
	r.Replicas, r.Work, r.Tiers = l.engines(), hardwareWork(s, &l[0]), s.Offload.names()
	r.Facility, r.Power = s.Energy.facility(), stepPower(s, &l[0])
	r.PipelineStages = l[0].Config.Stages
	priced := true
	for i := range l {
		p := &l[i]
		n, seats := p.Engines(), *p.Scenario.Engine.MaxNumSeqs
		gpus := p.replicas * p.Deployment.GPUs()
		r.GPUs += gpus
		r.MaxNumSeqs += n * seats
		r.UsableBlocks += int64(n) * int64(p.Config.UsableBlocks())
		if p.Config.Stages != r.PipelineStages {
			r.PipelineStages = 0 // no single number holds for all replicas
		}
		price := optional.Value(p.Scenario.Cost.GPUHour)
		if isFleet(s, l) {
			each := collect.ReplicaOptions{
				Pool: p.Name, GPUs: gpus / n, MaxNumSeqs: seats, UsableBlocks: int64(p.Config.UsableBlocks()),
				Work: hardwareWork(p.Scenario, p), Power: stepPower(p.Scenario, p),
				PipelineStages: p.Config.Stages, USDPerHour: price * float64(gpus/n),
			}
			r.Fleet = append(r.Fleet, slices.Repeat([]collect.ReplicaOptions{each}, n)...)
		}
		r.USDPerHour += price * float64(gpus)
		priced = priced && p.Scenario.Cost.GPUHour != nil
	}
	if !priced {
		r.USDPerHour = 0
	}
	return r
}

// hardwareWork says what the hardware does for each unit of a run, for its utilisation; nil where the step time
// has nothing to do with the hardware. Arithmetic of several formats is converted to 16 bits by
// the time that it takes at the peak. The bytes of a mixture of experts do not follow from sums, because experts are
// read once for all tokens that visit them, and are left out.
func hardwareWork(s *Scenario, p *PoolSetup) *collect.Work {
	if s.StepTime.Kind == "linear" {
		return nil
	}
	d := p.Deployment
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
		if x := meanDecoding(s, p); x != nil {
			yield := model.ExpectedYield(x.NumSpeculativeTokens, x.matched())
			r.BytesPerIteration, r.BytesPerContextToken = r.BytesPerIteration/yield, r.BytesPerContextToken/yield
		}
	}
	return r
}

// meanDecoding is the speculative decoding whose mean is in the step times of decodes; nil if there is none.
func meanDecoding(s *Scenario, p *PoolSetup) *Speculative {
	if s.role == "prefill" || !p.policy.meanDrafts(s) {
		return nil
	}
	return s.Engine.Speculative
}

// stepPower is the energy of iterations; nil beside a step time that has nothing to do with the hardware.
func stepPower(s *Scenario, p *PoolSetup) *model.StepPower {
	if s.StepTime.Kind == "linear" {
		return nil
	}
	if x := meanDecoding(s, p); x != nil {
		return model.NewMeanDraftedPower(p.Deployment, x.NumSpeculativeTokens, x.matched())
	}
	return model.NewStepPower(p.Deployment)
}

// ownAccuracy reads the record of own runs.
func (s *Scenario) ownAccuracy() (*catalog.OwnAccuracy, *yamldoc.Fault) {
	if s.Accuracy == "" {
		return nil, nil
	}
	path := s.path("accuracy", s.Accuracy)
	data, err := readFile(path)
	if err != nil {
		return nil, s.Fault("accuracy", "%s cannot be read: %s", path, PlainFileError(err))
	}
	o, err := catalog.ReadOwnAccuracy(path, data, Release)
	if err != nil {
		return nil, s.Fault("accuracy", "%s", err)
	}
	return o, nil
}
