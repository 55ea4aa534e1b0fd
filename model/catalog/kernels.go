package catalog

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"clifftop/model"
)

// kernelRows are the kernel constants of a file; a nil row is looked up elsewhere.
type kernelRows struct {
	// Like names a GPU of the same architecture whose rows apply.
	Like       string                `yaml:"like"`
	Source     string                `yaml:"source"`
	GEMM       map[string]gemmRow    `yaml:"gemm"`
	Decode     map[string]decodeRow  `yaml:"attn_decode"`
	Prefill    *prefillRow           `yaml:"attn_prefill"`
	Mixed      *mixedRow             `yaml:"attn_mixed"`
	MoE        map[string]moeRow     `yaml:"moe"`
	Reduce     map[int]allReduceLine `yaml:"allreduce"`
	Own        ownCommon             `yaml:",inline"`
	Releases   yaml.MapSlice         `yaml:"releases"` // time of all kernels relative to the rows, by release
	measuredOn string                // the measured GPU; empty means this one

	// Served has rows that replace those above, corrected by served runs.
	Served *servedRows `yaml:"served"`
}

// servedRows are constants corrected by served runs.
type servedRows struct {
	Source string             `yaml:"source"`
	GEMM   map[string]gemmRow `yaml:"gemm"`
	Mixed  *mixedRow          `yaml:"attn_mixed"`
	MoE    map[string]moeRow  `yaml:"moe"`
}

// withServed returns the rows with the corrections from served runs applied.
func (k *kernelRows) withServed() *kernelRows {
	c := *k
	if k.Served == nil {
		return &c
	}
	c.GEMM, c.MoE = maps.Clone(k.GEMM), maps.Clone(k.MoE)
	maps.Copy(c.GEMM, k.Served.GEMM)
	maps.Copy(c.MoE, k.Served.MoE)
	if k.Served.Mixed != nil {
		c.Mixed = k.Served.Mixed
	}
	return &c
}

type gemmRow struct {
	T0 float64 `yaml:"t0_us"`
	K  float64 `yaml:"t_per_k_ns"` // per element of the inner dimension; 0 is the common value
	EC float64 `yaml:"ec"`
	EM float64 `yaml:"em"`
}

type decodeRow struct {
	T0 float64 `yaml:"t0_us"`
	CS float64 `yaml:"cs_ns"`
	E  float64 `yaml:"e"`
}

type prefillRow struct {
	T0            float64 `yaml:"t0_us"`
	E             float64 `yaml:"e"`
	Delta         float64 `yaml:"delta_tokens"`
	DeltaPerTFLOP float64 `yaml:"delta_tokens_per_bf16_tflops"`
}

type mixedRow struct {
	E            float64 `yaml:"e"`
	EOverPrefill float64 `yaml:"e_over_prefill_e"`
}

type moeRow struct {
	T0 float64  `yaml:"t0_us"`
	EM float64  `yaml:"em"`
	EC float64  `yaml:"ec"`
	TR *float64 `yaml:"tile_rows"` // set together with i0 in rows of the current fit
	I0 *float64 `yaml:"i0"`
	A  float64  `yaml:"dispersion"` // of the routing with which the row was fitted
}

type allReduceLine struct {
	Alpha float64 `yaml:"alpha_us"`
	Bus   float64 `yaml:"bus_gb_per_s"`
	Fused float64 `yaml:"fused_mib"` // largest message of the kernel that is fused with the norm
}

// reduceClasses are the regimes of an all-reduce by class and number of GPUs, smallest messages first.
type reduceClasses map[string]map[int][]reduceRegime

type reduceRegime struct {
	Below  float64 `yaml:"below_kib"` // messages below this size; the last regime has none
	Alpha  float64 `yaml:"alpha_us"`
	PerMiB float64 `yaml:"us_per_mib"`
}

// reduceNames are the kernels of all-reduces in classes.yaml, and those that stand in for a class that lacks them.
var reduceNames = [...]struct{ name, otherwise string }{
	model.ReduceVLLM: {"vllm", "custom"}, model.ReduceCustom: {"custom", ""},
	model.ReduceTRTLLM: {"trtllm", ""},
}

