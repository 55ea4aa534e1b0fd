package report

import "clifftop/report/stats"

// PipelineStage has the use of time of a pipeline stage in the window, averaged over the replicas.
type PipelineStage struct {
	// BusyFraction is the part of the window in which it worked on a batch.
	BusyFraction *float64 `json:"busy_fraction"`
}

// Working is the part of the window in which the GPUs worked: BusyFraction or, of pipelines, the mean of their stages.
func (y *System) Working() *float64 {
	if len(y.PipelineStages) == 0 {
		return y.BusyFraction
	}
	sum := 0.0
	for _, stage := range y.PipelineStages {
		if stage.BusyFraction == nil {
			return nil
		}
		sum += *stage.BusyFraction
	}
	return stats.Finite(sum / float64(len(y.PipelineStages)))
}
