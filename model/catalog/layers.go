package catalog

import (
	"fmt"

	"clifftop/model"
)

// layersFile is the format of kernels/layers.yaml.
type layersFile struct {
	Recurrent struct {
		Source string                             `yaml:"source"`
		Kinds  map[string]map[string]recurrentRow `yaml:"kinds"` // by kind and architecture
	} `yaml:"recurrent"`
	Sparse struct {
		Source        string               `yaml:"source"`
		Architectures map[string]sparseRow `yaml:"architectures"`
	} `yaml:"sparse"`
}

// memoryRow is a launch and a share of a peak or of the bandwidth.
type memoryRow struct {
	T0 float64 `yaml:"t0_us"`
	EC float64 `yaml:"ec"`
	EM float64 `yaml:"em"`

	EC8 float64 `yaml:"ec_fp8"` // with KV in 8 bits
}

// recurrentRow has the kernels of a kind of recurrent layers.
type recurrentRow struct {
	Decode memoryRow `yaml:"decode"`
	Conv   memoryRow `yaml:"conv"`
	Fused  *chunkRow `yaml:"fused"`
	Triton chunkRow  `yaml:"triton"`
}

type chunkRow struct {
	T0    float64 `yaml:"t0_us"`
	Chain float64 `yaml:"chain_ns"`
	EC    float64 `yaml:"ec"`
	Pad   float64 `yaml:"pad_tokens"`
}

// sparseRow has the kernels of sparse attention.
type sparseRow struct {
	Heads float64   `yaml:"heads"`
	Index memoryRow `yaml:"index"`
	TopK  struct {
		T0      float64 `yaml:"t0_us"`
		Latency float64 `yaml:"latency_ns"`
		Token   float64 `yaml:"token_ns"`
		Pair    float64 `yaml:"pair_ps"`
	} `yaml:"top_k"`
	Decode  memoryRow `yaml:"decode"`
	Prefill memoryRow `yaml:"prefill"`
}

// layers sets the constants of recurrent layers and sparse attention for a GPU's architecture.
func (f *layersFile) layers(architecture string, c *model.KernelConstants) error {
	for name, rows := range f.Recurrent.Kinds {
		kind, ok := model.ParseMixerKind(name)
		if !ok || !kind.Recurrent() {
			return fmt.Errorf("recurrent: unknown kind %q (want gated-deltanet, kda or mamba2)", name)
		}
		row, from := byArchitecture(rows, architecture)
		c.Recurrent[kind] = row.constants(from + " " + name)
	}
	row, from := byArchitecture(f.Sparse.Architectures, architecture)
	c.Sparse = row.constants(from + " sparse attention")
	return nil
}

// byArchitecture returns the row of an architecture or the default, and its name.
func byArchitecture[R any](rows map[string]R, architecture string) (R, string) {
	if row, ok := rows[architecture]; ok {
		return row, architecture
	}
	return rows[defaultRow], defaultRow
}

func (r *recurrentRow) constants(row string) model.RecurrentConstants {
	fused := r.Fused
	if fused == nil {
		fused = &r.Triton
	}
	return model.RecurrentConstants{
		Row: row, DecodeLaunch: r.Decode.T0 * micro, DecodeMemory: r.Decode.EM,
		ConvLaunch: r.Conv.T0 * micro, ConvMemory: r.Conv.EM,
		Prefill: fused.constants(), Triton: r.Triton.constants(),
	}
}

func (r *chunkRow) constants() model.ChunkConstants {
	return model.ChunkConstants{Launch: r.T0 * micro, Chain: r.Chain * nano, Compute: r.EC, Padding: r.Pad}
}

func (r *sparseRow) constants(row string) model.SparseConstants {
	return model.SparseConstants{
		Row: row, Heads: r.Heads,
		IndexLaunch: r.Index.T0 * micro, IndexMemory: r.Index.EM, IndexCompute: r.Index.EC,
		TopKLaunch: r.TopK.T0 * micro, TopKLatency: r.TopK.Latency * nano, TopKToken: r.TopK.Token * nano,
		TopKPair:      r.TopK.Pair * 1e-12,
		DecodeCompute: r.Decode.EC, DecodeMemory: r.Decode.EM, PrefillCompute: r.Prefill.EC, PrefillMemory: r.Prefill.EM,
		PrefillCompute8: r.Prefill.EC8,
	}
}
