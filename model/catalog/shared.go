package catalog

import (
	"cmp"
	"sync"

	"clifftop/model"

	"github.com/goccy/go-yaml"
)

// classesFile is the format of kernels/classes.yaml.
type classesFile struct {
	AllReduce struct {
		Source  string                           `yaml:"source"`
		Fused   float64                          `yaml:"fused_us"`
		NCCL    map[string][3]float64            `yaml:"nccl_us"`
		Classes map[string]map[int]allReduceLine `yaml:"classes"`
		Regimes map[string]reduceClasses         `yaml:"kernels"`
		From    string                           `yaml:"kernels_source"`
	} `yaml:"allreduce"`
	INT4 struct {
		Source        string             `yaml:"source"`
		Architectures map[string]gemmRow `yaml:"architectures"`
	} `yaml:"gemm_int4"`
	Power struct {
		Source        string              `yaml:"source"`
		Architectures map[string]powerRow `yaml:"architectures"`
	} `yaml:"power"`
}

// globalFile is the format of kernels/global.yaml.
type globalFile struct {
	Source string `yaml:"source"`
	GEMM   struct {
		PerK   float64 `yaml:"t_per_k_ns"`
		PBF16  float64 `yaml:"p_bf16"`
		PFP8   float64 `yaml:"p_fp8"`
		PNVFP4 float64 `yaml:"p_nvfp4"`
		PINT4  float64 `yaml:"p_int4"`
	} `yaml:"gemm"`
	Elementwise elementwiseRow `yaml:"elementwise"`
	Sampler     struct {
		T0    float64 `yaml:"t0_us"`
		Bytes float64 `yaml:"bytes_per_logit"`
		TopP  float64 `yaml:"top_p_bytes_per_logit"`
	} `yaml:"sampler"`
	FA2 struct {
		TileRows float64 `yaml:"tile_rows"`
		Delta    float64 `yaml:"delta_tokens"`
	} `yaml:"fa2"`
	MLADecode  mlaDecodeRow  `yaml:"mla_decode"`
	MLAPrefill mlaPrefillRow `yaml:"mla_prefill"`
	Overheads  overheadRow   `yaml:"overheads"`
	Latent     struct {
		Source   string        `yaml:"source"`
		Releases yaml.MapSlice `yaml:"releases"`
	} `yaml:"latent_attention"`
	Launch struct {
		Source  string  `yaml:"source"`
		Eager   float64 `yaml:"eager_us"`
		Kernels struct {
			Attention float64 `yaml:"attention"`
			Latent    float64 `yaml:"latent_attention"`
			Sparse    float64 `yaml:"sparse_attention"`
			Recurrent float64 `yaml:"recurrent"`
			MLP       float64 `yaml:"mlp"`
			Experts   float64 `yaml:"experts"`
			Exchange  float64 `yaml:"exchange"`
		} `yaml:"kernels"`
		Piecewise struct {
			Attention float64 `yaml:"attention"`
			Recurrent float64 `yaml:"recurrent"`
		} `yaml:"piecewise_us"`
	} `yaml:"launch"`
	DecodeBlock struct {
		Source string             `yaml:"source"`
		Rates  map[string]float64 `yaml:"gb_per_s"` // by attention backend
	} `yaml:"attn_decode_block"`
}

type elementwiseRow struct {
	Kernels float64 `yaml:"kernels"`
	T0      float64 `yaml:"t0_us"`
	E       float64 `yaml:"e"`
}

type mlaDecodeRow struct {
	T0 float64 `yaml:"t0_us"`
	CS float64 `yaml:"cs_ns"`
	EC float64 `yaml:"ec"`
	EM float64 `yaml:"em"`
	// ECFP8 is the fraction of the 8-bit peak with a KV cache in fp8; 0 for kernels that multiply in 16 bits.
	ECFP8 float64 `yaml:"ec_fp8"`
	// EM32 is the fraction of the bandwidth with 17 to 32 heads on a rank; 0 means EM.
	EM32 float64 `yaml:"em_32_heads"`
}

type mlaPrefillRow struct {
	T0    float64 `yaml:"t0_us"`
	E     float64 `yaml:"e"`
	Delta float64 `yaml:"delta_tokens"`
}

type overheadRow struct {
	Step     float64 `yaml:"step_ms"`
	Sequence float64 `yaml:"per_sequence_us"`
}

// ownCommon are rows of a GPU that replace those of kernels/global.yaml.
type ownCommon struct {
	Elementwise *elementwiseRow `yaml:"elementwise"`
	MLADecode   *mlaDecodeRow   `yaml:"mla_decode"`
	MLAPrefill  *mlaPrefillRow  `yaml:"mla_prefill"`
	Overheads   *overheadRow    `yaml:"overheads"`
}

