package conformance_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clifftop/experiments/conformance"
	"clifftop/internal/testenv"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/simtest/naive"
	"clifftop/workload"
)

var update = flag.Bool("update", false, "write the table of docs/conformance.md anew")

// records reads all records of the reference data, those of vLLM first.
func records(t *testing.T) (list []*conformance.Record) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testenv.Reference(t, "schedules"), "*.jsonl.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no records: %v", err)
	}
	slices.Sort(files)
	slices.Reverse(files)
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := conformance.Read(filepath.Base(name), f)
		if err != nil {
			t.Fatal(err)
		}
		if r.Fault != "" {
			t.Errorf("%s: %s", name, r.Fault)
		}
		list = append(list, r)
	}
	return list
}

// complete are the profiles all of whose given records agree, by format.
var complete = map[string][]string{
	"vllm-1": {"base", "async", "wm", "eos", "abort", "abortasync", "asynceos", "lora", "pp", "hybrid", "hybridreal",
		"speceagle", "specngram", "specdraft", "asyncdrafts"},
	"sglang-1": {"base16", "noradix", "tnoradix16", "eos16", "lpm", "lpm16", "ign", "async", "tasync", "eos_async",
		"noradix_async"},
}

// TestRecords replays the records, and compares the result with the published table.
func TestRecords(t *testing.T) {
	r, err := conformance.Run(context.Background(), records(t), conformance.Options{Check: testenv.Long()})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Profiles {
		if slices.Contains(complete[p.Format], p.Name) && p.Agree != p.Total {
			t.Errorf("%s, %s: %d of %d cases agree (want all)", p.Format, p.Name, p.Agree, p.Total)
		}
	}
	var table bytes.Buffer
	if err := r.WriteProfiles(&table); err != nil {
		t.Fatal(err)
	}
	publish(t, table.Bytes())
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	vllm, sglang := r.Sum("vllm-1"), r.Sum("sglang-1")
	want := fmt.Sprintf("%d of %d records of vLLM and %d of %d of SGLang agree", vllm.Agree, vllm.Total, sglang.Agree,
		sglang.Total)
	if text := strings.Join(strings.Fields(string(readme)), " "); !strings.Contains(text, want) {
		t.Errorf("README.md does not say %q", want)
	}
}

// TestNaive replays the records on the reference engine. It must compose the same iterations as the engine, also where
// both differ from the record.
func TestNaive(t *testing.T) {
	testenv.NeedsLong(t, "the reference engine is slow")
	list := records(t)
	fast, err := conformance.Run(context.Background(), list, conformance.Options{})
	if err != nil {
		t.Fatal(err)
	}
	run := func(_ context.Context, cfg engine.Config, src workload.Source, obs event.Observer) error {
		return naive.Run(cfg, src, obs)
	}
	slow, err := conformance.Run(context.Background(), list, conformance.Options{Simulator: run})
	if err != nil {
		t.Fatal(err)
	}
	if len(fast.Differences) != len(slow.Differences) {
		t.Errorf("%d cases differ from the records, but %d on the reference engine", len(fast.Differences),
			len(slow.Differences))
	}
	for i := range min(len(fast.Differences), len(slow.Differences)) {
		if a, b := fast.Differences[i], slow.Differences[i]; *a != *b {
			t.Fatalf("first difference to the record:\n%+v\nreference engine:\n%+v", *a, *b)
		}
	}
}

// publish compares a table with the one in docs/conformance.md, or writes it there.
func publish(t *testing.T, table []byte) {
	t.Helper()
	const page = "../../docs/conformance.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := []byte("<!-- table -->\n"), []byte("<!-- end of table -->\n")
	before, rest, ok := bytes.Cut(text, begin)
	old, after, ok2 := bytes.Cut(rest, end)
	switch {
	case !ok || !ok2:
		t.Fatalf("%s has no marks of the table", page)
	case bytes.Equal(old, table):
	case *update:
		if err := os.WriteFile(page, slices.Concat(before, begin, table, end, after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is stale (go test ./experiments/conformance -run TestRecords -update):\n%s", page, table)
	}
}
