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

// TestPageIsServed asks for the page's files as a browser does.
func TestPageIsServed(t *testing.T) {
	p := &site{files: map[string][]byte{"index.html": []byte("<!doctype html>"), "play.js": []byte("1"), wasmName: []byte("x")}}
	server := httptest.NewServer(p)
	defer server.Close()
	for _, x := range []struct {
		path, kind string
		status     int
	}{
		{"/", "text/html; charset=utf-8", 200}, {"/play.js", "text/javascript; charset=utf-8", 200}, {"/" + wasmName, "application/gzip", 200},
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
			t.Errorf("%s may load what it likes: %v", x.path, r.Header)
		}
		if r.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s is encoded as %s, and would be unpacked twice", x.path, r.Header.Get("Content-Encoding"))
		}
	}
}

// TestPortInUse is told in a line.
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
	if status := run([]string{"play", dir, "--port", port}, io.Discard, &stderr); status != exitFailed {
		t.Errorf("the exit status is %d", status)
	}
	if got, want := stderr.String(), "clifftop: --port: "+port+" is in use (want another, or none for any that is free)\n"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

// TestPageNeedsNobody asserts that no file of the page names another host to load from, and that its policy is the server's.
func TestPageNeedsNobody(t *testing.T) {
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
			if found != "http://www.w" { // the start of a name of XML, which is no address
				t.Errorf("%s names %s", e.Name(), found)
			}
		}
		if e.Name() == "index.html" {
			ofPage := strings.Replace(security, "; frame-ancestors 'none'", "", 1) // which only a server can ask for
			if !strings.Contains(string(data), `content="`+ofPage+`"`) {
				t.Errorf("index.html has another policy than %s", ofPage)
			}
		}
	}
}

// TestModulePath holds the name by which the source is found against go.mod.
func TestModulePath(t *testing.T) {
	dir, err := findModule("")
	if err != nil {
		t.Fatal(err)
	}
	if !isModule(filepath.Join("..", "..")) {
		t.Errorf("%s is not the module %s", dir, modulePath)
	}
}

// TestProgramIsSmall looks at what the page's program is made of: nothing that draws pictures into files or reads command
// lines.
func TestProgramIsSmall(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "./cmd/clifftop-wasm")
	list.Dir, list.Env = filepath.Join("..", ".."), append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	out, err := list.Output()
	if err != nil {
		t.Skip("go list: ", err)
	}
	if !strings.Contains(string(out), "clifftop/experiments/playground\n") {
		t.Fatalf("the playground is not in\n%s", out)
	}
	for dep := range strings.Lines(string(out)) {
		for _, large := range []string{"gonum.org/v1/plot", "golang.org/x/image", "clifftop/report/plot", "github.com/spf13", "net/http"} {
			if dep = strings.TrimSpace(dep); strings.HasPrefix(dep, large) {
				t.Errorf("the page's program has %s in it", dep)
			}
		}
	}
}

// TestCompressed compresses a file once.
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
