package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"clifftop/cmd/cli/console"
)

// modulePath is the path of this program's module.
const modulePath = "clifftop"

// withoutGo is the hint for machines that cannot compile the page.
const withoutGo = "hint: clifftop play --static DIR writes the page where Go and the source exist; " +
	"clifftop play DIR serves it anywhere"

// compilePage compiles the page's program from the module's source and compresses it. Go's build cache makes later
// calls fast. The second result is Go's script wasm_exec.js, which must match the version of the compiler.
func compilePage(ctx context.Context, source string, say func(text string)) (wasm, script []byte, err error) {
	tool, err := exec.LookPath("go")
	if err != nil {
		return nil, nil, fmt.Errorf("play: the Go toolchain is missing "+
			"(want go in the PATH, see https://go.dev/dl)\n%s", withoutGo)
	}
	module, err := findModule(source)
	if err != nil {
		return nil, nil, err
	}
	program, err := programPath(module)
	if err != nil {
		return nil, nil, err
	}
	if !exists(program) {
		say("compiling the page's program; the first time takes a while")
	}
	build := exec.CommandContext(ctx, tool, "build", "-trimpath", "-ldflags=-s -w", "-o", program,
		"./cmd/clifftop-wasm")
	build.Dir, build.Env = module, append(os.Environ(), "GOOS=js", "GOARCH=wasm", "GOWORK=off")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, nil, toolFailure(ctx, "compiling the page's program in "+module, text, err)
	}
	if wasm, err = compressed(program); err != nil {
		return nil, nil, console.Failed(fmt.Errorf("play: %w", err))
	}
	script, err = readScript(ctx, tool, module)
	return wasm, script, err
}

// programPath returns where the compiled program of a module's page is kept, in the user's cache. It creates the
// directory.
func programPath(module string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	key := sha256.Sum256([]byte(module))
	cache = filepath.Join(cache, "clifftop", "play-"+hex.EncodeToString(key[:6]))
	if err := os.MkdirAll(cache, 0o777); err != nil {
		return "", console.Failed(fmt.Errorf("play: %s cannot be created: %s", cache, console.Cause(err)))
	}
	return filepath.Join(cache, "clifftop.wasm"), nil
}

// readScript reads wasm_exec.js of the Go toolchain that a module uses.
func readScript(ctx context.Context, tool, module string) ([]byte, error) {
	env := exec.CommandContext(ctx, tool, "env", "GOROOT")
	env.Dir = module
	root, err := env.Output()
	if err != nil {
		return nil, toolFailure(ctx, "finding GOROOT", nil, err)
	}
	name := filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js")
	script, err := os.ReadFile(name)
	if err != nil {
		return nil, console.Failed(fmt.Errorf("play: %s cannot be read: %s (want Go 1.24 or later)", name,
			console.Cause(err)))
	}
	return script, nil
}

// toolFailure returns the error for a failure of the Go toolchain, with the first line of its output.
func toolFailure(ctx context.Context, doing string, output []byte, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for line := range strings.Lines(string(output)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "go: downloading") {
			continue
		}
		return console.Failed(fmt.Errorf("play: %s: %s\n%s", doing, line, withoutGo))
	}
	return console.Failed(fmt.Errorf("play: %s: %w\n%s", doing, err, withoutGo))
}

// compressed returns the content of a file, compressed with gzip. It keeps the result next to the file and reuses it as
// long as the file does not change.
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
	dir := &console.Directory{Path: filepath.Dir(name)}
	_ = dir.WriteBytes(filepath.Base(kept), b.Bytes()) // without the file, only the next start takes longer
	return b.Bytes(), nil
}

// findModule returns the directory of the source: the given one, or else the module around the working directory or
// around the place where this program was compiled.
func findModule(source string) (string, error) {
	if source != "" {
		if isModule(source) {
			return filepath.Abs(source)
		}
		return "", fmt.Errorf("--source: %s is not the source of clifftop (want the directory of its go.mod)", source)
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
	return "", errors.New("play: the source of clifftop was not found " +
		"(want a working directory inside it, or --source DIR)\n" + withoutGo)
}

// isModule reports whether a directory is the root of this program's module.
func isModule(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(first) == "module "+modulePath && exists(filepath.Join(dir, "cmd", "clifftop-wasm"))
}
