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

	"clifftop/cmd/cli/console"
	"clifftop/experiments/playground"
	"clifftop/internal/notices"
	"clifftop/report/page/assets"
)

//go:embed playground
var playgroundFiles embed.FS

// site is the playground: the files of a web page by name.
type site struct{ files map[string][]byte }

func (p *site) names() []string { return slices.Sorted(maps.Keys(p.files)) }

// Files of the page that are generated, not embedded.
const (
	wasmName        = "clifftop.wasm.gz"
	wasmExecName    = "wasm_exec.js"
	descriptionName = "description.json"
	noticesName     = "THIRD_PARTY_NOTICES.md"
)

// buildSite builds the page: it reads the embedded files, describes the catalog and compiles the program.
func buildSite(ctx context.Context, source string, say func(text string)) (*site, error) {
	p := &site{files: map[string][]byte{
		"charts.js":     []byte(assets.Scripts()),
		"charts.css":    []byte(assets.Styles()),
		"uPlot.LICENSE": []byte(assets.Licence()),
		noticesName:     []byte(notices.Text),
	}}
	entries, err := playgroundFiles.ReadDir("playground")
	if err != nil {
		return nil, console.Failed(err)
	}
	for _, e := range entries {
		if p.files[e.Name()], err = playgroundFiles.ReadFile(path.Join("playground", e.Name())); err != nil {
			return nil, console.Failed(err)
		}
	}
	// A file describes the catalog, because a browser needs seconds to read all records.
	var player playground.Player
	description, err := player.Describe()
	if err != nil {
		return nil, console.Failed(err)
	}
	if p.files[descriptionName], err = json.Marshal(description); err != nil {
		return nil, console.Failed(err)
	}
	p.files[wasmName], p.files[wasmExecName], err = compilePage(ctx, source, say)
	return p, err
}

// readSite reads a page that --static wrote.
func readSite(dir string) (*site, error) {
	p := &site{files: map[string][]byte{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %s", dir, console.Cause(err))
	}
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			if p.files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
				return nil, fmt.Errorf("%s cannot be read: %s", filepath.Join(dir, e.Name()), console.Cause(err))
			}
		}
	}
	for _, name := range []string{"index.html", wasmName, wasmExecName, descriptionName} {
		if p.files[name] == nil {
			return nil, fmt.Errorf("%s is not a playground: %s is missing (want a directory that play --static wrote)",
				dir, name)
		}
	}
	return p, nil
}

// security is the Content-Security-Policy of the page: it may run WebAssembly and load files of its own origin only.
const security = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP implements [net/http.Handler].
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
	switch path.Ext(name) { // the system's table may have other types
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

func exists(name string) bool {
	_, err := os.Stat(name)
	return !errors.Is(err, fs.ErrNotExist)
}
