package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Builder builds commits and working trees, each in the same folder, so that binaries differ only in their code.
type Builder struct {
	root, scratch string
	profile       bool // build with the compiler's profile of the source, as users do
}

func (b *Builder) git(args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", b.root}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), nil
}

// commit returns the full hash of a name.
func (b *Builder) commit(name string) (string, error) {
	out, err := b.git("rev-parse", "--verify", "--quiet", name+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("there is no commit %s here: fetch the whole history (git fetch --unshallow)", name)
	}
	return strings.TrimSpace(out), nil
}

func (b *Builder) source() string { return filepath.Join(b.scratch, "source") }

// checkout fills the source folder with a commit.
func (b *Builder) checkout(commit string) error {
	if err := b.empty(); err != nil {
		return err
	}
	archive := exec.Command("git", "-C", b.root, "archive", commit)
	tar := exec.Command("tar", "-x", "-C", b.source())
	pipe, err := archive.StdoutPipe()
	if err != nil {
		return err
	}
	tar.Stdin = pipe
	if err := archive.Start(); err != nil {
		return err
	}
	return errors.Join(tar.Run(), archive.Wait())
}

// copy fills the source folder with the working tree: files that git tracks or would add.
func (b *Builder) copy() error {
	if err := b.empty(); err != nil {
		return err
	}
	list, err := b.git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		if err := copyFile(filepath.Join(b.root, name), filepath.Join(b.source(), name)); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a regular file. A file that was deleted and anything else than a file is left out.
func copyFile(from, to string) error {
	if info, err := os.Lstat(from); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func (b *Builder) empty() error {
	return errors.Join(os.RemoveAll(b.source()), os.MkdirAll(b.source(), 0o755))
}

// build builds the source folder without paths, and without a profile unless asked for, and returns the binary.
func (b *Builder) build(name string) (string, error) {
	binary := filepath.Join(b.scratch, name, "clifftop")
	profile := "-pgo=off"
	if b.profile {
		profile = "-pgo=auto"
	}
	cmd := exec.Command("go", "build", profile, "-trimpath", "-buildvcs=false", "-o", binary, "./cmd/clifftop")
	cmd.Dir = b.source()
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build of %s: %w\n%s", name, err, out)
	}
	return binary, nil
}

// buildCommit builds a commit, or the working tree if commit is ".".
func (b *Builder) buildCommit(name, commit string) (string, error) {
	fill := b.copy
	if commit != "." {
		fill = func() error { return b.checkout(commit) }
	}
	if err := fill(); err != nil {
		return "", err
	}
	return b.build(name)
}

// toolchain is what counts depend on beside the code: Go's version, the platform, and whether C libraries are linked.
func (b *Builder) toolchain() (string, error) {
	cmd := exec.Command("go", "env", "GOVERSION", "GOOS", "GOARCH", "CGO_ENABLED")
	cmd.Dir = b.root
	out, err := cmd.Output()
	fields := strings.Fields(string(out))
	if err != nil || len(fields) != 4 {
		return "", fmt.Errorf("go env: %q: %w", out, err)
	}
	return fmt.Sprintf("%s %s/%s cgo=%s", fields[0], fields[1], fields[2], fields[3]), nil
}

// functionsOf returns the names of the functions of a binary.
func functionsOf(path string) (names []string, err error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	symbols, err := file.Symbols()
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			names = append(names, s.Name)
		}
	}
	return names, err
}
