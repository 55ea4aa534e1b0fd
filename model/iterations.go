package model

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Iteration is a measured forward pass. Its prefill is one chunk.
type Iteration struct {
	Line    int // of the file
	Batch   Batch
	Seconds float64
}

// iterationColumns are the columns of measured iterations. The last is optional.
var iterationColumns = []string{"decode_seqs", "sum_context", "prefill_tokens", "seconds", "prefill_cached"}

// ReadIterations reads measured iterations from CSV, with the columns in any order and others beside them: decode_seqs sequences
// decode, whose KV lengths add up to sum_context tokens, beside a chunk of prefill_tokens (0 for none) that has prefill_cached tokens
// before it (0 if there is no such column); together they take so many seconds. Errors have one line, and begin with the
// name and the line number.
func ReadIterations(name string, r io.Reader) ([]Iteration, error) {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	head, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: the header cannot be read (want columns decode_seqs, sum_context, prefill_tokens, seconds): %w", name, err)
	}
	at := map[string]int{}
	for i, h := range head {
		at[h] = i
	}
	for _, want := range iterationColumns[:4] {
		if _, ok := at[want]; !ok {
			return nil, fmt.Errorf("%s:1: column %s is missing (want decode_seqs, sum_context, prefill_tokens, seconds)", name, want)
		}
	}
	var all []Iteration
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		line, _ := c.FieldPos(0)
		var v [5]float64
		for k, column := range iterationColumns {
			i, ok := at[column]
			if !ok {
				continue
			}
			x, err := strconv.ParseFloat(row[i], 64)
			whole := column == "seconds" || x == math.Trunc(x)
			if err != nil || !(x >= 0 && x <= 1e9) || !whole {
				return nil, fmt.Errorf("%s:%d: %s is %.40q (want a number from 0 to 1e9, whole but for seconds)", name, line, column, row[i])
			}
			v[k] = x
		}
		decodes, context, chunk, cached := int(v[0]), int64(v[1]), int(v[2]), int(v[4])
		if v[3] == 0 || decodes+chunk == 0 || context < int64(decodes) || decodes == 0 && context > 0 {
			return nil, fmt.Errorf("%s:%d: not an iteration that can be (want sequences or prompt tokens, a context of one token or more for each sequence, and a time above 0)", name, line)
		}
		it := Iteration{Line: line, Batch: Batch{Decodes: decodes, Context: context, Emit: decodes}, Seconds: v[3]}
		if chunk > 0 {
			it.Batch.Chunks = []Chunk{{New: int32(chunk), Cached: int32(cached)}}
			it.Batch.Emit++
		}
		all = append(all, it)
	}
	if len(all) < 2 {
		return nil, fmt.Errorf("%s: %d iterations are too few (want two or more)", name, len(all))
	}
	return all, nil
}
