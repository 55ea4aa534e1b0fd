package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// target is a platform that programs are built for.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// env returns the environment in which the go command builds for the target, the same way on every machine.
func (t target) env() []string {
	return append(os.Environ(), "GOOS="+t.os, "GOARCH="+t.arch, "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false",
		"GOWORK=off",
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
}

// targets are the platforms of a release.
var targets = []target{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// programs are the packages of the command-line programs of a release, and page is the package of the playground.
var programs = []string{"clifftop/cmd/clifftop", "clifftop/cmd/clifftop-parquet"}

const page = "clifftop/cmd/clifftop-wasm"

var browser = target{"js", "wasm"}

// module is a Go module with packages that are linked into a program.
type module struct {
	Path, Version, Dir string
	packages           []string // the folders of its linked packages
}

// linked returns the modules of packages that are linked for the target, except the main module, by path.
func linked(t target, packages ...string) (map[string]*module, error) {
	args := append([]string{"list", "-deps", "-json=Dir,Module"}, packages...)
	out, err := goCommand(t, args...)
	if err != nil {
		return nil, err
	}
	modules := map[string]*module{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir    string
			Module *struct {
				Path, Version, Dir string
				Main               bool
				Replace            *struct{}
			}
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return modules, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if p.Module == nil || p.Module.Main {
			continue
		}
		if p.Module.Replace != nil {
			return nil, fmt.Errorf("%s is replaced: a release needs the published module", p.Module.Path)
		}
		m := modules[p.Module.Path]
		if m == nil {
			m = &module{Path: p.Module.Path, Version: p.Module.Version, Dir: p.Module.Dir}
			modules[m.Path] = m
		}
		m.packages = append(m.packages, p.Dir)
	}
}

// shipped returns the modules of all programs on all platforms, sorted by path.
func shipped() ([]*module, error) {
	all := map[string]*module{}
	add := func(t target, packages ...string) error {
		modules, err := linked(t, packages...)
		for path, m := range modules {
			if all[path] == nil {
				all[path] = m
			} else {
				all[path].packages = append(all[path].packages, m.packages...)
			}
		}
		return err
	}
	for _, t := range targets {
		if err := add(t, programs...); err != nil {
			return nil, err
		}
	}
	if err := add(browser, page); err != nil {
		return nil, err
	}
	var list []*module
	for _, m := range all {
		slices.Sort(m.packages)
		m.packages = slices.Compact(m.packages)
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b *module) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

// goCommand runs the go command for a target and returns its standard output.
func goCommand(t target, args ...string) ([]byte, error) {
	c := exec.Command("go", args...)
	c.Env = t.env()
	var failure strings.Builder
	c.Stderr = &failure
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s for %s: %w\n%s", strings.Join(args, " "), t, err, failure.String())
	}
	return out, nil
}
