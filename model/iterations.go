package model

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"clifftop/internal/duplicate"
)

// Iteration is a measured forward pass. Its prefill is a single chunk.
type Iteration struct {
	Line    int // line number in the file
	Batch   Batch
	Seconds float64
}

// iterationColumns are the columns of measured iterations. The last one is optional.
var iterationColumns = []string{"decode_seqs", "sum_context", "prefill_tokens", "seconds", "prefill_cached"}

// ReadIterations reads measured iterations from CSV. The columns may be in any order, and further columns are
// ignored: decode_seqs sequences decode with a summed KV length of sum_context tokens, together with a chunk of
// prefill_tokens (0 for none) after prefill_cached cached tokens (0 if the column is missing); the iteration takes
// the given seconds. Errors have one line and begin with name and line number.
func ReadIterations(name string, r io.Reader) ([]Iteration, error) {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	head, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: the header cannot be read (want columns decode_seqs, sum_context, "+
			"prefill_tokens, seconds): %w", name, err)
	}
	if column, twice := duplicate.Column(head); twice {
		return nil, fmt.Errorf("%s:1: column %.40q is there twice (want each column once)", name, column)
	}
	at := map[string]int{}
	for i, h := range head {
		at[h] = i
	}
	for _, want := range iterationColumns[:4] {
		if _, ok := at[want]; !ok {
			return nil, fmt.Errorf("%s:1: column %s is missing (want decode_seqs, sum_context, prefill_tokens, "+
				"seconds)", name, want)
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
				return nil, fmt.Errorf("%s:%d: %s is %.40q (want 0 to 1e9, a whole number except for seconds)", name,
					line, column, row[i])
			}
			v[k] = x
		}
		decodes, context, chunk, cached := int(v[0]), int64(v[1]), int(v[2]), int(v[4])
		if v[3] == 0 || decodes+chunk == 0 || context < int64(decodes) || decodes == 0 && context > 0 {
			return nil, fmt.Errorf("%s:%d: impossible iteration (want sequences or prompt tokens, a context of 1 "+
				"token or more per sequence, and a time above 0)", name, line)
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
