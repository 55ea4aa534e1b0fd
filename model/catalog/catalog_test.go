package catalog

import (
	"io/fs"
	"math"
	"slices"
	"strings"
	"testing"

	"clifftop/model"
)

// TestPublishedFigures recomputes from the dimensions what the records state: parameters to 1 %, KV
// bytes exactly.
func TestPublishedFigures(t *testing.T) {
	h100, err := GPU("h100-sxm")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := fs.ReadDir(files, "models")
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < 90 {
		t.Errorf("%d models, want 90 or more", len(entries))
	}
	for _, e := range entries {
		data, err := fs.ReadFile(files, "models/"+e.Name())
		if err != nil {
			t.Fatal(err)
		}
		var r llmRecord
		if err := decode(e.Name(), data, &r); err != nil {
			t.Fatal(err)
		}
		m, err := LLM(r.Name)
		if err != nil {
			t.Fatal(err)
		}
		if m.Name+".yaml" != e.Name() || m.Source == "" {
			t.Errorf("%s: name %q, source %q", e.Name(), m.Name, m.Source)
		}
		total, active := m.Params()
		near(t, m.Name+" total parameters", total/1e9, r.Check.TotalParams, 0.01)
		near(t, m.Name+" active parameters", active/1e9, r.Check.ActiveParams, 0.01)
		d, err := model.NewDeployment(m, h100, model.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.KVBytesPerToken(); got != r.Check.KVBytesPerToken {
			t.Errorf("%s: %d KV bytes per token, want %d", m.Name, got, r.Check.KVBytesPerToken)
		}
	}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got/want-1) > tolerance {
		t.Errorf("%s: %.6g, want %.6g", what, got, want)
	}
}

func TestLists(t *testing.T) {
	for dir, n := range map[string]int{"models": len(LLMs()), "gpus": len(GPUs())} {
		if entries, err := fs.ReadDir(files, dir); err != nil || n != len(entries) || n == 0 {
			t.Errorf("%d %s in %d files, %v", n, dir, len(entries), err)
		}
	}
	if !slices.IsSortedFunc(LLMs(), func(a, b model.LLM) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("models are not ordered by name")
	}
	GPUs()[0].Name = "changed"
	if GPUs()[0].Name == "changed" {
		t.Error("a caller can change the catalog")
	}
	// No name or alias may stand for two records.
	seen := map[string]string{}
	for _, m := range LLMs() {
		for _, a := range append(m.Aliases, m.Name) {
			if other, ok := seen[canonical(a)]; ok {
				t.Errorf("%q is %s and %s", a, other, m.Name)
			}
			seen[canonical(a)] = m.Name
		}
	}
	for _, g := range GPUs() {
		for _, a := range append(g.Aliases, g.Name) {
			if other, ok := seen[canonical(a)]; ok {
				t.Errorf("%q is %s and %s", a, other, g.Name)
			}
			seen[canonical(a)] = g.Name
		}
		if g.Source == "" || !strings.Contains(g.PriceNote, "placeholder") {
			t.Errorf("%s: source %q, price note %q", g.Name, g.Source, g.PriceNote)
		}
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"H100": "h100-sxm", "h100_sxm": "h100-sxm", "A100": "a100-80gb-sxm", "rtx pro 6000 se": "rtx-pro-6000-se",
		"4090": "rtx-4090", "L40S": "l40s", "B60": "arc-b60", "GH200": "gh200-96",
	} {
		if g, err := GPU(name); err != nil || g.Name != want {
			t.Errorf("%q is %q, %v; want %q", name, g.Name, err, want)
		}
	}
	for name, want := range map[string]string{
		"Llama-3.1-8B": "llama-3.1-8b", "meta-llama/llama-3.1-8b-instruct": "llama-3.1-8b",
		"Mixtral-8x7B-Instruct-v0.1": "mixtral-8x7b", "unsloth/Llama-3.1-8B-Instruct": "llama-3.1-8b",
		"openai/gpt-oss-120b": "gpt-oss-120b",
	} {
		if m, err := LLM(name); err != nil || m.Name != want {
			t.Errorf("%q is %q, %v; want %q", name, m.Name, err, want)
		}
	}
	_, err := LLM("lama-3-8b")
	if want := `catalog: no model "lama-3-8b"; nearest: llama-3-8b, `; err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
	for _, odd := range []string{"", "/", "h100 ", strings.Repeat("x", 1000), "ü/ü"} {
		if _, err := GPU(odd); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", odd, err)
		}
	}
}

