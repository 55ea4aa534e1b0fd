package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"clifftop/model/catalog"
)

// variations returns the scenario with other constants of the GPU, the engine, the step time and the users. It writes
// the records of changed GPUs into dir.
func (c *cliff) variations(dir string) ([]variant, error) {
	u, err := c.scenario.Resolve()
	if err != nil {
		return nil, err
	}
	var list []variant
	scale := func(v float64) *float64 { return &v }
	for _, g := range []struct {
		name   string
		change func(*catalog.CalibratedRecord)
	}{
		{"arithmetic 20 % slower", func(r *catalog.CalibratedRecord) {
			r.Calibration.GEMMCompute, r.Calibration.AttentionCompute = scale(.8), scale(.8)
		}},
		{"arithmetic 20 % faster", func(r *catalog.CalibratedRecord) {
			r.Calibration.GEMMCompute, r.Calibration.AttentionCompute = scale(1.2), scale(1.2)
		}},
		{"memory 20 % slower", func(r *catalog.CalibratedRecord) {
			r.Calibration.GEMMMemory, r.Calibration.AttentionMemory = scale(.8), scale(.8)
		}},
		{"50 µs more per sequence", func(r *catalog.CalibratedRecord) {
			r.Calibration.SequenceMicroseconds = scale(50)
		}},
	} {
		r := &catalog.CalibratedRecord{Name: c.scenario.GPU + ", " + g.name, Base: c.scenario.GPU}
		g.change(r)
		name := filepath.Join(dir, strings.ReplaceAll(strings.ReplaceAll(g.name, " ", "-"), "%", "percent")+".yaml")
		f, err := os.Create(name)
		if err != nil {
			return nil, err
		}
		if err := r.Write(f); err != nil {
			f.Close()
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
		list = append(list, set(g.name, "gpu="+name))
	}
	return append(list,
		set("step times of a roofline", "step_time=roofline"),
		set("95 % of the GPU's memory", "engine.gpu_memory_utilization=0.95"),
		set("KV blocks of 64 tokens", "engine.block_size=64"),
		set("half the token budget", fmt.Sprintf("engine.max_num_batched_tokens=%d",
			*u.Scenario.Engine.MaxNumBatchedTokens/2)),
		set("other think times: "+c.thinks, "workload.arrivals.think_time="+c.thinks),
	), nil
}
