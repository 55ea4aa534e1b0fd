package model_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"clifftop/model"
)

// iteration returns a measured iteration.
func iteration(decodes int, context int64, prefill int, seconds float64) model.Iteration {
	b := model.Batch{Decodes: decodes, Context: context, Emit: decodes}
	if prefill > 0 {
		b.Chunks = []model.Chunk{{New: int32(prefill)}}
	}
	return model.Iteration{Batch: b, Seconds: seconds}
}

func newTable(t interface{ Fatal(...any) }, all []model.Iteration) *model.Table {
	table, err := model.NewTable(all)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestTable compares with an example computed by hand: four decode batches, a prefill, and both at once.
func TestTable(t *testing.T) {
	table := newTable(t, []model.Iteration{
		iteration(8, 800, 0, 0.010), iteration(8, 8000, 0, 0.016), // contexts of 100 and of 1000
		iteration(16, 1600, 0, 0.012), iteration(16, 16000, 0, 0.024),
		iteration(0, 0, 512, 0.030), iteration(0, 0, 512, 0.034), // the mean of the two
		iteration(16, 8000, 512, 0.040),
	})
	for _, c := range []struct {
		decodes int
		context int64
		prefill int
		want    float64
	}{
		{8, 800, 0, 0.010}, {16, 16000, 0, 0.024}, {0, 0, 512, 0.032}, {16, 8000, 512, 0.040}, // the rows
		{8, 4400, 0, 0.013},    // half way
		{16, 5200, 0, 0.015},   // a quarter
		{12, 6600, 0, 0.0155},  // contexts of 550, between 13 and 18 ms
		{24, 13200, 0, 0.023},  // on to 24 sequences: 5 ms more
		{16, 32000, 0, 0.0373}, // on to contexts of 2000: 13.3 ms more
		{4, 2200, 0, 0.013},    // fewer cost as much as the fewest
		{16, 160, 0, 0.012},    // and so do shorter ones
		{8, 100, 512, 0.036},   // of the curve without decodes and the one with 16
		{0, 0, 128, 0.0155},    // between 10 and 32 ms
		{0, 0, 1024, 0.054},    // on to 1024: 22 ms more
		{64, 64000, 512, 0.064},
	} {
		b := iteration(c.decodes, c.context, c.prefill, 0).Batch
		near(t, fmt.Sprintf("%d decodes of %d tokens beside %d", c.decodes, c.context, c.prefill), step(table, b),
			c.want, 1e-3)
	}
	if first, slope, n := table.Span(&model.Batch{}); first != 0 || slope != 0 || n != 1 {
		t.Errorf("an empty batch: %d, %d, %d", first, slope, n)
	}
	// From contexts of 100 to 1000 there are 900 iterations. Each is 6 ms/900 longer than the one before.
	first, slope, n := table.Span(&model.Batch{Decodes: 8, Context: 800})
	if n != 900 || math.Abs(float64(slope)-6e12/900) > 8 || first != 10e12 {
		t.Errorf("the run is %d, %d, %d", first, slope, n)
	}
	if decodes, prefill := table.Limits(); decodes != 16 || prefill != 512 || table.Rows() != 7 ||
		table.PrefillOnly() != nil {
		t.Errorf("%d decodes, %d tokens, %d rows, unmixed %v", decodes, prefill, table.Rows(), table.PrefillOnly())
	}
	if apart := newTable(t, []model.Iteration{iteration(8, 800, 0, 1), iteration(0, 0, 512, 1),
		iteration(0, 0, 64, 1)}).PrefillOnly(); !slices.Equal(apart, []int{64, 512}) {
		t.Errorf("unmixed: %v", apart)
	}
}

// TestTableIsLinear: if the measured times are a + b·decodes + c·context + d·prefill, the table returns this time for
// every batch, for any choice of rows.
func TestTableIsLinear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Float64Range(1e-3, 1e-2).Draw(t, "a"), rapid.Float64Range(0, 1e-4).Draw(t, "b")
		c, d := rapid.Float64Range(1e-9, 1e-6).Draw(t, "c"), rapid.Float64Range(1e-6, 1e-4).Draw(t, "d")
		truth := func(decodes int, context int64, prefill int) float64 {
			return a + b*float64(decodes) + c*float64(context) + d*float64(prefill)
		}
		several := func(name string, from, to, least int) []int {
			return rapid.SliceOfNDistinct(rapid.IntRange(from, to), least, 4, rapid.ID[int]).Draw(t, name)
		}
		var rows []model.Iteration
		prefills, decodes := append(several("prefill", 1, 8192, 1), 0), several("decodes", 1, 256, 2)
		for _, p := range prefills {
			for _, n := range decodes {
				for _, mean := range several("context", 1, 8192, 2) {
					rows = append(rows, iteration(n, int64(n)*int64(mean), p, truth(n, int64(n)*int64(mean), p)))
				}
			}
		}
		table := newTable(t, rows)
		// At or above the least of each, so that nothing is cut off; the contexts of all curves begin below 8192.
		n := rapid.IntRange(slices.Min(decodes), 512).Draw(t, "n")
		context := int64(n)*8192 + rapid.Int64Range(0, 1<<20).Draw(t, "over")
		p := rapid.IntRange(0, 16384).Draw(t, "p")
		got, want := step(table, iteration(n, context, p, 0).Batch), truth(n, context, p)
		if math.Abs(got-want) > 1e-4*want {
			t.Fatalf("%d decodes of %d tokens beside %d take %v s, want %v", n, context, p, got, want)
		}
	})
}

