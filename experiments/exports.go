package experiments

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario"
	"clifftop/report/export"
)

// NewTrace starts a timeline of a run for [RunOptions.Observers]; close it after the run.
func NewTrace(u *scenario.Setup, w io.Writer) *export.Trace {
	s := u.Scenario
	var replicas []export.TraceReplica
	for _, p := range u.Pools {
		name := p.Deployment.String()
		if len(u.Pools) > 1 {
			name = p.Name + ", " + name
		}
		replicas = append(replicas, slices.Repeat([]export.TraceReplica{{Name: name, Stages: p.Config.Stages}},
			p.Engines())...)
	}
	return export.NewTrace(w, export.TraceInfo{
		Replicas: replicas, Lifecycle: s.Lifecycle != nil, End: u.Report.End,
		Other: map[string]any{"clifftop": Version, "name": s.Name, "model": s.Model, "gpu": s.GPU,
			"seed": fmt.Sprint(s.Run.Seed)},
	})
}

// NewMetrics makes the metrics of a run for [RunOptions.Observers], to be written after it.
func NewMetrics(u *scenario.Setup) *export.Metrics { return export.NewMetrics(MetricsInfo(u)) }

// MetricsInfo says what the metrics of a scenario are of.
func MetricsInfo(u *scenario.Setup) export.MetricsInfo {
	info := export.MetricsInfo{MaxModelLen: int(u.LongestSequence()), NetworkIn: u.Pools[0].Config.NetworkIn,
		NetworkOut: u.Pools[0].Config.NetworkOut,
		Lifecycle:  u.Scenario.Lifecycle != nil, End: u.Report.End}
	for _, p := range u.Pools {
		c := &p.Config
		e := export.EngineInfo{Model: p.Scenario.Model, PrefixCaching: c.PrefixCaching,
			Deployment: cmp.Or(p.Name, p.Scenario.Model), GPUs: p.Deployment.GPUs() / p.Ranks}
		if c.NumGPUBlocks > 0 {
			e.UsableBlocks, e.BlockSize = c.UsableBlocks(), int(c.BlockSize)
			e.Config = map[string]string{
				"block_size": fmt.Sprint(c.BlockSize), "num_gpu_blocks": fmt.Sprint(c.NumGPUBlocks),
				"gpu_memory_utilization": fmt.Sprint(optional.Value(p.Scenario.Engine.GPUMemoryUtilization)),
				// as Python writes them
				"enable_prefix_caching": map[bool]string{true: "True", false: "False"}[c.PrefixCaching],
			}
		}
		info.Speculative = info.Speculative || c.Speculative.On()
		info.Engines = append(info.Engines, slices.Repeat([]export.EngineInfo{e}, p.Engines())...)
	}
	return info
}

// DashboardTitle names the dashboard of a run.
func DashboardTitle(u *scenario.Setup) string {
	if name := u.Scenario.Name; name != "" {
		return "Clifftop: " + name
	}
	return "Clifftop: " + u.Pools[0].Deployment.String()
}
