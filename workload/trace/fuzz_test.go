package trace

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"clifftop/sim/clock"
)

// fuzz reads text in all modes. It must not panic or hang, rows must be in order and valid, and every row is counted.
func fuzz(t *testing.T, text, format string) {
	for _, o := range []Options{
		{Format: format}, {Format: format, Mode: Skip, MaxBadFraction: 1, ZeroOutput: OneToken},
		{Format: format, Mode: Fix, CheckChains: true},
	} {
		f, err := Open(strings.NewReader(text), "fuzz", o)
		if err != nil {
			continue
		}
		var last clock.Time
		var n int64
		for {
			r, err := f.Next()
			if err != nil {
				var row *rowError
				if err != io.EOF && o.Mode == Strict && !errors.As(err, &row) &&
					!strings.Contains(err.Error(), "fuzz: ") {
					t.Errorf("error without a place: %v", err)
				}
				c := f.Counts()
				sum := c.Accepted
				for _, d := range c.Dropped {
					sum += d
				}
				if err == io.EOF && (sum+c.Outside != c.Rows || n != c.Accepted) {
					t.Errorf("%d rows, %d accepted, %d given, %v dropped", c.Rows, c.Accepted, n, c.Dropped)
				}
				break
			}
			bad := false
			for _, t := range r.Then {
				if t.Wait < 0 || t.InputTokens < 1 || t.OutputTokens < 1 || t.Content.Tokens() > int64(t.InputTokens) {
					bad = true
				}
			}
			if bad || r.ID != n || r.Arrival < last || r.InputTokens < 1 || r.OutputTokens < 1 ||
				r.Content.Tokens() > int64(r.InputTokens) {
				t.Fatalf("row %d: %+v after %v", n, r, last)
			}
			last = r.Arrival
			n++
		}
	}
}

func FuzzOwn(f *testing.F) {
	f.Add(ownTrace)
	f.Add(chainedTrace)
	f.Add("arrival_s,input_tokens,output_tokens,session,wait_s\n0,1,1,s,\n,1,1,s,2\n,0,1,s,2\n\n,1,1,s,\n")
	f.Add("arrival_s,input_tokens,output_tokens\n1e2,12.0,3\n\"1.5\",2,3\n.5,1,1\n")
	f.Add("arrival_s,input_tokens,output_tokens,session,content\n1,9,9,s,@out:3|x\n2,9,9,s,@out:3\n")
	f.Fuzz(func(t *testing.T, text string) { fuzz(t, text, "clifftop") })
}

func FuzzAzure(f *testing.F) {
	f.Add(badAzure)
	f.Add("\ufeffTIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-12 00:00:00+00:00,1,2\n2024-05-12T00:00:00.5Z,1,2\n")
	f.Add("timestamp,x,contexttokens,generatedtokens\n2024-02-29 23:59:59.9999999999999-23:59,\",\",1,2")
	f.Fuzz(func(t *testing.T, text string) { fuzz(t, text, "azure") })
}

func FuzzMooncake(f *testing.F) {
	f.Add(badMooncake)
	f.Add(`{"timestamp": 1.5, "x": [{"a": "}\""}, null], "hash_ids": [], "input_length": 0, "output_length": 1e2}`)
	f.Add(`{"":1]}` + "\n{}\f")
	f.Add(`{"hash_ids":[1,2],"input_length":513,"output_length":1,"timestamp":0}` + "\n{}\n[1]\n")
	f.Fuzz(func(t *testing.T, text string) {
		fuzz(t, text, "mooncake")
		for line := range strings.Lines(text) {
			if walkObject([]byte(line), func(_, _ []byte) {}) && !json.Valid([]byte(line)) {
				t.Errorf("%q is taken for JSON", line)
			}
		}
	})
}

// addExamples adds the examples of some formats, and variations of them with faults.
func addExamples(f *testing.F, formats ...string) {
	for name, x := range examples {
		for _, format := range formats {
			if strings.HasPrefix(name, format) {
				f.Add(x.text)
				f.Add(strings.Replace(x.text, "1", "-1", 1))
				f.Add(x.text[:len(x.text)*2/3])
			}
		}
	}
}

// FuzzColumns reads the other CSV formats.
func FuzzColumns(f *testing.F) {
	addExamples(f, "burstgpt", "vidur", "splitwise")
	f.Fuzz(func(t *testing.T, text string) { fuzz(t, text, "") })
}

// FuzzObjects reads the other formats of JSON lines.
func FuzzObjects(f *testing.F) {
	addExamples(f, "bailian", "llmservingsim")
	f.Fuzz(func(t *testing.T, text string) {
		fuzz(t, text, "bailian")
		fuzz(t, text, "llmservingsim")
	})
}

// FuzzDocuments reads the results of benchmarks.
func FuzzDocuments(f *testing.F) {
	addExamples(f, "vllm-bench", "inference-perf")
	f.Fuzz(func(t *testing.T, text string) { fuzz(t, text, "") })
}

// FuzzServeGen generates from a client's description, as long as it is a short one.
func FuzzServeGen(f *testing.F) {
	dir := clients()
	f.Add(string(dir["chunk-12-trace.csv"].Data[:80]), string(dir["chunk-3-dataset.json"].Data))
	f.Add("0,1,1,Weibull,0.5,1\n1e3,0.1,1,Gamma,1e-2,1\n",
		`{"0": {"input_tokens": "{5: 1, 7: 1e-3}", "output_tokens": "{6: 0.5}"}}`)
	f.Fuzz(func(t *testing.T, rates, lengths string) {
		file, err := OpenServeGen(fstest.MapFS{"chunk-1-trace.csv": {Data: []byte(rates)},
			"chunk-1-dataset.json": {Data: []byte(lengths)}}, "fuzz", Options{Mode: Skip, MaxBadFraction: 1})
		if err != nil {
			return
		}
		var last clock.Time
		for range 1000 {
			r, err := file.Next()
			if err != nil {
				return
			}
			if r.Arrival < last || r.InputTokens < 1 || r.OutputTokens < 1 {
				t.Fatalf("%+v after %v", r, last)
			}
			last = r.Arrival
		}
	})
}