// TestTableRuns: for any measured rows, the times of a span equal those of single iterations.
func TestTableRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows []model.Iteration
		for range rapid.IntRange(1, 30).Draw(t, "rows") {
			decodes := rapid.IntRange(0, 64).Draw(t, "decodes")
			row := iteration(decodes, int64(decodes)*rapid.Int64Range(1, 500).Draw(t, "mean"),
				rapid.IntRange(0, 1).Draw(t, "mixed")*rapid.IntRange(0, 999).Draw(t, "prefill"),
				rapid.Float64Range(1e-6, 2).Draw(t, "seconds"))
			rows = append(rows, row)
		}
		table := newTable(t, rows)
		decodes := rapid.IntRange(1, 100).Draw(t, "running")
		b := model.Batch{Decodes: decodes,
			Context: rapid.Int64Range(int64(decodes), 1000*int64(decodes)).Draw(t, "context")}
		first, slope, n := table.Span(&b)
		if first <= 0 || slope < 0 || n < 1 {
			t.Fatalf("the run of %d decodes from %d on is %d, %d, %d", decodes, b.Context, first, slope, n)
		}
		for range 20 {
			k := rapid.IntRange(0, min(n, 5000)-1).Draw(t, "k")
			later := model.Batch{Decodes: decodes, Context: b.Context + int64(k)*int64(decodes)}
			if single, _, _ := table.Span(&later); single != first+int64(k)*slope {
				t.Fatalf("iteration %d of %d takes %d, the span gives %d + %d·%d", k, n, single, first, k, slope)
			}
		}
	})
}

// TestTableOfKernels tabulates the kernels on a grid, and compares the times between its points.
func TestTableOfKernels(t *testing.T) {
	k := kernels(t, deploy(t, "llama-3.1-8b", "h100", model.Options{}), model.KernelOptions{})
	var rows []model.Iteration
	for _, decodes := range []int{0, 1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256} {
		for _, mean := range []int64{64, 512, 2048, 8192} {
			for _, prefill := range []int{0, 64, 128, 256, 512, 1024, 2048, 4096, 8192} {
				if decodes+prefill > 0 && (decodes > 0 || mean == 64) {
					row := iteration(decodes, int64(decodes)*mean, prefill, 0)
					row.Batch.Emit = decodes
					row.Seconds = step(k, row.Batch)
					rows = append(rows, row)
				}
			}
		}
	}
	table := newTable(t, rows)
	for _, b := range []model.Batch{
		iteration(24, 24*1000, 0, 0).Batch, iteration(100, 100*300, 0, 0).Batch, iteration(200, 200*700, 0, 0).Batch,
		iteration(0, 0, 3000, 0).Batch, iteration(48, 48*1500, 700, 0).Batch, iteration(150, 150*600, 6000, 0).Batch,
	} {
		near(t, fmt.Sprintf("%+v", b), step(table, b), step(k, b), 0.02)
	}
}

const measured = "decode_seqs,sum_context,prefill_tokens,seconds\n8,800,0,0.010\n16,1600,0,0.012\n"

