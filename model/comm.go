package model

import (
	"fmt"
	"math"
	"math/bits"
)

// commLinks are the links between the GPUs of a deployment.
type commLinks struct {
	c      *AllReduceConstants
	own    *[3][reduceRegimes]ReduceRegime // of the engine's all-reduce, by size of the group
	nic    float64                         // achieved network bandwidth of collectives, bytes per second and GPU
	domain int                             // GPUs that the scale-up links join; more communicate over the network
	hop    float64                         // bandwidth between pipeline stages, bytes per second
}

// Achieved fractions of the datasheet's link speeds, and latencies in seconds: engineering estimates, not measured.
const (
	nicFraction  = 0.8
	hopFraction  = 0.6 // point to point inside a node
	hopLatency   = 10e-6
	nodesLatency = 20e-6 // per doubling of the number of nodes
)

func newCommLinks(d *Deployment, o *KernelOptions) commLinks {
	c := d.GPU.constants(o.Tables)
	l := commLinks{
		c: &c.AllReduce, own: &c.AllReduce.Regimes[o.AllReduce],
		nic: nicFraction * d.GPU.NICBytesPerSecond,
		hop: hopFraction * d.GPU.ScaleUpBytesPerSecond, domain: d.GPU.DomainSize(),
	}
	if d.GPUs() > l.domain {
		l.hop = l.nic
	}
	return l
}

// checkLinks returns an error if the GPU lacks a link that the deployment needs.
func (d *Deployment) checkLinks() error {
	l := newCommLinks(d, &KernelOptions{})
	group := d.TensorParallel
	if d.LLM.Experts > 0 {
		group = d.moeRanks()
	}
	if group > l.domain && !(l.nic > 0) {
		return fmt.Errorf("%d GPUs span more than one node of %d, and %s has no network bandwidth", group,
			l.domain, d.GPU.Name)
	}
	if d.PipelineParallel > 1 && !(l.hop > 0) {
		return fmt.Errorf("pipeline_parallel_size %d: no bandwidth between the GPUs of %s is known",
			d.PipelineParallel, d.GPU.Name)
	}
	return nil
}

// line returns the index of the measurements for a group of n.
func (l *commLinks) line(n int) int { return min(bits.Len(uint(n-1)), 3) - 1 }

// transfer returns the time to move each rank's share of the given bytes twice around a group of n GPUs, as in an
// all-reduce, or an all-gather with a reduce-scatter.
func (l *commLinks) transfer(bytes float64, n int) float64 {
	inside := float64(min(n, l.domain))
	t := 2 * (inside - 1) / inside * bytes / l.c.BusBytesPerSecond[l.line(n)]
	if nodes := l.domains(n); nodes > 1 {
		t += 2 * float64(nodes-1) / float64(nodes) * bytes / (float64(l.domain) * l.nic)
	}
	return t
}

func (l *commLinks) latency(n int) float64 {
	return l.c.Latency[l.line(n)] + float64(nodesLatency*float64(bits.Len(uint(l.domains(n)-1))))
}

// domains returns the number of scale-up domains of n GPUs.
func (l *commLinks) domains(n int) int { return (n + l.domain - 1) / l.domain }

// allReduce returns the cost of an all-reduce of the given bytes over n GPUs, by the engine's kernels.
func (l *commLinks) allReduce(bytes float64, n int) cost { return l.reduceBy(l.own, bytes, n) }

// reduceBy returns the cost of an all-reduce of the given bytes over n GPUs by the given kernels. Beyond a node the
// network is added. A GPU without measured kernels has one latency and one bandwidth for all sizes.
func (l *commLinks) reduceBy(kernels *[3][reduceRegimes]ReduceRegime, bytes float64, n int) cost {
	if n <= 1 {
		return cost{}
	}
	c := cost{latency: l.latency(n), memory: l.transfer(bytes, n)}
	for _, r := range kernels[l.line(n)] {
		if bytes < r.Below {
			inside := min(n, l.domain)
			c.latency += r.Latency - l.c.Latency[l.line(n)]
			c.memory += float64(bytes*r.SecondsPerByte) - l.transfer(bytes, inside)
			break
		}
	}
	c.seconds = c.latency + c.memory
	return c
}

// fusedNorms is the number of a layer's small kernels that fused all-reduces replace.
const fusedNorms = 2

// fusesAllReduce reports whether the all-reduces of a step of m tokens are fused with the norms after them.
func (o *ops) fusesAllReduce(m float64) bool {
	n := o.d.TensorParallel
	return o.o.FuseAllReduce && n > 1 && n <= min(8, o.comm.domain) && 2*m*o.h <= o.comm.c.FusedBytes[o.comm.line(n)]
}

// layerReduce returns the cost of one all-reduce of a layer, after attention or after the MLP. Engines fuse it with
// the norm by kernels of TensorRT-LLM.
func (o *ops) layerReduce(m float64) cost {
	if !o.fusesAllReduce(m) {
		return o.comm.allReduce(2*m*o.h, o.d.TensorParallel)
	}
	fused := &o.comm.c.Regimes[ReduceTRTLLM]
	c := o.comm.reduceBy(fused, 2*m*o.h, o.d.TensorParallel)
	if fused[0][0].Below == 0 {
		c.latency = o.comm.c.FusedLatency
		c.seconds = c.latency + c.memory
	}
	return c
}

// reduceJumps returns the numbers of rows of the given bytes at which the time of an all-reduce may jump.
func (o *ops) reduceJumps(row float64) []int64 {
	n := o.d.TensorParallel
	if n <= 1 {
		return nil
	}
	line := o.comm.line(n)
	jumps := []int64{int64(o.comm.c.FusedBytes[line]/row) + 1}
	for _, kernels := range []*[3][reduceRegimes]ReduceRegime{o.comm.own, &o.comm.c.Regimes[ReduceTRTLLM]} {
		for _, r := range kernels[line] {
			if r.Below > 0 && r.Below < curveEnd*row {
				jumps = append(jumps, int64(math.Ceil(r.Below/row)))
			}
		}
	}
	return jumps
}

// stageHops returns the cost of passing the residual stream between stages; each tensor-parallel rank sends its
// share.
func (l *commLinks) stageHops(bytes float64, d *Deployment) cost {
	hops := float64(d.PipelineParallel - 1)
	if hops == 0 {
		return cost{}
	}
	c := cost{latency: float64(hops * hopLatency), memory: hops * bytes / float64(d.TensorParallel) / l.hop}
	c.seconds = c.latency + c.memory
	return c
}
