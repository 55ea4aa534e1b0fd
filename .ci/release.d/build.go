package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"clifftop/experiments"
	"clifftop/internal/notices"
)

// source is the state of the repository that a release is built from.
type source struct {
	root    string // its folder
	version string
	commit  string
	at      time.Time // of the commit, or what SOURCE_DATE_EPOCH says
}

// readSource looks at the repository around the working directory. It fails if files differ from the last commit, or if
// the commit has a tag of another version.
func readSource() (*source, error) {
	root, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	if changes, err := git("status", "--porcelain"); err != nil {
		return nil, err
	} else if changes != "" {
		return nil, fmt.Errorf("files differ from the last commit (commit them, or build from a clone):\n%s", changes)
	}
	s := &source{root: root, version: experiments.Version}
	tags, err := git("tag", "--points-at", "HEAD", "v*")
	if err != nil {
		return nil, err
	}
	if list := strings.Fields(tags); len(list) > 0 && !slices.Contains(list, "v"+s.version) {
		return nil, fmt.Errorf("the commit has the tag %s, but experiments.Version is %s", list[0], s.version)
	}
	if s.commit, err = git("rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		if seconds, err = git("log", "-1", "--format=%ct"); err != nil {
			return nil, err
		}
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH: %q is not a number of seconds", seconds)
	}
	s.at = time.Unix(n, 0)
	return s, nil
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	var failure *exec.ExitError
	if errors.As(err, &failure) {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(failure.Stderr))
	}
	return string(bytes.TrimSpace(out)), err
}

// documents are the files of the repository that every archive has.
var documents = []string{"CHANGELOG.md", "LICENSE", "README.md"}

// documents returns the files of every archive beside its programs.
func (s *source) documents() ([]file, error) {
	files := []file{{"THIRD_PARTY_NOTICES.md", 0o644, []byte(notices.Text)}}
	for _, name := range documents {
		data, err := os.ReadFile(filepath.Join(s.root, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, 0o644, data})
	}
	return files, nil
}

// build compiles the programs for a target into a folder and returns their paths. They share one profile, so that
// packages are compiled once for all of them.
func (s *source) build(t target, dir string) ([]string, error) {
	profile := filepath.Join(s.root, "cmd", "clifftop", "default.pgo")
	stamp := "-ldflags=-s -w -X clifftop/cmd/cli.commit=" + s.commit
	args := []string{"build", "-trimpath", "-pgo=" + profile, stamp, "-o", dir + string(filepath.Separator)}
	args = append(args, programs...)
	if _, err := goCommand(t, args...); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "clifftop*"))
	if err == nil && len(files) != len(programs) {
		err = fmt.Errorf("go build made %q", files)
	}
	return files, err
}

// programArchive builds the programs for a target and writes their archive and its bill of materials into out.
func (s *source) programArchive(t target, out string) error {
	dir, err := os.MkdirTemp("", "clifftop-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	built, err := s.build(t, dir)
	if err != nil {
		return err
	}
	modules, err := linked(t, programs...)
	if err != nil {
		return err
	}
	goVersion, err := verifyModules(built, modules)
	if err != nil {
		return err
	}
	files, err := s.documents()
	if err != nil {
		return err
	}
	for _, name := range built {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		files = append(files, file{filepath.Base(name), 0o755, data})
	}
	return s.writeProduct(out, t.os+"-"+t.arch, files, t.os == "windows", goVersion, modules)
}

// pageArchive writes the playground, and its bill of materials, into out.
func (s *source) pageArchive(out string) error {
	dir, err := os.MkdirTemp("", "clifftop-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	here := target{runtime.GOOS, runtime.GOARCH}
	built, err := s.build(here, dir)
	if err != nil {
		return err
	}
	site := filepath.Join(dir, "site")
	c := exec.Command(built[0], "play", "--static", site, "--source", s.root)
	c.Env = here.env()
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("the playground: %w\n%s", err, text)
	}
	modules, err := linked(browser, page)
	if err != nil {
		return err
	}
	goVersion, err := goCommand(browser, "env", "GOVERSION")
	if err != nil {
		return err
	}
	files, err := s.documents()
	if err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(site, "*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if base := filepath.Base(name); !slices.ContainsFunc(files, func(f file) bool { return f.name == base }) {
			files = append(files, file{base, 0o644, data})
		}
	}
	return s.writeProduct(out, "playground", files, false, strings.TrimSpace(string(goVersion)), modules)
}

// writeProduct writes an archive and its bill of materials into out.
func (s *source) writeProduct(
	out, kind string, files []file, windows bool, goVersion string, modules map[string]*module,
) error {
	name := "clifftop-" + s.version + "-" + kind
	data, err := pack(name, files, s.at, windows)
	if err != nil {
		return err
	}
	list := make([]*module, 0, len(modules))
	for _, m := range modules {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b *module) int { return cmp.Compare(a.Path, b.Path) })
	parts, err := partsOf(goVersion, list)
	if err != nil {
		return err
	}
	p := product{name, s.version, name + ".tar.gz", data, s.at}
	if windows {
		p.file = name + ".zip"
	}
	var bill bytes.Buffer
	if err := describe(p, parts).write(&bill); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, name+".spdx.json"), bill.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, p.file), data, 0o644)
}

// writeSums writes the SHA-256 sums of all files of a folder into SHA256SUMS there, as sha256sum --check reads them.
func writeSums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		if e.Name() == sums {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return os.WriteFile(filepath.Join(dir, sums), []byte(b.String()), 0o644)
}

const sums = "SHA256SUMS"
