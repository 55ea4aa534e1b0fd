package cli

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"clifftop/experiments/playground"
	"clifftop/report/page/assets"
)

//go:embed playground
var playgroundFiles embed.FS

// site is the playground's page as its files, all in one folder.
type site struct{ files map[string][]byte }

func (p *site) names() []string { return slices.Sorted(maps.Keys(p.files)) }

// Files of the page that are made rather than embedded.
const (
	wasmName        = "clifftop.wasm.gz"
	wasmExecName    = "wasm_exec.js"
	descriptionName = "description.json"
)

// buildSite puts the page together, and compiles its program.
func buildSite(ctx context.Context, source string, say func(string, ...any)) (*site, error) {
	p := &site{files: map[string][]byte{
		"charts.js":     []byte(assets.Scripts()),
		"charts.css":    []byte(assets.Styles()),
		"uPlot.LICENSE": []byte(assets.Licence()),
	}}
	entries, err := playgroundFiles.ReadDir("playground")
	if err != nil {
		return nil, failed(err)
	}
	for _, e := range entries {
		if p.files[e.Name()], err = playgroundFiles.ReadFile(path.Join("playground", e.Name())); err != nil {
			return nil, failed(err)
		}
	}
	// What the catalogue knows is told by a file: the browser would take seconds to read all records.
	var player playground.Player
	description, err := player.Describe()
	if err != nil {
		return nil, failed(err)
	}
	if p.files[descriptionName], err = json.Marshal(description); err != nil {
		return nil, failed(err)
	}
	p.files[wasmName], p.files[wasmExecName], err = compilePage(ctx, source, say)
	return p, err
}

// writtenSite reads a page that --static wrote.
func writtenSite(dir string) (*site, error) {
	p := &site{files: map[string][]byte{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %s", dir, cause(err))
	}
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			if p.files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
				return nil, fmt.Errorf("%s cannot be read: %s", filepath.Join(dir, e.Name()), cause(err))
			}
		}
	}
	for _, name := range []string{"index.html", wasmName, wasmExecName, descriptionName} {
		if p.files[name] == nil {
			return nil, fmt.Errorf("%s is not a page of the playground: %s is missing (want a directory that clifftop play --static wrote)", dir, name)
		}
	}
	return p, nil
}

// security lets the page load what comes from its own place, and nothing else; its program is WebAssembly.
const security = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP serves the files, which only change when the program does.
func (p *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	if name == "" {
		name = "index.html"
	}
	data, ok := p.files[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", security)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	kind := mime.TypeByExtension(path.Ext(name))
	switch path.Ext(name) { // which a machine's own table may get wrong
	case ".js":
		kind = "text/javascript; charset=utf-8"
	case ".gz":
		kind = "application/gzip"
	case ".LICENSE":
		kind = "text/plain; charset=utf-8"
	}
	h.Set("Content-Type", kind)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
}

var _ http.Handler = (*site)(nil)

// exists says that there is a file of a name.
func exists(name string) bool {
	_, err := os.Stat(name)
	return !errors.Is(err, fs.ErrNotExist)
}
