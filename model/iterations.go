package model

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"clifftop/internal/duplicate"
)

// Iteration is a measured forward pass.
type Iteration struct {
	Line    int    // line number in the file
	Segment string // name of the part of the run; may be empty
	Queued  int    // requests that waited for their prefill meanwhile; -1 if the scheduler did not report it
	Batch   Batch
	Seconds float64
}

// IterationKind says which tokens an iteration computes.
type IterationKind string

// The kinds of iterations.
const (
	PrefillIteration IterationKind = "prefill" // prompts only
	DecodeIteration  IterationKind = "decode"  // decoding sequences only
	MixedIteration   IterationKind = "mixed"   // both
)

// Kind returns the kind of the iteration.
func (it *Iteration) Kind() IterationKind {
	switch {
	case len(it.Batch.Chunks) == 0:
		return DecodeIteration
	case it.Batch.Decodes == 0:
		return PrefillIteration
	}
	return MixedIteration
}

// PrefillTokens returns the number of prompt tokens that the iteration computes.
func (it *Iteration) PrefillTokens() (n int) {
	for _, c := range it.Batch.Chunks {
		n += int(c.New)
	}
	return n
}

// iterationRow is a line of measured iterations. The order is that of iterationColumns.
type iterationRow struct {
	decodes, context, prefill, seconds, cached, requests, deviation, queued float64
}

// iterationColumns are the columns of numbers; the first four are required.
var iterationColumns = []string{"decode_seqs", "sum_context", "prefill_tokens", "seconds", "prefill_cached",
	"prefill_requests", "context_sd", "queued_prefill_requests"}

// requiredColumns is the number of required columns.
const requiredColumns = 4

func (r *iterationRow) fields() []*float64 {
	return []*float64{&r.decodes, &r.context, &r.prefill, &r.seconds, &r.cached, &r.requests, &r.deviation,
		&r.queued}
}

// maxChunks limits the prompts of an iteration.
const maxChunks = 1 << 16

// ReadIterations reads measured iterations from CSV, plain or compressed with gzip. The columns may be in any order,
// and further columns are ignored: decode_seqs sequences decode with a summed KV length of sum_context tokens,
// together with prefill_tokens prompt tokens (0 for none); the iteration takes the given seconds.
//
// These columns are optional: prefill_cached is the number of KV tokens that the prompts had before (0 if missing),
// prefill_requests the number of prompts (1 if missing), context_sd the standard deviation of the KV lengths of the
// decoding sequences (0 if missing), segment the name of a part of the run, queued_prefill_requests the number of
// requests that waited. kind (prefill, decode or mixed) must
// agree with the numbers. Several prompts of an iteration are taken as equally long; the cached tokens belong to the
// first ones.
//
// Errors have one line and begin with name and line number.
func ReadIterations(name string, r io.Reader) ([]Iteration, error) {
	r, err := unzipped(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w (want CSV, plain or compressed with gzip)", name, err)
	}
	c := csv.NewReader(r)
	c.ReuseRecord = true
	head, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: the header cannot be read (want columns %s): %w", name, requiredNames(), err)
	}
	if column, twice := duplicate.Column(head); twice {
		return nil, fmt.Errorf("%s:1: column %.40q is there twice (want each column once)", name, column)
	}
	at := map[string]int{}
	for i, h := range head {
		at[h] = i
	}
	for _, want := range iterationColumns[:requiredColumns] {
		if _, ok := at[want]; !ok {
			return nil, fmt.Errorf("%s:1: column %s is missing (want %s)", name, want, requiredNames())
		}
	}
	var all []Iteration
	for {
		cells, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		line, _ := c.FieldPos(0)
		it, err := readIteration(cells, at)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		it.Line = line
		all = append(all, it)
	}
	if len(all) < 2 {
		return nil, fmt.Errorf("%s: %d iterations are too few (want two or more)", name, len(all))
	}
	return all, nil
}

// unzipped returns the content of a file that may be compressed with gzip.
func unzipped(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	if magic, _ := in.Peek(2); string(magic) != "\x1f\x8b" {
		return in, nil
	}
	return gzip.NewReader(in)
}