func TestReadIterations(t *testing.T) {
	all, err := model.ReadIterations("s.csv",
		strings.NewReader("gpu,seconds,prefill_tokens,prefill_cached,decode_seqs,sum_context\nh100,0.01,512,64,8,800\n"+
			"h100,0.02,0,0,8,900\n"))
	if err != nil || len(all) != 2 || all[0].Batch.Chunks[0] != (model.Chunk{New: 512, Cached: 64}) ||
		all[0].Batch.Emit != 9 || all[1].Line != 3 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := model.NewTable(all); err == nil ||
		!strings.Contains(err.Error(), "line 2: the chunk has 64 cached tokens,") {
		t.Errorf("a cached prefix: %v", err)
	}
	for text, want := range map[string]string{
		"":                          "s.csv: the header cannot be read",
		"decode_seqs,sum_context\n": "s.csv:1: column prefill_tokens is missing",
		measured + "8,800,0,-1\n":   `s.csv:4: seconds is "-1" (want 0 to 1e9`,
		measured + "8,800,1.5,1\n":  `s.csv:4: prefill_tokens is "1.5"`,
		measured + "8,7,0,1\n":      "s.csv:4: impossible iteration",
		measured + "0,7,5,1\n":      "s.csv:4: impossible iteration",
		measured + "8,800,0,0\n":    "s.csv:4: impossible iteration",
		measured + "8,800,0\n":      "s.csv: record on line 4: wrong number of fields",
		measured + "8,800,0," + strings.Repeat("9", 999): `999…`,
	} {
		_, err := model.ReadIterations("s.csv", strings.NewReader(text))
		if want == "999…" {
			if err == nil || len(err.Error()) > 200 {
				t.Errorf("a long cell: %v", err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestReadIterationColumns reads the optional columns, from a compressed file.
func TestReadIterationColumns(t *testing.T) {
	const head = "kind,segment,decode_seqs,sum_context,context_sd,prefill_tokens,prefill_requests,prefill_cached,seconds\n"
	read := func(rows string) ([]model.Iteration, error) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		fmt.Fprint(z, head+rows+"decode,,1,9,,0,,,0.01\n")
		z.Close()
		return model.ReadIterations("s.csv.gz", &b)
	}
	all, err := read("mixed,real,2,300,49.6,8185,3,4086,0.4\nprefill,,0,0,0,100,4,200,0.1\n")
	if err != nil {
		t.Fatal(err)
	}
	// 12,271 tokens of 3 prompts are 4,091, 4,090 and 4,090; the first has all cached ones.
	want := []model.Chunk{{New: 5, Cached: 4086}, {New: 4090}, {New: 4090}}
	if it := all[0]; !slices.Equal(it.Batch.Chunks, want) || it.Batch.ContextDeviation != 50 || it.Batch.Emit != 5 ||
		it.Segment != "real" || it.Kind() != model.MixedIteration || it.PrefillTokens() != 8185 {
		t.Errorf("%+v", it)
	}
	// 300 tokens of 4 prompts are 75 each: cached ones fill the first prompts up to their last token.
	want = []model.Chunk{{New: 1, Cached: 74}, {New: 1, Cached: 74}, {New: 23, Cached: 52}, {New: 75}}
	if !slices.Equal(all[1].Batch.Chunks, want) || all[2].Kind() != model.DecodeIteration {
		t.Errorf("%+v", all[1:])
	}
	for row, want := range map[string]string{
		"decode,,2,300,0,5,1,0,1\n":  `s.csv.gz:2: kind is "decode", but 2 sequences decode and 5 prompt tokens are`,
		"mixed,,2,300,155,5,1,0,1\n": "s.csv.gz:2: impossible iteration: context_sd is 155 for 2 decode_seqs of 300 tokens",
		"mixed,,2,300,0,5,6,0,1\n":   "s.csv.gz:2: impossible iteration: prefill_requests is 6 for 5 prefill_tokens",
		"decode,,1,300,9,0,0,0,1\n":  "context_sd is 9 for 1 decode_seqs",
	} {
		if _, err := read(row); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", row, err, want)
		}
	}
}

// FuzzReadIterations: every file that can be read gives a table that satisfies the rules of a step timer.
func FuzzReadIterations(f *testing.F) {
	f.Add(measured, 8, int64(1000))
	f.Add(measured+"0,0,512,0.03\n16,8000,512,0.04\n", 1, int64(1))
	f.Add("decode_seqs,sum_context,prefill_tokens,seconds\n1000000000,1000000000,1000000000,1000000000\n1,1,1,1e-300\n",
		1000, int64(1<<40))
	f.Fuzz(func(t *testing.T, text string, decodes int, context int64) {
		all, err := model.ReadIterations("s.csv", strings.NewReader(text))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		table, err := model.NewTable(all)
		if err != nil {
			return
		}
		decodes = min(max(decodes, 1), 1<<20)
		b := model.Batch{Decodes: decodes, Context: min(max(context, int64(decodes)), 1<<50), Emit: decodes}
		first, slope, n := table.Span(&b)
		if first < 0 || slope < 0 || n < 1 {
			t.Fatalf("%d, %d, %d", first, slope, n)
		}
		last := b
		last.Context += int64(n-1) * int64(decodes)
		if single, _, _ := table.Span(&last); single != first+int64(n-1)*slope && first+int64(n-1)*slope < 1<<60 {
			t.Fatalf("the last of %d takes %d, not %d + %d·%d", n, single, first, n-1, slope)
		}
		b.Chunks = []model.Chunk{{New: 100}}
		if mixed, _, _ := table.Span(&b); mixed < 0 {
			t.Fatalf("mixed: %d", mixed)
		}
	})
}
