package model

import "clifftop/internal/faults"

// GPU is an accelerator. Peaks are dense, without sparsity; link speeds are per direction.
type GPU struct {
	Name         string
	Aliases      []string
	Source       string // where the datasheet figures come from
	Architecture string // such as hopper
	SMs          int    // streaming multiprocessors, or what takes their place

	BF16FLOPs float64 // peak FLOP/s at 16 bits
	FP8FLOPs  float64 // 0 where there are no 8-bit floating-point units
	FP4FLOPs  float64 // 0 where there are no 4-bit floating-point units
	INT8OPs   float64 // OP/s, for information

	MemoryBytes       float64 // physical memory
	ReportedBytes     float64 // memory as the driver reports it; 0 takes MemoryBytes
	HBMBytesPerSecond float64
	L2Bytes           float64

	ScaleUpBytesPerSecond float64 // NVLink or whatever joins the GPUs of a node
	HostBytesPerSecond    float64 // to the host's memory
	NICBytesPerSecond     float64 // network per GPU

	AttentionBackend AttentionBackend
	AllReduceClass   string // which all-reduce measurements apply; empty: not modelled
	TDPWatts         float64

	// USDPerHour is the range of rental prices, low and high; 0 where unknown. Prices are
	// placeholders that users are expected to replace.
	USDPerHour [2]float64
	PriceNote  string

	// FrontendSeconds is how long the host's front end holds every request up; 0 is as the engine's release does.
	FrontendSeconds float64

	Calibrated Calibration
	Kernels    KernelConstants
	KernelsOf  string // the GPU that they were measured on, where that is another
	// Tables are the constants as the kernels were measured alone, before served runs corrected them.
	// The zero value stands for Kernels.
	Tables KernelConstants
}

// AttentionBackend names the family of attention kernels that serving engines choose on a GPU.
type AttentionBackend string

// FA2 is FlashAttention-2: a step that mixes prefill and decode runs both in one un-split kernel,
// which costs decodes far more than their own kernel would. Other backends run them apart.
const FA2 AttentionBackend = "fa2"

// Calibration says how far a GPU's kernel constants were measured on that GPU.
type Calibration string

// The degrees of calibration.
const (
	Calibrated       Calibration = "yes"
	PartlyCalibrated Calibration = "partly"
	Uncalibrated     Calibration = "no" // constants are medians over other GPUs
)

// String is "calibrated", "partly calibrated" or "uncalibrated".
func (c Calibration) String() string {
	switch c {
	case Calibrated:
		return "calibrated"
	case PartlyCalibrated:
		return "partly calibrated"
	}
	return "uncalibrated"
}

// Peak is the dense FLOP/s at which products of the given format compute: that of the format where
// the GPU has units for it, else that of 16 bits.
func (g *GPU) Peak(p Precision) float64 {
	switch {
	case p == FP8 && g.FP8FLOPs > 0:
		return g.FP8FLOPs
	case p == NVFP4 && g.FP4FLOPs > 0:
		return g.FP4FLOPs
	}
	return g.BF16FLOPs
}

// reported is the memory that an engine sees.
func (g *GPU) reported() float64 {
	if g.ReportedBytes > 0 {
		return g.ReportedBytes
	}
	return g.MemoryBytes
}

// Validate reports the figures that no step time can be computed from, all faults at once.
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
	f.Check(g.SMs >= 1, "sms is %d (want 1 or more)", g.SMs)
	if g.Kernels.isZero() {
		f.Addf("no kernel constants (read GPU records through the catalogue, which fills them in)")
	} else {
		f.Add(g.Kernels.validate())
	}
	return f.Err()
}
