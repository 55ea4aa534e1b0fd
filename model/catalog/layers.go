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
	Compressed struct {
		Source        string                   `yaml:"source"`
		Architectures map[string]compressedRow `yaml:"architectures"`
	} `yaml:"compressed"`
	Streams struct {
		Source        string                                   `yaml:"source"`
		Architectures map[string]struct{ Pre, Post streamRow } `yaml:"architectures"`
	} `yaml:"streams"`
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
	Unfused struct {
		KV8  float64 `yaml:"kv_8"`
		KV16 float64 `yaml:"kv_16"`
	} `yaml:"unfused_us"`
}

// compressedRow has the kernels of compressed attention.
type compressedRow struct {
	Decode struct {
		T0        float64 `yaml:"t0_us"`
		Indexed   float64 `yaml:"t0_indexed_us"`
		Sequence  float64 `yaml:"cs_ns"`
		E         float64 `yaml:"e"`
		Index     float64 `yaml:"index_em"`
		Selection float64 `yaml:"select_us"`
	} `yaml:"decode"`
	Prefill struct {
		T0    float64 `yaml:"t0_us"`
		Token float64 `yaml:"token_ns"`
		EC    float64 `yaml:"ec"`
		Index float64 `yaml:"index_ec"`
	} `yaml:"prefill"`
	Select struct {
		Entry        float64 `yaml:"entry_ns"`
		Long         float64 `yaml:"long_us"`
		EntryLatency float64 `yaml:"entry_latency_ns"`
		LongLatency  float64 `yaml:"long_latency_us"`
	} `yaml:"select"`
}

func (r *compressedRow) constants(row string) model.CompressedConstants {
	d, p, s := &r.Decode, &r.Prefill, &r.Select
	return model.CompressedConstants{
		Row: row, Launch: d.T0 * micro, IndexedLaunch: d.Indexed * micro, Sequence: d.Sequence * nano, Decode: d.E,
		Index: d.Index, Selection: d.Selection * micro,
		PrefillLaunch: p.T0 * micro, PrefillToken: p.Token * nano, Prefill: p.EC, PrefillIndex: p.Index,
		EntryRow: s.Entry * nano, LongRow: s.Long * micro, RowLatency: s.EntryLatency * nano,
		LongRowLatency: s.LongLatency * micro,
	}
}

// streamRow has a kernel of residual streams.
type streamRow struct {
	T0     float64 `yaml:"t0_us"`
	Hidden float64 `yaml:"t_per_hidden_ns"`
	EM     float64 `yaml:"em"`
	P      float64 `yaml:"p"`
}

func (r *streamRow) constants() model.StreamConstants {
	return model.StreamConstants{Launch: r.T0 * micro, PerHidden: r.Hidden * nano, Memory: r.EM, Exponent: r.P}
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
	compressed, from := byArchitecture(f.Compressed.Architectures, architecture)
	c.Compressed = compressed.constants(from + " compressed attention")
	streams, from := byArchitecture(f.Streams.Architectures, architecture)
	c.Streams = model.HyperConstants{Row: from + " residual streams", Pre: streams.Pre.constants(),
		Post: streams.Post.constants()}
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
		DecodeCompute: r.Decode.EC, DecodeMemory: r.Decode.EM, PrefillCompute: r.Prefill.EC,
		PrefillMemory:   r.Prefill.EM,
		PrefillCompute8: r.Prefill.EC8, Unfused8: r.Unfused.KV8 * micro, Unfused16: r.Unfused.KV16 * micro,
	}
}
