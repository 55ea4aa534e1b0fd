package model

import "clifftop/internal/faults"

// GPU is an accelerator. Peaks are dense, without sparsity; link speeds are per direction.
type GPU struct {
	Name         string
	Aliases      []string
	Source       string // where the datasheet figures come from
	Architecture string // such as hopper
	SMs          int    // streaming multiprocessors, or their equivalent

	BF16FLOPs float64 // peak FLOP/s at 16 bits
	FP8FLOPs  float64 // 0 where there are no 8-bit floating-point units
	FP4FLOPs  float64 // 0 where there are no 4-bit floating-point units
	INT8OPs   float64 // OP/s, for information

	MemoryBytes       float64 // physical memory
	ReportedBytes     float64 // memory as reported by the driver; 0 means MemoryBytes
	HBMBytesPerSecond float64
	L2Bytes           float64

	ScaleUpBytesPerSecond float64 // NVLink or another link within a node
	HostBytesPerSecond    float64 // to the host's memory
	NICBytesPerSecond     float64 // network per GPU

	Node NodeShape

	AttentionBackend AttentionBackend
	AllReduceClass   string // selects the all-reduce measurements; empty means not modelled
	TDPWatts         float64
	Power            PowerConstants

	// USDPerHour is the range of rental prices, low and high; 0 means unknown. Prices are placeholders for the
	// user's own.
	USDPerHour [2]float64
	PriceNote  string

	// FrontendSeconds is the delay of each request in the engine's front end; 0 means the default of the engine
	// version.
	FrontendSeconds float64

	Calibrated Calibration
	Own        *OwnRuns  // that the constants were fitted to; nil if there are none
	Releases   []Release // of engines whose kernels are faster or slower; by engine, oldest first
	Kernels    KernelConstants
	KernelsOf  string // the GPU on which they were measured, if it is another one
	// Tables are the constants without corrections from served runs. The zero value means Kernels.
	Tables KernelConstants
}

// OwnRuns are the user's measured runs that the constants of a GPU were fitted to.
type OwnRuns struct {
	Base     string // the GPU of the catalog that the runs used
	Clifftop string // version of the program that fitted the constants
	Runs     int
	Models   []string // of the runs, by the names of the catalog
	// TTFT and TPOT are the median sizes of the errors, as fractions, of runs that a fit to the others predicts; nil
	// if they were not measured.
	TTFT, TPOT *float64
}

// Validates reports whether the runs are enough to call the GPU calibrated: three. With two, leaving one out leaves a
// single run to fit.
func (o *OwnRuns) Validates() bool { return o != nil && o.Runs >= 3 }

// NodeShape says how the GPUs of a machine are joined. The zero value means 8 GPUs per node in one domain.
type NodeShape struct {
	// GPUs is the number of GPUs in a node, the unit that is bought or rented.
	GPUs int
	// Domain is the number of GPUs that the scale-up links join: those of a node, or of a rack of nodes. 0 means GPUs.
	Domain int
}

// usualNode is the number of GPUs in most servers.
const usualNode = 8

// NodeSize returns the number of GPUs of a node.
func (g *GPU) NodeSize() int {
	if g.Node.GPUs > 0 {
		return g.Node.GPUs
	}
	return usualNode
}

// DomainSize returns the number of GPUs that the scale-up links join, at least a node.
func (g *GPU) DomainSize() int { return max(g.Node.Domain, g.NodeSize()) }

// Nodes returns the number of whole nodes that hold n GPUs.
func (g *GPU) Nodes(n int) int { return (n + g.NodeSize() - 1) / g.NodeSize() }

// AttentionBackend names the family of attention kernels that serving engines choose on a GPU.
type AttentionBackend string

// FA2 is FlashAttention-2: a step with prefill and decode runs both in one kernel without split-KV, which makes
// decodes much slower than their own kernel would. Other backends run them separately.
const FA2 AttentionBackend = "fa2"

// Calibration says how many of a GPU's kernel constants were measured on that GPU.
type Calibration string

// The degrees of calibration.
const (
	Calibrated       Calibration = "yes"
	PartlyCalibrated Calibration = "partly"
	Uncalibrated     Calibration = "no" // constants are medians over other GPUs
)

// String returns "calibrated", "partly calibrated" or "uncalibrated".
func (c Calibration) String() string {
	switch c {
	case Calibrated:
		return "calibrated"
	case PartlyCalibrated:
		return "partly calibrated"
	}
	return "uncalibrated"
}

// Peak returns the dense FLOP/s of matrix products in the given format: that of the format if the GPU supports it,
// otherwise that of 16 bits.
func (g *GPU) Peak(p Precision) float64 {
	switch {
	case p == FP8 && g.FP8FLOPs > 0:
		return g.FP8FLOPs
	case p == NVFP4 && g.FP4FLOPs > 0:
		return g.FP4FLOPs
	}
	return g.BF16FLOPs
}

// reported returns the memory that an engine sees, in bytes.
func (g *GPU) reported() float64 {
	if g.ReportedBytes > 0 {
		return g.ReportedBytes
	}
	return g.MemoryBytes
}

// Validate returns all values from which no step time can be computed, joined into one error.
func (g *GPU) Validate() error {
	var f faults.List
	f.Positive("bf16 peak", g.BF16FLOPs)
	f.Positive("memory", g.MemoryBytes)
	f.Positive("memory bandwidth", g.HBMBytesPerSecond)
	f.AtLeast("reported memory", g.ReportedBytes, 0)
	f.AtLeast("fp8 peak", g.FP8FLOPs, 0)
	f.AtLeast("fp4 peak", g.FP4FLOPs, 0)
	f.AtLeast("scale-up bandwidth", g.ScaleUpBytesPerSecond, 0)
	f.AtLeast("host bandwidth", g.HostBytesPerSecond, 0)
	f.AtLeast("network bandwidth", g.NICBytesPerSecond, 0)
	f.AtLeast("price", g.USDPerHour[0], 0)
	f.AtLeast("price", g.USDPerHour[1], 0)
	f.Check(g.Node.GPUs >= 0 && g.Node.GPUs <= maxParallel, "node.gpus is %d (want 1 to %d)", g.Node.GPUs, maxParallel)
	f.Check(g.Node.Domain == 0 || g.Node.Domain >= g.NodeSize() && g.Node.Domain%g.NodeSize() == 0,
		"node.domain is %d (want a multiple of the %d GPUs of a node)", g.Node.Domain, g.NodeSize())
	f.Check(g.SMs >= 1, "sms is %d (want 1 or more)", g.SMs)
	f.Add(g.Power.validate())
	for _, r := range g.Releases {
		f.Check(r.Time > 0.01 && r.Time < 100, "release %s takes %v times as long (want 0.01 to 100)", r.Name, r.Time)
	}
	if g.Kernels.isZero() {
		f.Addf("no kernel constants (read the GPU record with catalog.ReadGPU, which adds them)")
	} else {
		f.Add(g.Kernels.validate())
	}
	return f.Err()
}
