package export_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report/export"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload/trace"
)

// benchmark is what is read of a detailed result.
type benchmark struct {
	Completed, Failed int
	InputLens         []int       `json:"input_lens"`
	OutputLens        []int       `json:"output_lens"`
	TTFTs             []float64   `json:"ttfts"`
	ITLs              [][]float64 `json:"itls"`
	Latencies         []float64   `json:"latencies"`
	StartTimes        []float64   `json:"start_times"`
	QueueTimes        []float64   `json:"queue_times"`
	Texts             []string    `json:"generated_texts"`
	Errors            []string    `json:"errors"`
	MeanITL           float64     `json:"mean_itl_ms"`
	Note              string      `json:"clifftop_note"`
}

func readBenchmark(t *testing.T, d *export.Detailed, r *experiments.Result) (b benchmark, data []byte) {
	t.Helper()
	var out bytes.Buffer
	if err := d.Write(&out, r.VLLMBench()); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &b); err != nil {
		t.Fatal(err)
	}
	return b, out.Bytes()
}

// TestDetailed compares the lists with the records, and reads them back as a trace.
func TestDetailed(t *testing.T) {
	each(t, func(t *testing.T, r *ran) {
		b, data := readBenchmark(t, r.detailed, r.result)
		n := len(b.InputLens)
		for name, got := range map[string]int{
			"output_lens": len(b.OutputLens), "ttfts": len(b.TTFTs), "itls": len(b.ITLs), "latencies": len(b.Latencies),
			"start_times": len(b.StartTimes),
			"queue_times": len(b.QueueTimes), "generated_texts": len(b.Texts), "errors": len(b.Errors),
			"completed and failed": b.Completed + b.Failed,
		} {
			if got != n || n == 0 {
				t.Errorf("%d %s for %d requests", got, name, n)
			}
		}
		place := map[int64]int{} // of a request, by its number: attempts have numbers too
		for _, rec := range r.records {
			if id, _ := rec.Request.First(); !rec.Again {
				place[id] = 0
			}
		}
		for i, id := range slices.Sorted(maps.Keys(place)) {
			place[id] = i
		}
		gaps, sum := 0, 0.0
		for i := range r.records {
			rec := &r.records[i]
			if rec.Again {
				continue
			}
			number, sent := rec.Request.First()
			id := place[number]
			if rec.Outcome != event.Completed {
				if b.Errors[id] == "" || b.OutputLens[id] != 0 || len(b.ITLs[id]) != 0 {
					t.Errorf("request %d failed: %q, %d tokens", id, b.Errors[id], b.OutputLens[id])
				}
				continue
			}
			close := func(name string, got float64, want clock.Duration) {
				t.Helper()
				if math.Abs(got-want.Seconds()) > 1e-9*float64(1+len(b.ITLs[id])) {
					t.Errorf("request %d: %s is %v, want %v", id, name, got, want.Seconds())
				}
			}
			total := 0.0
			for _, gap := range b.ITLs[id] {
				total += gap
			}
			gaps, sum = gaps+len(b.ITLs[id]), sum+total
			close("the sum of its gaps", total, rec.LastToken.Sub(rec.FirstToken))
			close("ttft", b.TTFTs[id], rec.ClientFirst.Sub(sent))
			close("latency", b.Latencies[id], rec.ClientLast.Sub(sent))
			close("start", b.StartTimes[id], clock.Duration(sent))
			// SGLang produces a token in flight again after a retraction.
			tokens, most := len(b.ITLs[id])+1, int(rec.Tokens)
			if r.setup.Pools[0].Config.UnpredictedEnds {
				most += int(rec.Preemptions)
			}
			if !r.setup.Pools[0].Config.Speculative.On() && tokens < int(rec.Tokens) || tokens > most {
				t.Errorf("request %d has %d outputs of %d tokens", id, tokens, rec.Tokens)
			}
		}
		// The summary counts the gaps of dropped tokens too.
		if mean := sum / float64(gaps) * 1000; b.Failed == 0 && math.Abs(mean-b.MeanITL) > 1e-3*mean {
			t.Errorf("the mean gap is %g ms, the summary's %g", mean, b.MeanITL)
		}
		// The reader of traces knows it, and leaves failures out.
		f, err := trace.Open(bytes.NewReader(data), "bench.json", trace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for ; err == nil; rows++ {
			_, err = f.Next()
		}
		if err != io.EOF || rows-1 != b.Completed || f.Format() != "vllm-bench" {
			t.Errorf("it is read as %s with %d rows (%v), want %d", f.Format(), rows-1, err, b.Completed)
		}
	})
}

// TestDetailedIsCut gives the lists of gaps less room than they need.
func TestDetailedIsCut(t *testing.T) {
	s, err := scenario.Parse("test.yaml", []byte("run: {requests: 100}"))
	if err != nil {
		t.Fatal(err)
	}
	d := export.NewDetailed(5000)
	res, err := experiments.Run(context.Background(), s, experiments.RunOptions{Observers: []event.Observer{d}})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := readBenchmark(t, d, res)
	gaps, empty := 0, 0
	for i, list := range b.ITLs {
		gaps += len(list)
		if len(list) == 0 && b.OutputLens[i] > 1 {
			empty++
		}
	}
	if gaps > 5000 || gaps < 2500 || empty != d.Cut() || empty == 0 || b.Note == "" {
		t.Errorf("%d gaps are kept, %d lists are empty, %d were cut, and it says %q", gaps, empty, d.Cut(), b.Note)
	}
}

// TestIterations adds the table up.
func TestIterations(t *testing.T) {
	each(t, func(t *testing.T, r *ran) {
		rows, err := csv.NewReader(&r.iterations).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		column := map[string]int{}
		for i, name := range rows[0] {
			column[name] = i
		}
		busy, output, ends := 0.0, 0, map[string]float64{} // of replicas
		for i, row := range rows[1:] {
			get := func(name string) float64 {
				v, err := strconv.ParseFloat(row[column[name]], 64)
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
			start := get("start_s")
			end, ran := ends[row[0]]
			if ran && r.states.started(int(get("replica")), end, start) {
				ran = false // it has nothing to look back to
			}
			if wait := start - end; ran && math.Abs(wait-get("wait_ms")/1000) > 3e-9 {
				t.Fatalf("row %d starts %g s after the last, which says %g ms", i, wait, get("wait_ms"))
			}
			ends[row[0]] = start + get("duration_ms")/1000
			busy += get("duration_ms") * 1000
			output += int(get("output_tokens"))
			if get("decodes") > get("sequences") {
				t.Fatalf("row %d: %v", i, row)
			}
		}
		if len(ends) != r.setup.Report.Replicas {
			t.Errorf("%d replicas", len(ends))
		}
		if output != r.output || math.Abs(busy-r.busy) > 1e-6*r.busy {
			t.Errorf("%d tokens in %g us, want %d in %g", output, busy, r.output, r.busy)
		}
	})
}
