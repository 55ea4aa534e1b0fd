package experiments

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"

	"clifftop/experiments/grid"
	"clifftop/experiments/scenario"
)

// build names the code of the program: its version and, where the compiler noted it, the revision of its source. Where
// there is none, or the source was changed, as in go run and go test, it is a hash of the program, so that results of
// another policy's code are not taken for those of this one.
var build = sync.OnceValues(func() (string, error) {
	text, clean := Version, false
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				text += "+" + s.Value
			case "vcs.modified":
				clean = s.Value == "false"
			}
		}
	}
	if clean {
		return text, nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s:%.8x", text, h.Sum(nil)), nil
})

// CacheKey names the result of a run by what it depends on: the program, the scenario as resolved with its seed, the
// records of the catalog or of files that it names, and what else sets it apart. A setup that a
// program configured otherwise has no key, which is an error: its scenario describes another run.
func CacheKey(u *scenario.Setup, about ...string) (string, error) {
	if u.Changed() {
		return "", errors.New("a result is kept under its scenario, which does not say how a program configured the " +
			"engines (want a key of the scenario, as policies have)")
	}
	program, err := build()
	if err != nil {
		return "", fmt.Errorf("the program's own file cannot be read: %w", err)
	}
	parts := [][]byte{[]byte(program)}
	for _, text := range about {
		if text != "" {
			parts = append(parts, []byte(text))
		}
	}
	scenario, err := json.Marshal(u.Scenario)
	if err != nil {
		return "", err
	}
	parts = append(parts, scenario)
	bars, err := json.Marshal(u.Predictive()) // a file of own runs changes them
	if err != nil {
		return "", err
	}
	parts = append(parts, bars)
	for _, p := range u.Pools {
		machine, err := json.Marshal(p.Deployment)
		if err != nil {
			return "", err
		}
		parts = append(parts, machine)
	}
	return grid.Key(parts...), nil
}

// marshal writes JSON on one line, as it is: without escapes for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