func (s *shared) regimesOf(class string, c *model.AllReduceConstants) error {
	for kernels, names := range reduceNames {
		lines := s.regimes[names.name][class]
		if lines == nil {
			lines = s.regimes[names.otherwise][class]
		}
		for i, n := range []int{2, 4, 8} {
			to := &c.Regimes[kernels][i]
			if len(lines[n]) > len(to) {
				return fmt.Errorf("allreduce kernels %s, %s, %d GPUs: %d regimes (want at most %d)",
					names.name, class, n, len(lines[n]), len(to))
			}
			for j, r := range lines[n] {
				below := r.Below * (1 << 10)
				if below == 0 {
					below = math.MaxFloat64
				}
				to[j] = model.ReduceRegime{Below: below, Latency: r.Alpha * micro,
					SecondsPerByte: r.PerMiB * micro / (1 << 20)}
			}
		}
	}
	return nil
}

func (k *kernelRows) empty() bool {
	return k.Own == (ownCommon{}) && len(k.GEMM)+len(k.Decode)+len(k.MoE)+len(k.Reduce) == 0 && k.Prefill == nil &&
		k.Mixed == nil
}

// shared has the constants that do not belong to one GPU.
type shared struct {
	defaults  kernelRows
	allReduce map[string]map[int]allReduceLine // by class
	nccl      map[string][3]float64            // latency of a call in µs, by class, over 2, 4 and 8 GPUs
	int4      map[string]gemmRow               // by architecture
	power     map[string]powerRow              // by architecture
	fused     float64                          // latency of an all-reduce fused with the norm, in µs
	regimes   map[string]reduceClasses         // of all-reduces, by kernels
	common    model.CommonConstants
	gemmPerK  float64 // seconds per element of the inner dimension of a dense product
	layers    *layersFile
	exchange  *exchangeFile
	exponent  map[string]float64 // of the soft maximum, by format of the multiplication
	releases  yaml.MapSlice      // of models with latent attention, on all GPUs
	blocks    map[string]float64 // rate of a thread block of decode attention in GB/s, by attention backend
}

const micro, nano, defaultRow = 1e-6, 1e-9, "default"

// noINT4Row marks a row that replaces a missing one of weight-only four-bit products.
const noINT4Row = " (no int4 row)"

// resolve returns the constants of a GPU: corrected by served runs, and uncorrected.
func (k *kernelRows) resolve(g *model.GPU) (served, tables model.KernelConstants, err error) {
	s := loadShared()
	if err := k.checkKeys(); err != nil {
		return served, tables, err
	}
	if k, err = k.like(); err != nil {
		return served, tables, err
	}
	if g.Releases, err = releases(k.Releases, false); err != nil {
		return served, tables, err
	}
	latent, err := releases(s.releases, true)
	if err != nil {
		return served, tables, err
	}
	g.Releases = append(g.Releases, latent...)
	if tables, err = k.lookUp(s, &s.defaults, g); err != nil {
		return served, tables, err
	}
	served, err = k.withServed().lookUp(s, s.defaults.withServed(), g)
	return served, tables, err
}

// releases returns the releases of engines with their own speed.
func releases(rows yaml.MapSlice, latent bool) ([]model.Release, error) {
	var all []model.Release
	for _, item := range rows {
		name, named := item.Key.(string)
		engine, version, cut := strings.Cut(name, "-")
		time, err := strconv.ParseFloat(fmt.Sprint(item.Value), 64)
		if !named || !cut || engine == "" || version == "" || err != nil {
			return nil, fmt.Errorf("kernels.releases: %q: %v is not a release with its time (want such as "+
				"sglang-0.5.9: 1.2)",
				fmt.Sprint(item.Key), item.Value)
		}
		all = append(all, model.Release{Name: name, Time: time, Latent: latent})
	}
	return all, nil
}

// like returns the rows of the GPU named by Like, or k if there is none. A record has rows of its own or those of
// another GPU, not both.
func (k *kernelRows) like() (*kernelRows, error) {
	if k.Like == "" {
		return k, nil
	}
	if !k.empty() {
		return nil, fmt.Errorf("kernels.like: the record also has rows of its own (want one of them)")
	}
	var r gpuRecord
	if !table.Read("gpus/"+canonical(k.Like), &r) {
		return nil, fmt.Errorf("kernels.like: GPU %q is not in the catalog", k.Like)
	}
	if r.Kernels.Like != "" {
		return nil, fmt.Errorf("kernels.like: %s has no rows of its own", r.Name)
	}
	sibling := r.Kernels
	sibling.measuredOn, sibling.Reduce = r.Name, nil // links belong to the board, not to the chip
	return &sibling, nil
}