// TestRows checks the order in which constants are looked up.
func TestRows(t *testing.T) {
	for _, c := range []struct{ gpu, op, want string }{
		{"h100-sxm", "gemm fp8", "h100-sxm gemm fp8"},
		{"h100-sxm", "gemm fp16", "h100-sxm gemm bf16"},
		{"h100-sxm", "gemm nvfp4", "h100-sxm gemm bf16"},
		{"h100-sxm", "gemm int4", "hopper gemm int4"},
		{"h100-sxm", "gemm mxfp4", "hopper gemm int4"},
		{"a100-80gb-sxm", "gemm fp8", "a100-80gb-sxm gemm bf16"},
		{"a100-80gb-sxm", "decode fp8", "a100-80gb-sxm attn_decode bf16"},
		{"a100-80gb-sxm", "moe mxfp4", "default moe mxfp4"},
		{"arc-b60", "decode fp8", "arc-b60 attn_decode fp8"},
		{"arc-b60", "gemm int4", "arc-b60 gemm bf16 (no int4 row)"},
		{"l4", "gemm fp8", "default gemm fp8"},
		{"a40", "gemm fp8", "default gemm bf16"},
		{"gb200", "moe fp8", "gb200 moe fp8"},
		{"b200-sxm", "moe nvfp4", "b200-sxm moe nvfp4"},
	} {
		g, err := GPU(c.gpu)
		if err != nil {
			t.Fatal(err)
		}
		op, format, _ := strings.Cut(c.op, " ")
		p, err := model.ParsePrecision(format)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{"gemm": g.Kernels.GEMM[p].Row, "decode": g.Kernels.Decode[p].Row,
			"moe": g.Kernels.MoE[p].Row}[op]
		if got != c.want {
			t.Errorf("%s %s: row %q, want %q", c.gpu, c.op, got, c.want)
		}
	}
	b60, _ := GPU("arc-b60")
	if b60.Kernels.Decode[model.BF16].Memory != 1 {
		t.Error("a fraction above 1 was not clamped")
	}
	h100, _ := GPU("h100")
	if h100.Kernels.MoE[model.BF16].Memory != 1.05 {
		t.Error("the expert bandwidth was clamped")
	}
	l4, _ := GPU("l4")
	near(t, "default delta", l4.Kernels.Prefill.Delta, 170+0.35*121, 1e-12)
	for gpu, want := range map[string]string{"h100-sxm": "calibrated", "rtx-4090": "partly calibrated",
		"mi300x": "uncalibrated"} {
		if g, err := GPU(gpu); err != nil || g.Calibrated.String() != want {
			t.Errorf("%s is %v, want %s", gpu, g.Calibrated, want)
		}
	}
}

