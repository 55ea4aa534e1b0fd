package manifest_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"clifftop/experiments/launch"
	"clifftop/experiments/launch/manifest"
	"clifftop/experiments/scenario/yamldoc"
)

// Any file is read or has faults, and so has the scenario made of it.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.*")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(filepath.Base(file), data)
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if len(data) > 1<<13 {
			return
		}
		s, err := manifest.Read(name, data, manifest.Options{})
		if err != nil {
			if !yamldoc.BadInput(err) {
				t.Errorf("%v is no fault of the input", err)
			}
			return
		}
		if m, err := s.Scenario(launch.ImportOptions{GPU: "h100"}); err == nil {
			yamldoc.Marshal(m.Root)
		}
	})
}

// Damaged fixtures are read or have faults: characters replaced, and parts left out or repeated.
func TestDamagedFilesAreFaults(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.*")
	rng := rand.New(rand.NewPCG(1, 2))
	const marks = "{}[]:-|>&*$(\n\"' #,"
	for range 3000 {
		file := files[rng.IntN(len(files))]
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + rng.IntN(6) {
			i := rng.IntN(len(data))
			j := min(len(data), i+rng.IntN(20))
			switch rng.IntN(3) {
			case 0:
				data[i] = marks[rng.IntN(len(marks))]
			case 1:
				data = append(data[:i:i], data[j:]...)
			case 2:
				data = append(data[:j:j], data[i:]...)
			}
		}
		s, err := manifest.Read(filepath.Base(file), data, manifest.Options{})
		if err != nil {
			if !yamldoc.BadInput(err) {
				t.Fatalf("%v is no fault of the input:\n%s", err, data)
			}
			continue
		}
		_, _ = s.Scenario(launch.ImportOptions{GPU: "h100"})
	}
}