// owner returns the GPU on which the rows were measured.
func (k *kernelRows) owner(g *model.GPU) string {
	if k.measuredOn != "" {
		return k.measuredOn
	}
	return g.Name
}

// lookUp resolves every row: the GPU's own; for a format that the GPU does not support, its 16-bit row; otherwise
// the default.
func (k *kernelRows) lookUp(shared *shared, defaults *kernelRows, g *model.GPU) (model.KernelConstants, error) {
	s := *shared
	s.defaults = *defaults
	return k.lookUpIn(&s, g)
}

func (k *kernelRows) lookUpIn(s *shared, g *model.GPU) (model.KernelConstants, error) {
	c := model.KernelConstants{Common: k.Own.over(s.common), DecodeBlock: s.blocks[string(g.AttentionBackend)] * 1e9}
	var err error
	for _, p := range []model.Precision{model.BF16, model.FP16, model.FP8, model.INT4, model.NVFP4, model.MXFP4} {
		c.GEMM[p] = k.gemm(s, g, p)
		c.MoE[p] = k.moe(s, g, p)
	}
	for _, p := range []model.Precision{model.BF16, model.FP8} {
		row, from := lookUp(k.Decode, s.defaults.Decode, k.owner(g), g, p)
		c.Decode[p] = model.DecodeConstants{
			Row: from("attn_decode"), Launch: row.T0 * micro, Sequence: row.CS * nano, Memory: min(row.E, 1),
		}
	}
	c.Prefill = k.prefill(s, g)
	c.Mixed = k.mixed(s, g, c.Prefill.Compute)
	if err = s.layers.layers(g.Architecture, &c); err != nil {
		return c, err
	}
	if err = s.exchange.constants(g, &c); err != nil {
		return c, err
	}
	c.AllReduce, err = k.reduce(s, g)
	return c, err
}

// checkKeys rejects unknown formats.
func (k *kernelRows) checkKeys() error {
	check := func(section, key string, want ...string) error {
		if !slices.Contains(want, key) {
			return fmt.Errorf("kernels.%s: unknown format %q (want %v)", section, key, want)
		}
		return nil
	}
	for key := range k.GEMM {
		if err := check("gemm", key, "bf16", "fp8", "int4", "nvfp4"); err != nil {
			return err
		}
	}
	for key := range k.Decode {
		if err := check("attn_decode", key, "bf16", "fp8"); err != nil {
			return err
		}
	}
	for key := range k.MoE {
		if err := check("moe", key, "bf16", "fp8", "int4", "nvfp4", "mxfp4"); err != nil {
			return err
		}
	}
	for n := range k.Reduce {
		if err := check("allreduce", fmt.Sprint(n), "2", "4", "8"); err != nil {
			return err
		}
	}
	return nil
}

// lookUp returns the own row, the own 16-bit row if the GPU does not support the format, or the default row. The
// returned function names the row for an operation.
func lookUp[R any](own, defaults map[string]R, owner string, g *model.GPU, p model.Precision) (R,
	func(op string) string) {
	name := p.String()
	if p == model.FP16 {
		name = "bf16"
	}
	label := func(where string) func(string) string {
		return func(op string) string { return where + " " + op + " " + name }
	}
	if row, ok := own[name]; ok {
		return row, label(owner)
	}
	if !hasUnits(g, p) {
		name = "bf16"
		if row, ok := own[name]; ok {
			return row, label(owner)
		}
	}
	return defaults[name], label(defaultRow)
}

// hasUnits reports whether the GPU supports the multiplication format of weights in p.
func hasUnits(g *model.GPU, p model.Precision) bool {
	switch p {
	case model.FP8:
		return g.FP8FLOPs > 0
	case model.NVFP4:
		return g.FP4FLOPs > 0
	}
	return true
}

// arithmetic returns the format in which the GPU multiplies weights in p.
func arithmetic(g *model.GPU, p model.Precision) model.Precision {
	if (p == model.FP8 || p == model.NVFP4) && hasUnits(g, p) {
		return p
	}
	return model.BF16
}

