package workload

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"clifftop/internal/packed"
	"clifftop/sim/clock"
)

var update = flag.Bool("update", false, "write presets.bin")

// TestPresetTable compares presets.bin with the files in YAML. With -update it writes presets.bin.
func TestPresetTable(t *testing.T) {
	form := func(key string) any {
		if key == gridKey {
			return new(gridDoc)
		}
		return new(presetDoc)
	}
	duration := yaml.CustomUnmarshaler(func(d *clock.Duration, b []byte) error {
		v, err := time.ParseDuration(strings.TrimSpace(string(b)))
		*d = clock.Duration(v) * clock.Nanosecond
		return err
	})
	files, err := filepath.Glob("presets/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	records := map[string]any{}
	for _, file := range files {
		key := strings.TrimSuffix(filepath.Base(file), ".yaml")
		records[key] = form(key)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalWithOptions(data, records[key], yaml.Strict(), duration); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	want := packed.NewTable(records)
	if *update {
		if err := os.WriteFile("presets.bin", []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, key := range presetTable.Stale(want) {
		t.Errorf("presets/%s.yaml is not as in presets.bin: run go generate ./workload", key)
	}
	for key, r := range records {
		got := form(key)
		if want.Read(key, got); !reflect.DeepEqual(got, r) {
			t.Errorf("presets/%s.yaml becomes\n%+v\nwant\n%+v", key, got, r)
		}
	}
}