func requiredNames() string { return strings.Join(iterationColumns[:requiredColumns], ", ") }

func readIteration(cells []string, at map[string]int) (Iteration, error) {
	row := iterationRow{requests: 1, queued: -1}
	for k, v := range row.fields() {
		column := iterationColumns[k]
		i, ok := at[column]
		if !ok || k >= requiredColumns && cells[i] == "" {
			continue
		}
		x, err := strconv.ParseFloat(cells[i], 64)
		whole := column == "seconds" || column == "context_sd" || x == math.Trunc(x)
		if err != nil || !(x >= 0 && x <= 1e9) || !whole {
			return Iteration{}, fmt.Errorf("%s is %.40q (want 0 to 1e9, a whole number except for seconds and "+
				"context_sd)", column, cells[i])
		}
		*v = x
	}
	if err := row.check(); err != nil {
		return Iteration{}, err
	}
	it := row.iteration()
	if i, ok := at["segment"]; ok {
		it.Segment = strings.Clone(cells[i])
	}
	if i, ok := at["kind"]; ok && cells[i] != "" && cells[i] != string(it.Kind()) {
		return Iteration{}, fmt.Errorf("kind is %.40q, but %d sequences decode and %d prompt tokens are computed "+
			"(want %s)", cells[i], it.Batch.Decodes, it.PrefillTokens(), it.Kind())
	}
	return it, nil
}

// check rejects numbers that no iteration can have together.
func (r *iterationRow) check() error {
	switch {
	case r.seconds == 0:
		return errors.New("impossible iteration: seconds is 0 (want a time above 0)")
	case r.decodes+r.prefill == 0:
		return errors.New("impossible iteration: decode_seqs and prefill_tokens are both 0 (want sequences or prompt " +
			"tokens)")
	case r.context < r.decodes || r.decodes == 0 && r.context > 0:
		return fmt.Errorf("impossible iteration: sum_context is %.0f for %.0f decode_seqs (want 1 token or more per "+
			"sequence)", r.context, r.decodes)
	case r.prefill > 0 && (r.requests == 0 || r.requests > r.prefill) || r.requests > maxChunks:
		return fmt.Errorf("impossible iteration: prefill_requests is %.0f for %.0f prefill_tokens (want 1 token or "+
			"more per request)", r.requests, r.prefill)
	}
	if most := r.mostDeviation(); r.deviation > most+1 { // 1: published values are rounded
		return fmt.Errorf("impossible iteration: context_sd is %g for %.0f decode_seqs of %.0f tokens together (want "+
			"at most %.0f)", r.deviation, r.decodes, r.context, most)
	}
	return nil
}

// mostDeviation returns the standard deviation of KV lengths of which all but one are 1 token.
func (r *iterationRow) mostDeviation() float64 {
	if r.decodes < 2 {
		return 0
	}
	return (r.context/r.decodes - 1) * math.Sqrt(r.decodes-1)
}

func (r *iterationRow) iteration() Iteration {
	it := Iteration{Seconds: r.seconds, Queued: int(r.queued), Batch: Batch{Decodes: int(r.decodes),
		Context: int64(r.context), ContextDeviation: int64(math.Round(r.deviation)), Emit: int(r.decodes)}}
	if r.prefill > 0 {
		it.Batch.Chunks = divide(int64(r.prefill), int64(r.cached), int64(r.requests))
		it.Batch.Emit += len(it.Batch.Chunks)
	}
	return it
}

// divide divides new and cached prompt tokens among n requests. Engines compute prompts in order of arrival: the
// cached tokens belong to the first requests, whose beginnings earlier iterations have computed. Therefore all
// requests get the same number of tokens, cached ones first, and at least one new token each.
func divide(tokens, cached, n int64) []Chunk {
	chunks := slices.Grow([]Chunk(nil), int(n))
	for ; n > 0; n-- {
		length := (tokens + cached + n - 1) / n
		had := min(cached, length-1)
		now := max(1, min(length-had, tokens-(n-1)))
		if n == 1 {
			had, now = cached, tokens
		}
		chunks = append(chunks, Chunk{New: int32(now), Cached: int32(had)})
		tokens, cached = tokens-now, cached-had
	}
	return chunks
}