func TestReadGPU(t *testing.T) {
	const good = `
name: My Card
sms: 100
peak_tflops: {bf16: 200}
memory: {physical_gb: 48, bandwidth_gb_per_s: 1000}
`
	g, err := ReadGPU("my.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if g.Name != "my-card" || g.Calibrated != model.Uncalibrated ||
		g.Kernels.GEMM[model.BF16].Row != "default gemm bf16" {
		t.Errorf("read %+v", g)
	}
	for text, want := range map[string]string{
		good + "colour: red\n": `my.yaml:6:1: unknown field "colour" (want name, aliases, source, architecture, sms, ` +
			`peak_tflops, memory, links_gb_per_s, node, attention, allreduce_class, tdp_w, power, price, calibrated, kernels)`,
		strings.Replace(good, "bf16:", "bf61:",
			1): `my.yaml:4:15: unknown field "bf61" (want bf16, fp8, int8, fp4)`,
		good + "kernels: {gemm: {bf16: {t0: 1}}}\n": `my.yaml:6:25: unknown field "t0" (want t0_us, ` +
			`t_per_k_ns, ec, em)`,
		good + "kernels:\n  moe:\n    fp8:\n      em: 1\n      et: 1\n": `my.yaml:10:7: unknown field "et" (want t0_us, ` +
			`em, ec, tile_rows, i0, dispersion)`,
		strings.Replace(good, "100", "many", 1): `my.yaml:3:6: found string (want int)`,
		strings.Replace(good, "1000", "0",
			1): `my.yaml: memory bandwidth is 0 (want a positive number)`,
		strings.Replace(good, "1000", ".nan",
			1): `my.yaml: memory bandwidth is NaN (want a positive number)`,
		good + "allreduce_class: infiniband\n":                                `my.yaml: unknown allreduce_class "infiniband" (want one of [ampere blackwell cdna3 cdna4 h100_nvl hopper l40s rtx rtx_ws])`,
		good + "kernels: {gemm: {bf16: {t0_us: 1, ec: 1.5, em: 0.9}}}\n":      ``,
		good + "kernels: {gemm: {fp7: {t0_us: 1, ec: 0.5, em: 0.9}}}\n":       `my.yaml: kernels.gemm: unknown format "fp7" (want [bf16 fp8 int4 nvfp4])`,
		good + "kernels: {gemm: {bf16: {t0_us: 1, ec: 0, em: 0.9}}}\n":        `my.yaml: my-card gemm bf16: ec is 0 (want above 0, at most 1)`,
		good + "kernels: {allreduce: {2: {alpha_us: 5, bus_gb_per_s: 20}}}\n": `my.yaml: kernels.allreduce: no entry for 4 GPUs (want 2, 4 and 8)`,
		"":  `my.yaml: `,
		"[": `my.yaml:1:1: `,
	} {
		_, err := ReadGPU("my.yaml", []byte(text))
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		case err != nil && strings.Count(err.Error(), "ec is 0") > 1:
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestBorrowedName reads a record with the name of a catalog entry but without its measurements.
func TestBorrowedName(t *testing.T) {
	data, err := fs.ReadFile(files, "gpus/h100-sxm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := ReadGPU("h100.yaml", data)
	if err != nil || whole.Calibrated != model.Calibrated {
		t.Errorf("the catalog's own record is %v, %v", whole.Calibrated, err)
	}
	bare, _, _ := strings.Cut(string(data), "kernels:")
	g, err := ReadGPU("h100.yaml", []byte(bare))
	if err != nil || g.Name != "h100-sxm" || g.Calibrated != model.Uncalibrated ||
		g.Kernels.GEMM[model.BF16].Row != "default gemm bf16" {
		t.Errorf("%s is %v with the row %s, %v", g.Name, g.Calibrated, g.Kernels.GEMM[model.BF16].Row, err)
	}
}

// FuzzReadGPU looks for records that make the reader panic, or print more than a line.
func FuzzReadGPU(f *testing.F) {
	for _, name := range []string{"gpus/h100-sxm.yaml", "gpus/tpu-v5e.yaml"} {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := ReadGPU("fuzz.yaml", data); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than a line: %v", err)
		}
	})
}

// TestServed checks the constants that were corrected with served runs, and those of the kernel tables.
func TestServed(t *testing.T) {
	for _, c := range []struct {
		gpu                  string
		gemm, mixed, mxfp4   float64 // bandwidth of products, rate of mixed attention, rate of the experts
		tableGEMM, tableMix  float64
		tableMXFP4, tileRows float64
	}{
		{"h200-sxm", 0.8821, 0.6615, 0.22729, 0.8821, 0.5292, 0.32786, 10.49},
		{"h100-sxm", 0.907, 0.6702, 0.23758, 0.907, 0.53616, 0.35308, 9.231},
		{"b200-sxm", 0.8853, 0.6173, 0.5, 0.8853, 0.49384, 0.2896, 8},
		{"a100-80gb-sxm", 0.7541, 0.5915, 0.35, 0.7541, 0.4732, 0.35, 0},
		{"l40s", 0.845, 0.5324, 0.6145, 0.7847, 0.42592, 0.6145, 12.26},
		{"rtx-pro-6000-se", 0.8318, 0.518, 0.6363, 0.8318, 0.518, 0.6363, 22.28},
	} {
		g, err := GPU(c.gpu)
		if err != nil {
			t.Fatal(err)
		}
		near(t, c.gpu+" gemm", g.Kernels.GEMM[model.BF16].Memory, c.gemm, 1e-9)
		near(t, c.gpu+" mixed", g.Kernels.Mixed.Compute, c.mixed, 1e-9)
		near(t, c.gpu+" mxfp4", g.Kernels.MoE[model.MXFP4].Compute, c.mxfp4, 1e-9)
		near(t, c.gpu+" tile rows", g.Kernels.MoE[model.MXFP4].TileRows, c.tileRows, 1e-9)
		near(t, c.gpu+" gemm table", g.Tables.GEMM[model.BF16].Memory, c.tableGEMM, 1e-9)
		near(t, c.gpu+" mixed table", g.Tables.Mixed.Compute, c.tableMix, 1e-9)
		near(t, c.gpu+" mxfp4 table", g.Tables.MoE[model.MXFP4].Compute, c.tableMXFP4, 1e-9)
	}
}

// TestFilesBearNames wants each file to have the name of its record, by which the record is looked up.
func TestFilesBearNames(t *testing.T) {
	for _, m := range LLMs() {
		if !table.Has("models/" + m.Name) {
			t.Errorf("no file bears the name of %s", m.Name)
		}
	}
	for _, g := range GPUs() {
		if !table.Has("gpus/" + g.Name) {
			t.Errorf("no file bears the name of %s", g.Name)
		}
	}
	for _, name := range []string{"", ".", "..", "../kernels/global"} {
		if m, err := LLM(name); err == nil {
			t.Errorf("%q is taken for %s", name, m.Name)
		}
	}
	if m, err := LLM("Llama_3.1 8B"); err != nil || m.Name != "llama-3.1-8b" {
		t.Errorf("found %s, %v", m.Name, err)
	}
}
