package trace

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"clifftop/sim/clock"
)

// fuzz reads text in all modes: nothing may panic or hang, rows are in order and valid, and every row is
// accounted for.
func fuzz(t *testing.T, text, format string) {
	for _, o := range []Options{
		{Format: format}, {Format: format, Mode: Skip, MaxBadFraction: 1, ZeroOutput: OneToken}, {Format: format, Mode: Fix, CheckChains: true},
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
				var row *RowError
				if err != io.EOF && o.Mode == Strict && !errors.As(err, &row) && !strings.Contains(err.Error(), "fuzz: ") {
					t.Errorf("error without a place: %v", err)
				}
				c := f.Counts()
				sum := c.Accepted
				for _, d := range c.Dropped {
					sum += d
				}
				if err == io.EOF && (sum != c.Rows || n != c.Accepted) {
					t.Errorf("%d rows, %d accepted, %d given, %v dropped", c.Rows, c.Accepted, n, c.Dropped)
				}
				break
			}
			if r.ID != n || r.Arrival < last || r.InputTokens < 1 || r.OutputTokens < 1 || r.Content.Tokens() > int64(r.InputTokens) {
				t.Fatalf("row %d: %+v after %v", n, r, last)
			}
			last = r.Arrival
			n++
		}
	}
}

func FuzzOwn(f *testing.F) {
	f.Add(ownTrace)
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
			if object([]byte(line), func(_, _ []byte) {}) && !json.Valid([]byte(line)) {
				t.Errorf("%q is taken for JSON", line)
			}
		}
	})
}
