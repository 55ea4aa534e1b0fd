package experiments_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/model"
)

// writeSteps writes the step times of the default deployment's kernels, and returns the file.
func writeSteps(t *testing.T, dir string) string {
	t.Helper()
	u, err := scenario.Default().Resolve()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("decode_seqs,sum_context,prefill_tokens,seconds\n")
	for _, decodes := range []int{0, 1, 2, 4, 8, 16, 32, 64, 128, 256} {
		for _, mean := range []int64{64, 512, 4096} {
			for _, prefill := range []int{0, 64, 256, 1024, 4096, 8192} {
				batch := model.Batch{Decodes: decodes, Context: int64(decodes) * mean, Emit: decodes}
				if prefill > 0 {
					batch.Chunks, batch.Emit = []model.Chunk{{New: int32(prefill)}}, decodes+1
				}
				if decodes+prefill == 0 || decodes == 0 && mean > 64 {
					continue
				}
				first, _, _ := u.Pools[0].Config.Timer.Span(&batch)
				fmt.Fprintf(&b, "%d,%d,%d,%.9f\n", decodes, batch.Context, prefill, float64(first)/1e15)
			}
		}
	}
	file := filepath.Join(dir, "steps.csv")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestTableOfKernels runs chat on the kernels and on a table of theirs, and wants the same latencies but for the
// interpolation.
func TestTableOfKernels(t *testing.T) {
	dir := t.TempDir()
	writeSteps(t, dir)
	described := filepath.Join(dir, "s.yaml")
	if err := os.WriteFile(described, []byte("step_time: {table: steps.csv}\nrun: {requests: 3000}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	var ttft, tpot [2]float64
	var resolved any
	for i, path := range []string{"", described} {
		s, err := scenario.Load(path, scenario.Setting{Key: "run.requests", Value: "3000"},
			scenario.Setting{Key: "engine.enable_prefix_caching", Value: "false"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := experiments.Run(context.Background(), s, experiments.RunOptions{Check: true})
		if err != nil {
			t.Fatal(err)
		}
		ttft[i], tpot[i] = *r.Summary.Latency.TTFT.Mean, *r.Summary.Latency.TPOT.Mean
		resolved = r.Summary.Scenario
	}
	if math.Abs(ttft[1]/ttft[0]-1) > 0.03 || math.Abs(tpot[1]/tpot[0]-1) > 0.03 || tpot[0] == tpot[1] {
		t.Errorf("the kernels give %v and %v ms, the table %v and %v ms", ttft[0], tpot[0], ttft[1], tpot[1])
	}
	// The scenario as resolved names the file and its digest, and can be run again where the file is as it was.
	text, err := json.Marshal(resolved)
	if err != nil {
		t.Fatal(err)
	}
	again, err := scenario.Parse(filepath.Join(dir, "again.json"), text)
	if err != nil {
		t.Fatal(err)
	}
	if again.StepTime.Table.File != "steps.csv" || len(again.StepTime.Table.SHA256) != 64 {
		t.Errorf("the resolved scenario has the table %+v", again.StepTime.Table)
	}
	if _, err := again.Resolve(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "steps.csv"),
		[]byte("decode_seqs,sum_context,prefill_tokens,seconds\n1,1,0,1\n2,2,0,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Resolve(); err == nil || !strings.Contains(err.Error(), "steps.csv has the SHA-256 ") {
		t.Errorf("another table: %v", err)
	}
}

// TestTableFaults wants every fault of a table of step times said, with its place.
func TestTableFaults(t *testing.T) {
	dir := t.TempDir()
	steps := writeSteps(t, dir)
	bad := filepath.Join(dir, "bad.csv")
	if err := os.WriteFile(bad, []byte("decode_seqs,sum_context,prefill_tokens,seconds\n8,800,0,x\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"step_time: table":                "s.yaml:1:12: step_time: table needs its file (want {table: steps.csv})",
		"step_time: {table: }":            "s.yaml:1:13: step_time.table: table needs its file",
		"step_time: {table: 3}":           "s.yaml:1:20: step_time.table: ",
		"step_time: {table: {sha256: a}}": "s.yaml:1:20: step_time.table: file is missing",
		"step_time: {table: " + dir + "}": "s.yaml:1:20: step_time.table: " + dir +
			" cannot be read: this is a directory",
		"step_time: {table: " + dir + "/0.csv}": "s.yaml:1:20: step_time.table: " + dir +
			"/0.csv cannot be read: no such file",
		"step_time: {table: " + bad + "}": "s.yaml:1:12: step_time: " + bad +
			`:2: seconds is "x"`,
		"step_time: {table: {file: " + steps + ", sha256: abc}}": "s.yaml:1:20: step_time.table: " + steps +
			" has the SHA-256 ",
		"step_time: {table: " + steps + "}\nengine: {speculative: {method: ngram, num_speculative_tokens: 2, acceptance: [0.5, 0.5]}}": "engine.speculative: a table of step times has no draft passes",
	} {
		s, err := scenario.Parse("s.yaml", []byte(text))
		if err == nil {
			_, err = s.Resolve()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	s, err := scenario.Parse("s.yaml", []byte("step_time: {table: "+steps+"}\nengine: {max_num_seqs: 512}"))
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if w := u.Warnings; len(w) != 1 || w[0].Code != "table_range" ||
		!strings.Contains(w[0].Text, "ends at 256 decodes and 8192 prefill tokens") {
		t.Errorf("warnings: %+v", w)
	}
}