// over returns the constants with the rows of the GPU.
func (o *ownCommon) over(c model.CommonConstants) model.CommonConstants {
	if r := o.Elementwise; r != nil {
		c.ElementwiseKernels, c.ElementwiseLaunch, c.ElementwiseMemory = r.Kernels, r.T0*micro, r.E
	}
	if r := o.MLADecode; r != nil {
		c.MLADecodeLaunch, c.MLADecodeSequence = r.T0*micro, r.CS*nano
		c.MLADecodeCompute, c.MLADecodeMemory, c.MLADecodeFP8, c.MLADecode32Heads = r.EC, r.EM, r.ECFP8, r.EM32
	}
	if r := o.MLAPrefill; r != nil {
		c.MLAPrefillLaunch, c.MLAPrefillCompute, c.MLAPrefillDelta = r.T0*micro, r.E, r.Delta
	}
	if r := o.Overheads; r != nil {
		c.StepOverhead, c.SequenceOverhead = r.Step*1e-3, r.Sequence*micro
	}
	return c
}

// powerRow is the power of a GPU relative to its design power; 0 means the value of the architecture.
type powerRow struct {
	Idle    float64 `yaml:"idle"`
	Base    float64 `yaml:"base"`
	Compute float64 `yaml:"compute"`
	Memory  float64 `yaml:"memory"`
}

// constants returns the power of a GPU in watts; none if its design power is not known. A nil row takes everything
// from the architecture.
func (r *powerRow) constants(g *model.GPU) model.PowerConstants {
	if !(g.TDPWatts > 0) {
		return model.PowerConstants{}
	}
	s := loadShared()
	name := g.Architecture
	row, ok := s.power[name]
	if !ok {
		name, row = defaultRow, s.power[defaultRow]
	}
	name += " power"
	if r != nil {
		name = g.Name + " power"
		row = powerRow{cmp.Or(r.Idle, row.Idle), cmp.Or(r.Base, row.Base), cmp.Or(r.Compute, row.Compute),
			cmp.Or(r.Memory, row.Memory)}
	}
	w := g.TDPWatts
	return model.PowerConstants{Row: name, Idle: row.Idle * w, Base: row.Base * w, Compute: row.Compute * w,
		Memory: row.Memory * w, Cap: w}
}

// loadShared decodes the records of the directory kernels.
var loadShared = sync.OnceValue(func() *shared {
	var (
		s       shared
		classes classesFile
		global  globalFile
		layers  layersFile
		moves   exchangeFile
	)
	table.Read("kernels/default", &s.defaults)
	table.Read("kernels/classes", &classes)
	table.Read("kernels/global", &global)
	table.Read("kernels/layers", &layers)
	table.Read("kernels/exchange", &moves)
	s.allReduce, s.int4, s.fused = classes.AllReduce.Classes, classes.INT4.Architectures, classes.AllReduce.Fused
	s.nccl, s.regimes = classes.AllReduce.NCCL, classes.AllReduce.Regimes
	s.power = classes.Power.Architectures
	s.exponent = map[string]float64{
		"bf16": global.GEMM.PBF16, "fp8": global.GEMM.PFP8, "nvfp4": global.GEMM.PNVFP4, "int4": global.GEMM.PINT4,
	}
	s.common, s.layers, s.exchange = global.common(), &layers, &moves
	s.gemmPerK = global.GEMM.PerK * nano
	s.blocks, s.releases = global.DecodeBlock.Rates, global.Latent.Releases
	return &s
})

func (f *globalFile) common() model.CommonConstants {
	c := model.CommonConstants{
		SamplerLaunch: f.Sampler.T0 * micro, SamplerBytes: f.Sampler.Bytes, SamplerTopPBytes: f.Sampler.TopP,
		FA2TileRows: f.FA2.TileRows, FA2Delta: f.FA2.Delta, Launch: f.launch(),
	}
	all := ownCommon{&f.Elementwise, &f.MLADecode, &f.MLAPrefill, &f.Overheads}
	return all.over(c)
}

func (f *globalFile) launch() model.LaunchConstants {
	l := &f.Launch
	return model.LaunchConstants{
		Eager: l.Eager * micro, Attention: l.Kernels.Attention, LatentAttention: l.Kernels.Latent,
		SparseAttention: l.Kernels.Sparse,
		Recurrent:       l.Kernels.Recurrent, MLP: l.Kernels.MLP, Experts: l.Kernels.Experts,
		Exchange:           l.Kernels.Exchange,
		PiecewiseAttention: l.Piecewise.Attention * micro, PiecewiseRecurrent: l.Piecewise.Recurrent * micro,
	}
}
