package experiments

import (
	"bytes"
	"encoding/json"
	"runtime/debug"

	"clifftop/experiments/grid"
	"clifftop/experiments/scenario"
)

// build is the version of the program with the state of its source, where the compiler noted that.
func build() string {
	text := Version
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return text
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			text += "+" + s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			text += "-modified"
		}
	}
	return text
}

// CacheKey names the result of a run by what it depends on: the program, the scenario as resolved with its seed, the
// records of the catalog or of files that it names, and what else sets it apart.
func CacheKey(u *scenario.Setup, about ...string) (string, error) {
	parts := [][]byte{[]byte(build())}
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
		parts = append(parts, p.Setup.MachineJSON)
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
