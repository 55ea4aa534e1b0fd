package validation

import (
	"strings"
	"testing"
)

func TestReadKeepsRowsApart(t *testing.T) {
	ref, err := Read("runs.csv", strings.NewReader(
		"\ufeffrun_id,engine,model,gpu,load_mode,tp,rate_rps,ttft_mean_ms,ttft_p99_ms,colour\n"+
			"a,vllm,llama-3.1-8b,H100,open,1,8.0,25.5,,red\n"+
			"b,vllm,llama-3.1-8b,H100,open,x,-1,25.5,30,\n"+
			"a,vllm,,H100,open,1,8,1,2,\n"+
			"c,vllm,llama-3.1-8b,H100,open,1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(ref.Rows) != 4 || len(ref.Notes) != 1 || !strings.Contains(ref.Notes[0], "colour") {
		t.Fatalf("%d rows, notes %q", len(ref.Rows), ref.Notes)
	}
	a := ref.Rows[0]
	if a.Faults != nil || a.Line != 2 || *a.Rate != 8 || *a.TTFT.Mean != 25.5 || a.TTFT.P99 != nil || *a.TP != 1 {
		t.Errorf("row a is %+v", a)
	}
	for i, want := range map[int][]string{
		1: {`tp: "x"`, `rate_rps: "-1"`},
		2: {"model: the cell is empty", "line 2"},
		3: {"6 cells below 10 columns"},
	} {
		got := strings.Join(ref.Rows[i].Faults, "; ")
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("row %d: %q does not say %q", i, got, part)
			}
		}
	}
}

func TestReadRefusesWhatIsNoTable(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "empty",
		"run_id,engine,model\n":               "no column gpu",
		"run_id,run_id\n":                     "twice",
		"run_id,engine,model,gpu,load_mode\n": "no rows",
		"run_id,engine,model,gpu,load_mode\na,\"b\nc,d,e": "line",
	} {
		if _, err := Read("runs.csv", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v (want %q)", text, err, want)
		}
	}
}

// FuzzRead wants no file to make the reader, or what follows, panic.
func FuzzRead(f *testing.F) {
	f.Add("run_id,engine,model,gpu,load_mode,concurrency,input_tokens_mean,output_tokens_nominal\na,vllm,llama-3.1-8b,H100,closed,4,100,10\n")
	f.Add("run_id,engine,model,gpu,load_mode,stage,experiment\na,vllm,x,y,open,0,e\nb,vllm,x,y,open,1,e\n")
	f.Fuzz(func(t *testing.T, text string) {
		ref, err := Read("runs.csv", strings.NewReader(text))
		if err != nil {
			return
		}
		for _, c := range Plan(ref) {
			if c.setup == nil && c.Refused == "" && c.Bad == "" {
				t.Errorf("nothing is said about %q", c.Rows[0].ID)
			}
		}
	})
}
