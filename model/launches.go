package model

// launches is the time in which the host launches the kernels of a step that is not a whole CUDA graph. The host runs
// ahead while the GPU is busy, so that the longer time of both counts. It does not run ahead of recurrent layers, whose
// length of chunks it reads back.
type launches struct {
	known     bool      // the host's launches are modelled
	captured  int64     // largest step in tokens that runs in CUDA graphs
	piecewise hostParts // a step with prefill in piecewise graphs, which leave out token mixers
	eager     hostParts // a larger step
	floor     int64     // minimum time of a larger step
}

// hostParts are minimum times of a step: of its recurrent layers, and in all.
type hostParts struct{ recurrent, all int64 }

// stepParts are the times of the parts of a step.
type stepParts struct {
	attention, recurrent int64 // of the token mixers
	rest                 int64 // of everything else
}

func (p stepParts) sum() int64 { return min(p.attention+p.recurrent+p.rest, maxFemtos) }

// prepareLaunches computes the times of the host.
func (k *Kernels) prepareLaunches() {
	p := k.ops
	k.launches = launches{captured: maxFemtos, floor: k.eagerFloor}
	if !p.o.HostLaunches {
		return
	}
	k.launches.known, k.launches.captured = true, 0
	if p.o.PadGraphs {
		k.launches.captured = int64(k.padLimit())
	}
	c, d := &p.c.Common.Launch, p.d
	reduce := 0.0 // launches of an all-reduce, after each part
	if d.TensorParallel > 1 {
		reduce = 1
	}
	var piecewise, eager struct{ attention, recurrent, rest float64 }
	for i := range p.classes {
		switch x := &p.classes[i]; {
		case x.Kind.Recurrent():
			eager.recurrent += float64((c.Recurrent + reduce) * x.layers)
			piecewise.recurrent += float64(c.PiecewiseRecurrent * x.layers)
			continue
		case x.Indexer.TopK > 0 && !x.compressed():
			eager.attention += float64((c.SparseAttention + reduce) * x.layers)
		case d.LLM.UsesMLA() || x.compressed():
			eager.attention += float64((c.LatentAttention + reduce) * x.layers)
		default:
			eager.attention += float64((c.Attention + reduce) * x.layers)
		}
		piecewise.attention += float64(c.PiecewiseAttention * p.classes[i].layers)
	}
	dense, moe := d.LLM.mlpLayers()
	exchange := 0.0
	if d.DataParallel > 1 {
		exchange = c.Exchange
	}
	eager.rest = float64((c.MLP+reduce)*float64(dense)) + float64((c.Experts+reduce+exchange)*float64(moe))
	fs := func(seconds float64) int64 { return roundFemtos(seconds * femtosPerSecond) }
	least := func(p stepParts) hostParts { return hostParts{p.recurrent, k.fixed + p.sum()} }
	k.launches.piecewise = least(stepParts{fs(piecewise.attention), fs(piecewise.recurrent), 0})
	k.launches.eager = least(stepParts{fs(eager.attention * c.Eager), fs(eager.recurrent * c.Eager),
		fs(eager.rest * c.Eager)})
	k.launches.floor = max(k.eagerFloor, k.launches.eager.all)
}

// launchWait returns the time in which the GPU waits for launches in a step of a number of tokens. Its parts take a
// time in all, that of recurrent layers among it.
func (k *Kernels) launchWait(recurrent, all, tokens int64, prefill bool) int64 {
	host := &k.launches.piecewise
	switch {
	case tokens > k.launches.captured:
		host = &k.launches.eager
	case !prefill:
		return 0
	}
	return max(0, host.recurrent-recurrent, host.all-all)
}

// floor returns the minimum time of a step of decodes.
func (k *Kernels) floor(tokens int64) int64 {
	if tokens > k.launches.captured {
		return k.launches.floor
	}
	return k.eagerFloor
}