func (k *kernelRows) gemm(s *shared, g *model.GPU, p model.Precision) model.GEMMConstants {
	a := arithmetic(g, p)
	row, from := lookUp(k.GEMM, s.defaults.GEMM, k.owner(g), g, p)
	name, exponent := from("gemm"), s.exponent[a.String()]
	if p == model.INT4 || p == model.MXFP4 { // weight-only four-bit products have the same cost
		var ok bool
		if row, ok = k.GEMM["int4"]; ok {
			name, exponent = k.owner(g)+" gemm int4", s.exponent["int4"]
		} else if row, ok = s.int4[g.Architecture]; ok {
			name, exponent = g.Architecture+" gemm int4", s.exponent["int4"]
		} else {
			row, from = lookUp(k.GEMM, s.defaults.GEMM, k.owner(g), g, model.BF16)
			name = from("gemm") + noINT4Row
		}
	}
	perK := s.gemmPerK
	if row.K > 0 {
		perK = row.K * nano
	}
	return model.GEMMConstants{
		Row: name, Arithmetic: a, Launch: row.T0 * micro,
		Compute: min(row.EC, 1), Memory: min(row.EM, 1), Exponent: exponent, PerK: perK,
	}
}

func (k *kernelRows) moe(s *shared, g *model.GPU, p model.Precision) model.MoEConstants {
	row, from := lookUp(k.MoE, s.defaults.MoE, k.owner(g), g, p)
	c := model.MoEConstants{
		Row: from("moe"), Arithmetic: arithmetic(g, p), Launch: row.T0 * micro,
		Compute: min(row.EC, 1), Memory: min(row.EM, 1), Exponent: 1, Dispersion: row.A,
	}
	if row.TR != nil && row.I0 != nil {
		c.TileRows, c.ShortK, c.Exponent, c.Memory = *row.TR, *row.I0, 2, row.EM
	}
	return c
}

func (k *kernelRows) prefill(s *shared, g *model.GPU) model.PrefillConstants {
	row, where := k.Prefill, k.owner(g)
	if row == nil {
		row, where = s.defaults.Prefill, defaultRow
	}
	return model.PrefillConstants{
		Row: where + " attn_prefill", Launch: row.T0 * micro, Compute: min(row.E, 1),
		Delta: row.Delta + float64(row.DeltaPerTFLOP*(g.BF16FLOPs/1e12)),
	}
}

func (k *kernelRows) mixed(s *shared, g *model.GPU, prefill float64) model.MixedConstants {
	row, where := k.Mixed, k.owner(g)
	if row == nil {
		row, where = s.defaults.Mixed, defaultRow
	}
	e := row.E
	if e == 0 {
		e = row.EOverPrefill * prefill
	}
	return model.MixedConstants{Row: where + " attn_mixed", Compute: min(e, 1)}
}

// reduce returns the record's own all-reduce figures, or those of its class; without a class there are none. The
// bus bandwidth is limited to the link speed.
func (k *kernelRows) reduce(s *shared, g *model.GPU) (model.AllReduceConstants, error) {
	lines, row := k.Reduce, g.Name+" allreduce"
	if len(lines) == 0 {
		if g.AllReduceClass == "" {
			return model.AllReduceConstants{}, nil
		}
		var ok bool
		if lines, ok = s.allReduce[g.AllReduceClass]; !ok {
			var known []string
			for c := range s.allReduce {
				known = append(known, c)
			}
			slices.Sort(known)
			return model.AllReduceConstants{}, fmt.Errorf("unknown allreduce_class %q (want one of %v)",
				g.AllReduceClass, known)
		}
		row = g.AllReduceClass + " allreduce"
	}
	nccl, ok := s.nccl[g.AllReduceClass]
	if !ok {
		nccl = s.nccl["other"]
	}
	c := model.AllReduceConstants{Row: row, FusedLatency: s.fused * micro}
	link := g.ScaleUpBytesPerSecond
	if !(link > 0) {
		link = math.Inf(1)
	}
	for i, n := range []int{2, 4, 8} {
		line, ok := lines[n]
		if !ok {
			return c, fmt.Errorf("kernels.allreduce: no entry for %d GPUs (want 2, 4 and 8)", n)
		}
		c.NCCLLatency[i] = nccl[i] * micro
		c.Latency[i] = line.Alpha * micro
		c.BusBytesPerSecond[i] = min(line.Bus*1e9, link)
		c.FusedBytes[i] = line.Fused * (1 << 20)
	}
	if len(k.Reduce) == 0 {
		return c, s.regimesOf(g.AllReduceClass, &c)
	}
	return c, nil
}
