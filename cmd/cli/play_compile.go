package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// modulePath is that of this program's module.
const modulePath = "clifftop"

// withoutGo is what to do where the page cannot be compiled.
const withoutGo = "hint: clifftop play --static DIR writes the page where there are Go and the source, and clifftop play DIR serves it anywhere"

// compilePage compiles the page's program from the module's source, and compresses it. The compiler keeps what it made and
// looks itself whether that is still what the source says, so that only the first time takes long. The second result
// is the script that runs such a program, which belongs to the compiler's release.
func compilePage(ctx context.Context, source string, say func(string, ...any)) (wasm, script []byte, err error) {
	tool, err := exec.LookPath("go")
	if err != nil {
		return nil, nil, fmt.Errorf("play: there is no Go toolchain here to compile the page with (want go on the PATH: https://go.dev/dl)\n%s", withoutGo)
	}
	module, err := findModule(source)
	if err != nil {
		return nil, nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	key := sha256.Sum256([]byte(module))
	cache = filepath.Join(cache, "clifftop", "play-"+hex.EncodeToString(key[:6]))
	if err := os.MkdirAll(cache, 0o777); err != nil {
		return nil, nil, failed(fmt.Errorf("play: %s cannot be made: %s", cache, cause(err)))
	}
	made := filepath.Join(cache, "clifftop.wasm")
	if !exists(made) {
		say("compiling the page's program; the first time takes a while")
	}
	build := exec.CommandContext(ctx, tool, "build", "-trimpath", "-ldflags=-s -w", "-o", made, "./cmd/clifftop-wasm")
	build.Dir, build.Env = module, append(os.Environ(), "GOOS=js", "GOARCH=wasm", "GOWORK=off")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, nil, toolFailure(ctx, "compiling the page's program in "+module, text, err)
	}
	if wasm, err = compressed(made); err != nil {
		return nil, nil, failed(fmt.Errorf("play: %w", err))
	}
	ask := exec.CommandContext(ctx, tool, "env", "GOROOT")
	ask.Dir = module
	root, err := ask.Output()
	if err != nil {
		return nil, nil, toolFailure(ctx, "asking for GOROOT", nil, err)
	}
	name := filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js")
	if script, err = os.ReadFile(name); err != nil {
		return nil, nil, failed(fmt.Errorf("play: %s cannot be read: %s (want Go 1.24 or later)", name, cause(err)))
	}
	return wasm, script, nil
}

// toolFailure says in a line why the toolchain failed, by the first thing that it says.
func toolFailure(ctx context.Context, doing string, output []byte, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for line := range strings.Lines(string(output)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "go: downloading") {
			return failed(fmt.Errorf("play: %s: %s\n%s", doing, line, withoutGo))
		}
	}
	return failed(fmt.Errorf("play: %s: %w\n%s", doing, err, withoutGo))
}

// compressed is a file as gzip, which lies beside it from the time before where the file is the same.
func compressed(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	kept := filepath.Join(filepath.Dir(name), hex.EncodeToString(sum[:8])+".gz")
	if data, err := os.ReadFile(kept); err == nil {
		return data, nil
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	old, _ := filepath.Glob(filepath.Join(filepath.Dir(name), "*.gz"))
	for _, file := range old {
		os.Remove(file)
	}
	dir := &directory{filepath.Dir(name)}
	// Without it the next start takes longer, which is no reason to fail.
	_ = dir.write(filepath.Base(kept), func(w io.Writer) error { _, err := w.Write(b.Bytes()); return err })
	return b.Bytes(), nil
}

// findModule finds the source: where it is said to be, around the working directory, or where this program was compiled.
func findModule(source string) (string, error) {
	if source != "" {
		if isModule(source) {
			return filepath.Abs(source)
		}
		return "", fmt.Errorf("--source: %s is not the source of clifftop (want the directory with its go.mod)", source)
	}
	var starts []string
	if dir, err := os.Getwd(); err == nil {
		starts = append(starts, dir)
	}
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		starts = append(starts, filepath.Dir(file))
	}
	for _, dir := range starts {
		for {
			if isModule(dir) {
				return dir, nil
			}
			up := filepath.Dir(dir)
			if up == dir {
				break
			}
			dir = up
		}
	}
	return "", errors.New("play: the source of clifftop, of which the page is compiled, is not here (want the working directory in it, or --source DIR)\n" + withoutGo)
}

// isModule says that a directory holds this program's module.
func isModule(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(first) == "module "+modulePath && exists(filepath.Join(dir, "cmd", "clifftop-wasm"))
}
