package trace

import (
	"strings"
	"testing"
)

// TestDuplicates refuses names that are given twice: one of the two values would be lost.
func TestDuplicates(t *testing.T) {
	for text, want := range map[string]string{
		"arrival_s,input_tokens,output_tokens,Output_Tokens\n0,10,20,30\n": `x:1: FIELDS: "output_tokens" is the name ` +
			"of two columns (want each column once)",
		`{"timestamp": 0, "input_length": 10, "output_length": 2, "output_length": 3, "hash_ids": [1]}` + "\n": `x:1: JSON: ` +
			`"output_length" is given twice in the object (want each key once)`,
		`{"timestamp": 0, "input_length": 10, "output_length": 2, "hash_ids": [1]}` + "\n" +
			`{"timestamp": 0, "timestamp": 1, "input_length": 10, "output_length": 2, "hash_ids": [1]}` + "\n": `x:2: JSON: ` +
			`"timestamp" is given twice in the object (want each key once)`,
		`{"start_times": [0], "input_lens": [1], "output_lens": [1], "input_lens": [2]}`: `(want each key once)`,
	} {
		f, err := Open(strings.NewReader(text), "x", Options{})
		for err == nil {
			_, err = f.Next()
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nfound %v\nwant  %s", text, err, want)
		}
	}
}
