package iterations_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clifftop/experiments/iterations"
	"clifftop/experiments/scenario"
	"clifftop/model"
	"clifftop/model/catalog"
)

const head = "decode_seqs,sum_context,prefill_tokens,seconds\n"

// folder writes files of iterations with their list of runs.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// seconds returns the model's time of an iteration of Qwen3-32B on a B300.
func seconds(t *testing.T, b model.Batch) float64 {
	t.Helper()
	llm, err := catalog.LLM("qwen3-32b")
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := catalog.GPU("b300-sxm")
	if err != nil {
		t.Fatal(err)
	}
	d, err := model.NewDeployment(llm, gpu, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k, err := model.NewKernels(d, model.KernelOptions{MaxNumSeqs: 1024, PadGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := k.Span(&b)
	return float64(first) / 1e15
}

// TestScore scores iterations that take 25 % longer than the model says. One of five equal ones compiles a kernel and
// is dropped; the time of a prefill is counted in the one before.
func TestScore(t *testing.T) {
	decode := 1.25 * seconds(t, model.Batch{Decodes: 8, Context: 8000, Emit: 8})
	prompt := 1.25 * seconds(t, model.Batch{Chunks: []model.Chunk{{New: 1000}}, Emit: 1})
	text := head
	for i := range 5 {
		text += fmt.Sprintf("8,8000,0,%g\n", decode+float64(i%4/3))
	}
	text += fmt.Sprintf("0,0,1000,%g\n0,0,1000,0.0001\n", 2*prompt-0.0001)
	dir := folder(t, map[string]string{"a.csv": text, "b.csv": text,
		"runs.csv": "run,model,gpu,tp,max_num_batched_tokens\na,qwen3-32b,b300-sxm,1,512\nb,gpt-none,b300-sxm,1,512\n"})
	files, err := iterations.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := iterations.Score(context.Background(), files, iterations.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := r.Files[0]
	if a.Dropped != 1 || a.Joined != 2 || a.Shapes != 1 || len(a.Notes) != 1 {
		t.Errorf("%+v", a)
	}
	for i, want := range []iterations.KindSpread{
		{Kind: model.PrefillIteration, Spread: iterations.Spread{N: 2}},
		{Kind: model.DecodeIteration, Spread: iterations.Spread{N: 4}},
	} {
		if k := a.Kinds[i]; k.Kind != want.Kind || k.N != want.N || fmt.Sprintf("%.3f %.3f %.3f", k.Median, k.P90, k.Bias) !=
			"0.200 0.200 -0.200" {
			t.Errorf("%+v", k)
		}
	}
	if b := r.Files[1]; !strings.Contains(b.Refused, `no model "gpt-none"`) || r.Scored() != 1 {
		t.Errorf("%+v", b)
	}
	if len(r.Picture().Diagrams()) != 6 {
		t.Error("the picture has not six panels")
	}
}

// TestOpenErrors checks that errors name the place and the wish.
func TestOpenErrors(t *testing.T) {
	good := head + "1,9,0,1\n1,9,0,1\n"
	for _, c := range []struct {
		files map[string]string
		open  string
		want  string
	}{
		{map[string]string{"a.csv": good}, "", "runs.csv: no such file or directory (want a folder with a list of runs"},
		{map[string]string{"a.csv": head + "1,0,0,1\n"}, "a.csv", "a.csv:2: impossible iteration: sum_context is 0"},
		{map[string]string{"runs.csv": "run,model\na,b\n"}, "", "runs.csv:1: column gpu is missing"},
		{map[string]string{"runs.csv": "run,model,gpu\na,b,c\n"}, "", "a: no such file or directory"},
		{map[string]string{"runs.csv": "run,model,gpu\na\n", "a.csv": good}, "a.csv", "runs.csv: no rows can be read"},
	} {
		_, err := iterations.Open(filepath.Join(folder(t, c.files), c.open))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want %s", c.files, err, c.want)
		}
	}
	files, err := iterations.Open(filepath.Join(folder(t, map[string]string{"a.csv": good}), "a.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = iterations.Score(context.Background(), files, iterations.Options{}); err == nil ||
		!strings.Contains(err.Error(), "a: the configuration is not known (want a row in runs.csv") {
		t.Error(err)
	}
	o := iterations.Options{Settings: []scenario.Setting{{Key: "model", Value: "nothing"}}}
	if _, err = iterations.Score(context.Background(), files, o); err == nil {
		t.Error("an unknown model of the command line is no error")
	}
}
