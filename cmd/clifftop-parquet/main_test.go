package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report/collect"
)

// table reads a Parquet file back as text, in the order of its columns, with empty cells for nulls.
func table(t *testing.T, data []byte) (head []string, types []string, rows [][]string) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range f.Schema().Fields() {
		head, types = append(head, c.Name()), append(types, c.Type().String())
	}
	for _, group := range f.RowGroups() {
		r := group.Rows()
		buf := make([]parquet.Row, 64)
		for {
			n, err := r.ReadRows(buf)
			for _, row := range buf[:n] {
				cells := make([]string, len(head))
				for _, v := range row {
					if !v.IsNull() {
						cells[v.Column()] = v.String()
					}
				}
				rows = append(rows, cells)
			}
			if err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		r.Close()
	}
	return head, types, rows
}

// TestRequests converts the requests of a run, and compares every number.
func TestRequests(t *testing.T) {
	s, err := scenario.Parse("run.yaml", []byte("run: {requests: 300}\nclients: {timeout: 9s}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var requests, out bytes.Buffer
	if _, err := experiments.Run(context.Background(), s, experiments.RunOptions{Requests: &requests}); err != nil {
		t.Fatal(err)
	}
	rows, err := convert(&out, bytes.NewReader(requests.Bytes()), "requests.csv")
	if err != nil || rows != 300 {
		t.Fatalf("%d rows, %v", rows, err)
	}
	head, types, got := table(t, out.Bytes())
	if want := collect.RequestColumns; strings.Join(head, ",") != want {
		t.Errorf("columns are %v, want %s", head, want)
	}
	want, err := csv.NewReader(&requests).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range got {
		for j, cell := range row {
			if c := want[i+1][j]; cell != c && !equalNumbers(cell, c) {
				t.Fatalf("row %d: %s is %q, want %q", i, head[j], cell, c)
			}
		}
	}
	for j, name := range head {
		if want := map[string]string{"request": "INT(64,true)", "ttft_ms": "DOUBLE", "reason": "STRING",
			"input_tokens": "INT(64,true)"}[name]; want != "" && types[j] != want {
			t.Errorf("%s is %s, want %s", name, types[j], want)
		}
	}
}

func equalNumbers(a, b string) bool {
	var x, y float64
	_, err1 := fmt.Sscan(a, &x)
	_, err2 := fmt.Sscan(b, &y)
	return err1 == nil && err2 == nil && x == y
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "trace.csv")
	if err := os.WriteFile(name, []byte("# made by hand\narrival_s,input_tokens,output_tokens,class\n0.5,10,20,\n1,12,,chat\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	var messages bytes.Buffer
	if err := run([]string{name}, nil, nil, &messages); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "trace.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if _, types, rows := table(t, data); fmt.Sprint(types,
		rows) != "[DOUBLE INT(64,true) INT(64,true) STRING] [[0.5 10 20 ] [1 12  chat]]" {
		t.Errorf("%v %v", types, rows)
	}
	if !strings.Contains(messages.String(), "trace.parquet: 2 rows") {
		t.Errorf("standard error: %q", messages.String())
	}
	var out bytes.Buffer
	if err := run([]string{"-"}, strings.NewReader("a,b\n1,2\n"), &out, nil); err != nil || out.Len() == 0 {
		t.Errorf("a stream: %v", err)
	}
}

func TestMistakes(t *testing.T) {
	late := "n\n" + strings.Repeat("1\n", sampled) + "1.5\n"
	for _, c := range []struct{ in, want string }{
		{"", "standard input is empty"},
		{"a,a\n1,2\n", "is not allowed (want a unique name"},
		{"a,\n1,2\n", `column 2: name ""`},
		{"-\n1\n", `column 1: name "-" is not allowed`},
		{"a,b\n1\n", "wrong number of fields"},
		{late, "standard input:4098:1: n: \"1.5\" is not a whole number"},
	} {
		if _, err := convert(io.Discard, strings.NewReader(c.in), "standard input"); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%.20q: %v, want %q", c.in, err, c.want)
		}
	}
	for _, args := range [][]string{nil, {"file.txt"}, {"nowhere.csv"}} {
		if err := run(args, nil, io.Discard, io.Discard); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}

// TestAnyTable converts tables of any cells: all rows come through, or there is an error.
func TestAnyTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "columns")
		cell := rapid.OneOf(rapid.SampledFrom([]string{"", "1", "-2", "1.5", "1e300", "NaN", "x",
			"9223372036854775808"}), rapid.StringN(0, 3, 8))
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		for range rapid.IntRange(0, 8).Draw(t, "rows") {
			_ = w.Write(rapid.SliceOfN(cell, n, n).Draw(t, "row"))
		}
		w.Flush()
		in, out := b.String(), bytes.Buffer{}
		rows, err := convert(&out, strings.NewReader(in), "in")
		if err != nil {
			return
		}
		f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if f.NumRows() != rows {
			t.Fatalf("%d rows of %d", f.NumRows(), rows)
		}
	})
}
