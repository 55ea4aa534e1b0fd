package packed

import (
	"reflect"
	"slices"
	"testing"
)

type part struct {
	Share float64
	Any   any
}

type whole struct {
	Name  string
	Flag  bool
	Small int32
	Big   int64
	Count uint64
	Pair  [2]float64
	Parts []part
	By    map[string]map[int][]part
	Maybe *float64
	None  *part
	Inner part
	own   int
	Last  [3]string
}

func TestReadReturnsTheRecord(t *testing.T) {
	zero := 0.0
	for name, r := range map[string]*whole{
		"zero": {},
		"full": {Name: "ü\x00", Flag: true, Small: -1 << 31, Big: 1<<63 - 1, Count: 1<<64 - 1, Pair: [2]float64{0, -0.5},
			Parts: []part{{}, {0.1, "text"}, {Any: 2.5}, {Any: uint64(300)}, {Any: int64(-300)}},
			By:    map[string]map[int][]part{"b": {2: {{Share: 1}}, -2: nil}, "a": {}},
			Maybe: &zero, Inner: part{Share: 1e300}, Last: [3]string{2: "end"}},
		"empty lists": {Parts: []part{}, By: map[string]map[int][]part{}},
	} {
		table := NewTable(map[string]any{"before": &part{1, "x"}, name: r, "z": &part{}})
		got := &whole{}
		if !table.Has(name) || !table.Read(name, got) {
			t.Fatalf("%s: not found", name)
		}
		if name == "full" { // a list without entries is not nil afterwards
			r.By["b"][-2] = []part{}
		}
		if !reflect.DeepEqual(got, r) {
			t.Errorf("%s: read %+v, want %+v", name, got, r)
		}
	}
}

func TestTableNamesItsRecords(t *testing.T) {
	table := NewTable(map[string]any{"gpus/b": &part{Share: 2}, "gpus/a": &part{Share: 1}, "models/a": &part{}})
	if got := table.Names("gpus/"); !slices.Equal(got, []string{"gpus/a", "gpus/b"}) {
		t.Errorf("names %q", got)
	}
	if table.Has("gpus/") || table.Read("gpus/c", &part{}) || Table("").Has("x") {
		t.Error("found a record that is not in the table")
	}
	other := NewTable(map[string]any{"gpus/b": &part{Share: 2}, "gpus/a": &part{Share: 3}, "gpus/c": &part{}})
	if got := table.Stale(other); !slices.Equal(got, []string{"gpus/a", "gpus/c", "models/a"}) {
		t.Errorf("stale records %q", got)
	}
}

// TestOnlyRecordsArePacked wants a panic for a type that could not be read again, and for a field that would be lost.
func TestOnlyRecordsArePacked(t *testing.T) {
	for _, r := range []any{&struct{ F func() }{func() {}}, &whole{own: 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is packed", r)
				}
			}()
			NewTable(map[string]any{"r": r})
		}()
	}
}
