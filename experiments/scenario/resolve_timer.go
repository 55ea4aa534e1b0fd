package scenario

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/sim/clock"
)

// resolveTimer makes the model of step times, and fills in the digest of a table of them.
func resolveTimer(s *Scenario, e *Engine, p *policy, d *model.Deployment) (timer model.StepTimer, t StepTime,
	found findings) {
	t = s.StepTime
	table, fault := readTable(s, &t)
	if fault != nil {
		return nil, t, refuse(fault)
	}
	options := kernelOptions(e, s.Workload.Sampling, p)
	made := func() (model.StepTimer, error) { return newTimer(&t, d, options, table) }
	timer, err := s.shared().timer(made, options, t, d)
	if err == nil {
		timer, err = withDrafts(s, e, p, d, options, spread(s, e, d, timer))
	}
	if err != nil {
		return nil, t, s.refuse("step_time", "%v", err)
	}
	const longest = int64(clock.Hour) * clock.FemtosPerPico
	if first, slope, _ := timer.Span(&model.Batch{Decodes: 1, Context: 1, Emit: 1}); first <= 0 || slope < 0 ||
		first > longest {
		return nil, t, s.refuse(s.FirstGiven("gpu", "step_time"),
			"an iteration with one sequence takes %.3g s (want more than 0, at most 3600: see the peaks and the "+
				"bandwidth of the GPU)", float64(first)/1e15)
	}
	if x, ok := timer.(*model.Table); ok {
		found.beyondTable(x, e)
	}
	return timer, t, found
}

// newTimer makes the model of step times. It is the list of them: add a case to add one.
func newTimer(t *StepTime, d *model.Deployment, options model.KernelOptions, table tableFile) (model.StepTimer, error) {
	switch t.Kind {
	case "kernels":
		return model.NewKernels(d, options)
	case "roofline":
		return model.NewRoofline(d, t.Roofline.options())
	case "table":
		return table.timer()
	case "linear":
		l := t.Linear
		return model.NewLinear(clock.FromSeconds(l.AMilliseconds/1e3), clock.FromSeconds(l.BMicroseconds/1e6)), nil
	}
	return nil, fmt.Errorf("%q is not known (want %s)", t.Kind, yamldoc.OneOf(stepKinds))
}

// kernelOptions are the options of the calibrated step times.
func kernelOptions(e *Engine, sampling string, p *policy) model.KernelOptions {
	drafts := 0
	if e.Speculative != nil {
		drafts = e.Speculative.NumSpeculativeTokens
	}
	host := e.host(p)
	return model.KernelOptions{
		Drafts:              drafts,
		MaxNumBatchedTokens: *e.MaxNumBatchedTokens,
		MaxNumSeqs:          *e.MaxNumSeqs,
		PadGraphs:           true,
		PadRanks:            p.release.PadRanks,
		TopP:                sampling == "top_p",
		AllReduce:           p.release.AllReduce,
		FuseAllReduce:       e.FuseAllReduceRMS == On,
		UnfusedRecurrence:   host.unfusedRecurrence,
		UnfusedSparse:       host.vllmHost,
		TritonRecurrence:    p.release.TritonRecurrence || host.tritonRecurrence,
		DenseShortPrefill:   host.denseShortPrefill,
		HostLaunches:        e.Policy == "vllm" && e.ownKernels(),
		MaxCapture:          optional.Value(e.MaxCudagraphCaptureSize),
	}
}

// maxTableBytes bounds a file of measured iterations: a million of them.
const maxTableBytes = 32 << 20

// tableFile is the content of the table that step times come from.
type tableFile struct {
	file string
	data []byte
}

// readTable reads the file of step times, if they come from one, and fills in its digest.
func readTable(s *Scenario, t *StepTime) (table tableFile, fault *yamldoc.Fault) {
	if t.Kind != "table" {
		return table, nil
	}
	const key = "step_time.table"
	path := s.path(key, t.Table.File)
	data, err := readUpTo(path, maxTableBytes)
	switch {
	case err != nil:
		return table, s.Fault(key, "%s cannot be read: %s", path, PlainFileError(err))
	case len(data) > maxTableBytes:
		return table, s.Fault(key, "%s has more than %d MiB (want measured iterations, one in a line)", path,
			maxTableBytes>>20)
	case s.Engine.Speculative != nil:
		return table, s.Fault(s.FirstGiven("engine.speculative", key),
			"a table of step times has no draft passes (want step_time kernels or roofline, or no speculative "+
				"decoding)")
	}
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	if given := t.Table.SHA256; given != "" && given != digest {
		return table, s.Fault(key, "%s has the SHA-256 %s, and not %.64s", path, digest, given)
	}
	t.Table.SHA256 = digest
	return tableFile{path, data}, nil
}

// timer makes the table of step times.
func (f *tableFile) timer() (*model.Table, error) {
	all, err := model.ReadIterations(f.file, bytes.NewReader(f.data))
	if err != nil {
		return nil, err
	}
	t, err := model.NewTable(all)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.file, err)
	}
	return t, nil
}

// beyondTable warns of iterations that the table does not cover.
func (f *findings) beyondTable(t *model.Table, e *Engine) {
	decodes, prefill := t.Limits()
	if decodes < *e.MaxNumSeqs || prefill+decodes < *e.MaxNumBatchedTokens {
		f.warn("table_range", "the table of step times ends at %d decodes and %d prefill tokens, but the engine "+
			"allows %d sequences and %d tokens: longer steps are extrapolated",
			decodes, prefill, *e.MaxNumSeqs, *e.MaxNumBatchedTokens)
	}
	if unmixed := t.PrefillOnly(); len(unmixed) > 0 {
		f.warn("table_unmixed", "the table of step times has no decodes beside %d prefill tokens: such iterations are "+
			"given the time of the prefill alone", unmixed[0])
	}
}
