package catalog

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"clifftop/internal/packed"
)

var update = flag.Bool("update", false, "write catalog.bin")

// files are the records in YAML.
var files = os.DirFS(".")

// form returns an empty record of the kind that a file has.
func form(key string) any {
	switch dir, name := filepath.Split(key); dir + name {
	case "models/" + name:
		return new(llmRecord)
	case "gpus/" + name:
		return new(gpuRecord)
	case "kernels/default":
		return new(kernelRows)
	case "kernels/classes":
		return new(classesFile)
	case "kernels/global":
		return new(globalFile)
	case "kernels/layers":
		return new(layersFile)
	case "kernels/exchange":
		return new(exchangeFile)
	case "predictive":
		return new(PredictiveFile)
	case "accuracy":
		return new(accuracyFile)
	}
	return nil
}

// TestTable compares catalog.bin with the files in YAML. With -update it writes catalog.bin.
func TestTable(t *testing.T) {
	records := map[string]any{}
	err := fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, err error) error {
		key, record := strings.CutSuffix(name, ".yaml")
		if !record || strings.HasPrefix(name, "testdata/") {
			return err
		}
		r := form(key)
		if r == nil {
			t.Fatalf("%s: no record has this name (see form)", name)
		}
		records[key] = r
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return decode(name, data, r)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := packed.NewTable(records)
	if *update {
		if err := os.WriteFile("catalog.bin", []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, key := range table.Stale(want) {
		t.Errorf("%s.yaml is not as in catalog.bin: run go generate ./model/catalog", key)
	}
	for key, r := range records {
		got := form(key)
		if want.Read(key, got); !reflect.DeepEqual(got, r) {
			t.Errorf("%s.yaml becomes\n%+v\nwant\n%+v", key, got, r)
		}
	}
}
