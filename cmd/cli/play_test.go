package cli

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestPageIsServed requests the files of the page as a browser does.
func TestPageIsServed(t *testing.T) {
	p := &site{files: map[string][]byte{"index.html": []byte("<!doctype html>"), "play.js": []byte("1"),
		wasmName: []byte("x")}}
	server := httptest.NewServer(p)
	defer server.Close()
	for _, x := range []struct {
		path, kind string
		status     int
	}{
		{"/", "text/html; charset=utf-8", 200}, {"/play.js", "text/javascript; charset=utf-8", 200},
		{"/" + wasmName, "application/gzip", 200},
		{"/../main.go", "text/plain; charset=utf-8", 404}, {"/nothing", "text/plain; charset=utf-8", 404},
	} {
		r, err := http.Get(server.URL + x.path)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != x.status || r.Header.Get("Content-Type") != x.kind {
			t.Errorf("%s: %d, %s", x.path, r.StatusCode, r.Header.Get("Content-Type"))
		}
		if x.status == 200 && !strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s has no content security policy: %v", x.path, r.Header)
		}
		if r.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s has the encoding %s: browsers would decompress it twice", x.path,
				r.Header.Get("Content-Encoding"))
		}
	}
}

// TestPortInUse checks the error for a port that is in use.
func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	for _, name := range []string{"index.html", wasmName, wasmExecName, descriptionName} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	var stderr bytes.Buffer
	if status := Run(t.Context(), []string{"play", dir, "--port", port}, io.Discard, &stderr); status != exitFailed {
		t.Errorf("the exit status is %d", status)
	}
	if got, want := stderr.String(), "clifftop: --port: "+port+" is in use (want another port, or no --port for any free port)\n"; got != want {
		t.Errorf("the error is %q, want %q", got, want)
	}
}

// TestPageIsSelfContained asserts that no file of the page loads from another host, and that the content security
// policy in the page is the server's.
func TestPageIsSelfContained(t *testing.T) {
	entries, err := playgroundFiles.ReadDir("playground")
	if err != nil || len(entries) < 8 {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	for _, e := range entries {
		data, err := playgroundFiles.ReadFile("playground/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(https?:)?//[a-z0-9-]+\.[a-z]+`).FindAllString(string(data), -1) {
			if found != "http://www.w" { // the start of an XML namespace
				t.Errorf("%s names %s", e.Name(), found)
			}
		}
		if e.Name() == "index.html" {
			ofPage := strings.Replace(security, "; frame-ancestors 'none'", "", 1) // valid only in a header
			if !strings.Contains(string(data), `content="`+ofPage+`"`) {
				t.Errorf("the policy in index.html is not %s", ofPage)
			}
		}
	}
}

// TestModulePath compares modulePath with go.mod.
func TestModulePath(t *testing.T) {
	dir, err := findModule("")
	if err != nil {
		t.Fatal(err)
	}
	if !isModule(filepath.Join("..", "..")) {
		t.Errorf("%s is not the module %s", dir, modulePath)
	}
}

// TestProgramIsSmall asserts that the page's program contains no packages for picture files or command lines.
func TestProgramIsSmall(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "./cmd/clifftop-wasm")
	list.Dir, list.Env = filepath.Join("..", ".."), append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	out, err := list.Output()
	if err != nil {
		t.Skip("go list: ", err)
	}
	if !strings.Contains(string(out), "clifftop/experiments/playground\n") {
		t.Fatalf("the playground is missing in\n%s", out)
	}
	for dep := range strings.Lines(string(out)) {
		for _, large := range []string{"gonum.org/v1/plot", "golang.org/x/image", "clifftop/report/plot",
			"github.com/spf13", "net/http"} {
			if dep = strings.TrimSpace(dep); strings.HasPrefix(dep, large) {
				t.Errorf("the page's program contains %s", dep)
			}
		}
	}
}

// TestCompressed asserts that one compressed copy of a file is kept.
func TestCompressed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "clifftop.wasm")
	for _, text := range []string{"one", "one", "two"} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		packed, err := compressed(name)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(z); err != nil || string(got) != text {
			t.Errorf("%q became %q, %v", text, got, err)
		}
		if kept, _ := filepath.Glob(filepath.Join(filepath.Dir(name), "*.gz")); len(kept) != 1 {
			t.Errorf("%s files are kept", strconv.Itoa(len(kept)))
		}
	}
}
